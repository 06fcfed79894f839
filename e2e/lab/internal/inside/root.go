package inside

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/host"
	"cnmsql.co/operator/e2e/lab/internal/proc"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// Namespaces is how the root and every node are started.
const Namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// SystemCgroup holds the lab's own processes, beside the nodes' cgroups.
const SystemCgroup = config.Cgroup + "/system"

type root struct {
	dir    state.Dir
	self   string // the launcher's own program
	reaper *proc.Reaper
	units  []*proc.Unit

	mu    sync.Mutex
	nodes []*machine // node n is at n-1
}

// machine is a node as the root sees it.
type machine struct {
	node config.Node
	pid  int // in the root's PID namespace; 0 when it does not run
	cut  bool
	// cutFrom is what its packet filter keeps it from.
	cutFrom []config.Side
}

// Root runs the root process. It returns only with an error.
func Root(dir state.Dir, nodes int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own program: %w", err)
	}
	c := &root{dir: dir, self: self}
	for n := config.Node(1); int(n) <= nodes; n++ {
		c.nodes = append(c.nodes, &machine{node: n})
	}
	if err := c.settle(); err != nil {
		return err
	}
	// The control socket comes first: up waits through it.
	ln, err := net.Listen("unix", dir.Socket())
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	srv := &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { log.Fatalf("control socket: %v", srv.Serve(ln)) }()
	if err := c.controlPlane(); err != nil {
		return err
	}
	select {}
}

// settle makes the namespaces a place to live in: mounts, cgroups, the bridge.
func (c *root) settle() error {
	if err := freshMounts(); err != nil {
		return err
	}
	c.reaper = proc.NewReaper()
	if err := errors.Join(
		syscall.Sethostname([]byte("cp")),
		host.MakeCgroup(SystemCgroup),
		host.JoinCgroup(SystemCgroup),
	); err != nil {
		return fmt.Errorf("settle in: %w", err)
	}
	if err := runAll(c.reaper,
		"ip link set lo up", "ip link add br0 type bridge",
		"ip addr add "+config.ControlPlaneIP+"/24 dev br0", "ip link set br0 up",
		// Service addresses need some route, or a connection fails before the kube-proxy's rules can turn it.
		"ip route add "+config.ServiceCIDR+" dev br0"); err != nil {
		return fmt.Errorf("make the bridge: %w", err)
	}
	return sysctl("net/ipv4/ip_forward", "1")
}

// controlPlane starts everything in the order in which it is needed. The nodes
// import their images while etcd and the apiserver start.
func (c *root) controlPlane() error {
	c.start("etcd", etcdFlags(c.dir)...)
	for _, m := range c.nodes {
		if err := c.startNode(m); err != nil {
			return err
		}
	}
	if err := waitFor("etcd", time.Minute, func() bool { return healthy("http://" + etcd + "/readyz") }); err != nil {
		return err
	}
	c.start("kube-apiserver", apiserverFlags(c.dir)...)
	if err := waitFor("apiserver", 2*time.Minute, func() bool { return healthy("https://127.0.0.1:6443/readyz") }); err != nil {
		return err
	}
	c.start("kube-controller-manager", controllerFlags(c.dir)...)
	c.start("kube-scheduler", schedulerFlags(c.dir)...)
	c.start("kube-proxy", "--config="+c.dir.Path("n1", "proxy.yaml")) // the root stands where n1 stands
	return nil
}

func (c *root) start(name string, flags ...string) {
	argv := append([]string{filepath.Join(c.dir.BinLink(), "k8s"), name}, flags...)
	u := &proc.Unit{Name: name, Argv: argv, LogFile: c.dir.Log(name)}
	c.mu.Lock()
	c.units = append(c.units, u)
	c.mu.Unlock()
	c.reaper.Supervise(u)
}

// startNode starts a node and plugs its cable in.
func (c *root) startNode(m *machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.pid != 0 {
		return fmt.Errorf("%s is running", m.node.Name())
	}
	// A crashed node leaves its pods' cgroups; the next kubelet would stand 12 s in their recovery.
	if err := host.RemoveCgroup(m.node.Cgroup(), 5*time.Second); err != nil {
		return err
	}
	if err := host.MakeCgroup(m.node.Cgroup()); err != nil {
		return err
	}
	f, err := openLog(c.dir.Path(m.node.Name(), "log", "init.log"))
	if err != nil {
		return err
	}
	defer f.Close()
	argv := []string{c.self, "init-node", string(c.dir), m.node.Name(), strconv.Itoa(len(c.nodes))}
	pid, ended, err := c.reaper.Start(f, argv, &syscall.SysProcAttr{Setsid: true, Cloneflags: Namespaces})
	if err != nil {
		return err
	}
	m.pid, m.cut, m.cutFrom = pid, false, nil
	go func() {
		ws := <-ended
		log.Printf("node %s: %s", m.node.Name(), proc.Describe(ws))
		c.mu.Lock()
		m.pid = 0
		c.mu.Unlock()
	}()
	return c.plug(m)
}

// plug makes the node's cable and the route to its pods. Both went with an
// earlier life of the node.
func (c *root) plug(m *machine) error {
	v := m.node.Veth()
	return runAll(c.reaper,
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", v, m.pid),
		fmt.Sprintf("ip link set %s master br0 up", v),
		fmt.Sprintf("ip route replace %s via %s", m.node.PodCIDR(), m.node.IP()))
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make a log's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	return f, nil
}
