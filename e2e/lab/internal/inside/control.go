package inside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/pipe"
)

// Status is what the control socket says at /status.
type Status struct {
	Nodes []NodeStatus
	Units []UnitStatus
}

// NodeStatus is a node's state. PID is in the root's PID namespace, 0 when the
// node does not run.
type NodeStatus struct {
	Name string
	PID  int
	// Cut tells that the cable is unplugged, CutFrom what else the node cannot reach.
	Cut     bool
	CutFrom []config.Side `json:",omitempty"`
}

// UnitStatus is the state of a program of the control plane. Restarts counts
// its starts after the first.
type UnitStatus struct {
	Name          string
	PID, Restarts int
}

// dialTimeout limits a connection into the lab, name look-up included.
const dialTimeout = 5 * time.Second

func (c *root) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /dial", c.dial)
	m.HandleFunc("GET /status", c.status)
	m.HandleFunc("GET /hold", func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	m.HandleFunc("POST /cut", func(w http.ResponseWriter, q *http.Request) {
		c.onNode(func(n *machine) error { return c.cut(n, config.Side(q.URL.Query().Get("from"))) })(w, q)
	})
	m.HandleFunc("POST /heal", c.onNode(c.heal))
	m.HandleFunc("POST /kill", c.onNode(c.kill))
	m.HandleFunc("POST /start", c.onNode(c.startNode))
	return m
}

// onNode calls act with the node that the request names.
func (c *root) onNode(act func(*machine) error) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		n, err := config.ParseNode(q.URL.Query().Get("name"))
		if err == nil && int(n) > len(c.nodes) {
			err = fmt.Errorf("this lab has no %s, its last node is n%d", n.Name(), len(c.nodes))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if err := act(c.nodes[n-1]); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}

// kill ends a node as a power cut would, and returns when it is gone.
func (c *root) kill(m *machine) error {
	c.mu.Lock()
	pid := m.pid
	c.mu.Unlock()
	if pid == 0 {
		return fmt.Errorf("%s is not running", m.node.Name())
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", m.node.Name(), err)
	}
	return waitFor("end of "+m.node.Name(), 20*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return m.pid != pid
	})
}

func (c *root) status(w http.ResponseWriter, _ *http.Request) {
	var s Status
	c.mu.Lock()
	for _, m := range c.nodes {
		s.Nodes = append(s.Nodes, NodeStatus{Name: m.node.Name(), PID: m.pid, Cut: m.cut, CutFrom: m.cutFrom})
	}
	for _, u := range c.units {
		pid, starts := u.Status()
		s.Units = append(s.Units, UnitStatus{Name: u.Name, PID: pid, Restarts: max(0, starts-1)})
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s); err != nil {
		log.Printf("status: %v", err)
	}
}

// dial joins the caller with a TCP address inside the lab. After the answer's
// header the connection carries that traffic alone.
func (c *root) dial(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), dialTimeout)
	defer cancel()
	in, err := dialName(ctx, q.URL.Query().Get("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer in.Close()
	out, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer out.Close()
	if _, err := io.WriteString(out, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	pipe.Join(in.(*net.TCPConn), out.(*net.UnixConn), buf.Reader)
}

// dialName opens a connection to HOST:PORT, where HOST is an address or a name
// in the cluster's DNS.
func dialName(ctx context.Context, target string) (net.Conn, error) {
	h, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", target, err)
	}
	addrs := []string{h}
	if net.ParseIP(h) == nil {
		if addrs, err = lookup(ctx, h); err != nil {
			return nil, err
		}
	}
	var d net.Dialer
	var errs []error
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a, port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// lookup asks the cluster's DNS. The machine's resolver is never asked.
func lookup(ctx context.Context, host string) ([]string, error) {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(config.DNSIP, "53"))
	}}
	var errs []error
	for _, name := range config.LookupNames(host) {
		addrs, err := r.LookupHost(ctx, name)
		if err == nil {
			return addrs, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("look up %s: %w", host, errors.Join(errs...))
}
