package inside

import (
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/proc"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// ImagesDone is the file in a node's directory that says that the node has
// imported all images. It holds nothing.
const ImagesDone = "images.done"

// lateImages is the prefix of the archives that a node does not need to
// become ready; they are imported while it works.
const lateImages = "3-"

// VolumesImage is the file in a node's directory with the file system for its volumes, if that is to be of a
// limited size.
const VolumesImage = "volumes.ext4"

// Node runs a node's first process. It returns only with an error.
func Node(dir state.Dir, name, total string) error {
	n, err := config.ParseNode(name)
	if err != nil {
		return err
	}
	nodes, err := strconv.Atoi(total)
	if err != nil {
		return fmt.Errorf("number of nodes: %w", err)
	}
	if err := freshMounts(); err != nil {
		return err
	}
	if err := nodeMounts(dir.Path(name)); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	w := &worker{dir: dir, node: n, reaper: proc.NewReaper()}
	if err := w.network(nodes); err != nil {
		return err
	}
	return w.run()
}

// worker is a node as it sees itself.
type worker struct {
	dir    state.Dir
	node   config.Node
	reaper *proc.Reaper
}

func (w *worker) path(names ...string) string {
	return w.dir.Path(append([]string{w.node.Name()}, names...)...)
}

func (w *worker) bin(name string) string { return filepath.Join(w.dir.BinLink(), name) }

// network waits for the cable, which the root plugs in, and makes the routes to
// the other nodes' pods.
func (w *worker) network(nodes int) error {
	if err := runAll(w.reaper, "ip link set lo up"); err != nil {
		return err
	}
	if err := waitFor("eth0", 30*time.Second, func() bool { _, err := net.InterfaceByName("eth0"); return err == nil }); err != nil {
		return err
	}
	cmds := []string{
		"ip addr add " + w.node.IP() + "/24 dev eth0", "ip link set eth0 up", "ip route add default via " + config.ControlPlaneIP,
	}
	for n := config.Node(1); int(n) <= nodes; n++ {
		if n != w.node {
			cmds = append(cmds, "ip route add "+n.PodCIDR()+" via "+n.IP())
		}
	}
	if err := runAll(w.reaper, cmds...); err != nil {
		return err
	}
	return sysctl("net/ipv4/ip_forward", "1")
}

func (w *worker) run() error {
	w.start("containerd", w.bin("containerd"), "--config", w.path("containerd.toml"))
	if err := waitFor("containerd", time.Minute, func() bool {
		c, err := net.Dial("unix", "/run/containerd/containerd.sock")
		if err == nil {
			c.Close()
		}
		return err == nil
	}); err != nil {
		return err
	}
	early, late, err := w.archives()
	if err != nil {
		return err
	}
	if err := w.importAll(early); err != nil {
		return err
	}
	if err := waitFor("apiserver", 5*time.Minute, func() bool { return healthy("https://" + config.APIServer + "/readyz") }); err != nil {
		return err
	}
	w.start("kubelet", w.bin("k8s"), "kubelet", "--config="+w.path("kubelet.yaml"), "--kubeconfig="+w.path("kubelet.kubeconfig"),
		"--hostname-override="+w.node.Name(), "--node-ip="+w.node.IP(), "--root-dir=/var/lib/kubelet", "--v=2")
	w.start("kube-proxy", w.bin("k8s"), "kube-proxy", "--config="+w.path("proxy.yaml"))
	if err := w.importAll(late); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(ImagesDone), nil, 0o644); err != nil {
		return fmt.Errorf("say that the images are there: %w", err)
	}
	select {}
}

func (w *worker) start(name string, argv ...string) {
	w.reaper.Supervise(&proc.Unit{Name: name, Argv: argv, LogFile: w.path("log", name+".log")})
}

// archives lists the images to import before the kubelet starts and after. A
// node that has had them all before its crash has only those to import that
// were loaded since.
func (w *worker) archives() (early, late []string, err error) {
	loaded, err1 := filepath.Glob(filepath.Join(w.dir.Loaded(), "*.tar"))
	all, err2 := filepath.Glob(filepath.Join(w.dir.ImagesLink(), "*.tar"))
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("list images: %w", err)
	}
	if _, err := os.Stat(w.path(ImagesDone)); err == nil {
		return loaded, nil, nil
	}
	slices.Sort(all)
	for _, f := range all {
		if filepath.Base(f) >= lateImages {
			late = append(late, f)
		} else {
			early = append(early, f)
		}
	}
	return early, append(late, loaded...), nil
}

func (w *worker) importAll(files []string) error {
	t := time.Now()
	for _, f := range files {
		if err := w.reaper.Run(append([]string{w.bin("ctr")}, ImportArgs(f)...)...); err != nil {
			return fmt.Errorf("import image: %w", err)
		}
	}
	log.Printf("%d images imported in %v", len(files), time.Since(t).Round(time.Millisecond))
	return nil
}

// ImportArgs are the arguments with which ctr imports an archive for the kubelet.
func ImportArgs(archive string) []string {
	return []string{"-n", "k8s.io", "images", "import", archive}
}
