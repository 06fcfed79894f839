package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/dial"
	"cnmsql.co/operator/e2e/lab/internal/inside"
	"cnmsql.co/operator/e2e/lab/internal/proc"
)

var errDown = errors.New("the lab is not up; lab up starts it")

// rootPID is the root's process number, if the lab is up.
func (l lab) rootPID() (int, error) {
	id, err := proc.ReadIdentity(l.dir.RootID())
	if err != nil {
		return 0, err
	}
	if !id.Alive() {
		return 0, errDown
	}
	return id.PID, nil
}

// control asks the root.
func (l lab) control(ctx context.Context, method, path string) ([]byte, error) {
	if _, err := l.rootPID(); err != nil {
		return nil, err
	}
	c := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", l.dir.Socket())
		},
	}}
	q, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the lab: %w", err)
	}
	r, err := c.Do(q)
	if err != nil {
		return nil, fmt.Errorf("ask the lab: %w", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the lab: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(b)))
	}
	return b, nil
}

func (l lab) status(ctx context.Context) (s inside.Status, err error) {
	b, err := l.control(ctx, http.MethodGet, "/status")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read the lab's status: %w", err)
	}
	return s, nil
}

// nodeCommand is a command whose only argument is a node.
func nodeCommand(verb string) func(context.Context, lab, []string) error {
	return func(ctx context.Context, l lab, args []string) error {
		_, err := l.control(ctx, http.MethodPost, "/"+verb+"?name="+args[0])
		return err
	}
}

// cut is nodeCommand with the side to cut off.
func cut(ctx context.Context, l lab, args []string) error {
	fs := flags("cut")
	from := fs.String("from", "", "api or peers; without it, everything")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%w: lab cut nX [--from api|peers]", errUsage)
	}
	_, err := l.control(ctx, http.MethodPost, "/cut?name="+url.QueryEscape(args[0])+"&from="+url.QueryEscape(*from))
	return err
}

func status(ctx context.Context, l lab, _ []string) error {
	pid, err := l.rootPID()
	if err != nil {
		return err
	}
	s, err := l.status(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("root       pid %d, state in %s\n", pid, l.dir)
	if id, err := proc.ReadIdentity(l.dir.ForwarderID()); err == nil && id.Alive() {
		fmt.Printf("forwarder  pid %d, kubeconfig %s\n", id.PID, l.dir.Kubeconfig())
	} else {
		fmt.Println("forwarder  DOWN: the kubeconfig does not work; lab down and lab up mend it")
	}
	for _, n := range s.Nodes {
		fmt.Printf("%-10s %s\n", n.Name, describeNode(n))
	}
	for _, u := range s.Units {
		state := "running"
		if u.PID == 0 {
			state = "DOWN, see " + l.dir.Log(u.Name)
		}
		fmt.Printf("%-24s %s, restarted %d times\n", u.Name, state, u.Restarts)
	}
	return nil
}

func describeNode(n inside.NodeStatus) string {
	switch {
	case n.PID == 0:
		return "not running; lab start " + n.Name + " starts it"
	case n.Cut:
		return "running, cut off; lab heal " + n.Name + " plugs it in"
	case len(n.CutFrom) > 0:
		return fmt.Sprintf("running, cut off from %v; lab heal %s undoes that", n.CutFrom, n.Name)
	}
	return "running"
}

// enter is the command line that leads into the root's namespaces or a node's.
func (l lab) enter(ctx context.Context, where string) ([]string, error) {
	root, err := l.rootPID()
	if err != nil {
		return nil, err
	}
	into := func(pid int) []string {
		return []string{"nsenter", "-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "--"}
	}
	if where == "cp" {
		return into(root), nil
	}
	s, err := l.status(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range s.Nodes {
		if n.Name == where && n.PID == 0 {
			return nil, fmt.Errorf("%s is not running", where)
		}
		if n.Name == where {
			return append(into(root), into(n.PID)...), nil // its pid is one of the root's namespace
		}
	}
	return nil, fmt.Errorf("%q is no place in this lab: want cp or one of its %d nodes", where, len(s.Nodes))
}

func execIn(ctx context.Context, l lab, args []string) error {
	argv, err := l.enter(ctx, args[0])
	if err != nil {
		return err
	}
	// The lab's own programs, such as ctr, are at hand there.
	if err := os.Setenv("PATH", l.dir.BinLink()+":"+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("run %s: %w", args[1], err)
	}
	return replace(append(argv, args[1:]...))
}

func kubectl(_ context.Context, l lab, args []string) error {
	if _, err := l.rootPID(); err != nil {
		return err
	}
	return replace(append(l.kubectl(), args...))
}

func (l lab) kubectl() []string {
	return []string{filepath.Join(l.dir.BinLink(), "k8s"), "kubectl", "--kubeconfig=" + l.dir.Kubeconfig()}
}

func kubeconfig(_ context.Context, l lab, _ []string) error {
	if _, err := l.rootPID(); err != nil {
		return err
	}
	fmt.Println(l.dir.Kubeconfig())
	return nil
}

// replace runs argv in place of this process.
func replace(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	return fmt.Errorf("run %s: %w", argv[0], syscall.Exec(path, argv, os.Environ()))
}

// inLab dials into this lab.
func (l lab) inLab() dial.Lab { return dial.Lab(string(l.dir)) }
