package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// UnmountBelow unmounts everything that is mounted at or below dir in this
// mount namespace. The lab's own mounts end with its processes; this is for
// what somebody else left, because down removes the directory.
func UnmountBelow(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, p := range mountsBelow(string(b), dir) {
		if err := syscall.Unmount(p, syscall.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow lists the mount points at or below dir, the last mounted first.
func mountsBelow(mountinfo, dir string) []string {
	var out []string
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		p := unescape.Replace(f[4])
		if p == dir || strings.HasPrefix(p, dir+"/") {
			out = append(out, p)
		}
	}
	slices.Reverse(out)
	return out
}

// unescape undoes the kernel's octal escapes in a path.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
