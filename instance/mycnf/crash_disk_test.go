package mycnf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// disk is an ext4 file system in a file, mounted through a loop device: a machine's disk, whose power can be cut.
//
// What programs write stays in this machine's memory until the inner file system gives it to the loop device, as it stays
// in a real machine's memory until the disk has it. cutPower keeps what the device was given, and nothing else.
//
// What this cannot show: a disk that forgets what it was given and was not told to flush. All that reached the device
// counts as kept, so real disks may lose more; what is lost here is lost there.
type disk struct {
	image, mount string
}

// diskSize leaves room for the data of an empty server, twice. The file has holes.
const diskSize = 512 << 20

// newDisk makes a disk with the content of a folder. The test is skipped where there cannot be one.
func newDisk(t *testing.T, content, mount string) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("cutting the power of a disk needs root, to mount a loop device")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("cutting the power of a disk needs mkfs.ext4")
	}
	d := &disk{image: filepath.Join(filepath.Dir(mount), "disk.img"), mount: mount}
	file, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(diskSize); err != nil {
		t.Fatal(err)
	}
	shell(t, "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -d "+content+" "+d.image)
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.mount).CombinedOutput(); err != nil {
		t.Skipf("cutting the power of a disk needs a loop device: %s", out)
	}
	shell(t, "umount "+d.mount)
	return d
}

// copy is another disk with the same content, mounted in the same place until the test's end at the latest.
func (d *disk) copy(t *testing.T) *disk {
	t.Helper()
	c := &disk{image: d.image + ".copy", mount: d.mount}
	shell(t, "cp --sparse=always "+d.image+" "+c.image)
	shell(t, "mount -o loop "+c.image+" "+c.mount)
	t.Cleanup(c.remove)
	return c
}

// stop ends all writing to the device at once, as it is when the power is cut. What the file system has not written it
// never will, its journal included.
func (d *disk) stop(t *testing.T) {
	t.Helper()
	root, err := os.Open(d.mount)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const shutdown, withoutFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	if err := unix.IoctlSetPointerInt(int(root.Fd()), shutdown, withoutFlush); err != nil {
		t.Fatalf("cutting the power of %s: %v", d.mount, err)
	}
}

// comeBack mounts what was on the device when stop was called. Nothing may run on it any more.
func (d *disk) comeBack(t *testing.T) {
	t.Helper()
	after := d.image + ".after"
	shell(t, "cp --sparse=always "+d.image+" "+after) // before anything can be written by unmounting
	shell(t, "umount "+d.mount)
	shell(t, "mv "+after+" "+d.image)
	shell(t, "mount -o loop "+d.image+" "+d.mount)
}

// remove may be called twice.
func (d *disk) remove() {
	_ = exec.Command("umount", d.mount).Run()
	_ = os.Remove(d.image)
}

// shell runs one command, whose words have no blanks in them.
func shell(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}
