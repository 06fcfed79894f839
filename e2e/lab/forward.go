package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"syscall"

	"cnmsql.co/operator/e2e/lab/dial"
	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/pipe"
	"cnmsql.co/operator/e2e/lab/internal/proc"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// forward leads a port of this machine into the lab until it is interrupted.
func forward(ctx context.Context, l lab, args []string) error {
	if _, err := l.rootPID(); err != nil {
		return err
	}
	ln, err := listenLocal(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Printf("forwarding %s to %s\n", ln.Addr(), args[1])
	return serveForward(ctx, ln, l.inLab(), args[1])
}

// listenLocal listens on a loopback address only: the lab is nobody else's.
func listenLocal(ctx context.Context, addr string) (*net.TCPListener, error) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: LISTEN is ADDRESS:PORT: %w", errUsage, err)
	}
	if !a.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %s is not a loopback address", errUsage, addr)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the lab: %w", err)
	}
	return ln.(*net.TCPListener), nil
}

// serveForward joins every connection with target until ctx ends.
func serveForward(ctx context.Context, ln *net.TCPListener, in dial.Lab, target string) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		c, err := ln.AcceptTCP()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the listener was closed because somebody asked us to stop
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		go func() {
			defer c.Close()
			u, err := in.Dial(ctx, target)
			if err != nil {
				log.Print(err)
				return
			}
			defer u.Close()
			pipe.Join(c, u.(*dial.Conn), u)
		}()
	}
}

// startForwarder starts the process that listens for the kubeconfig's users,
// with a listener that is open already, and records its identity.
func (l lab) startForwarder(ln *net.TCPListener) error {
	f, err := ln.File()
	if err != nil {
		return fmt.Errorf("hand over the listener: %w", err)
	}
	defer f.Close()
	out, err := os.Create(l.dir.Log("forwarder"))
	if err != nil {
		return fmt.Errorf("start the forwarder: %w", err)
	}
	defer out.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the forwarder: %w", err)
	}
	c := exec.Command(self, initForwarder, string(l.dir)) //nolint:noctx // it outlives this command
	c.Stdout, c.Stderr, c.ExtraFiles = out, out, []*os.File{f}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return l.launch(c, l.dir.ForwarderID())
}

// launch starts a process that outlives this command and records its identity.
func (l lab) launch(c *exec.Cmd, file string) error {
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.Args[1], err)
	}
	id, err := proc.Identify(c.Process.Pid)
	if err == nil {
		err = state.Write(file, []byte(id.String()), 0o644)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record %s: %w", c.Args[1], err), c.Process.Kill())
	}
	return c.Process.Release()
}

// runForwarder is the forwarder's process. It ends when the lab does.
func runForwarder(d state.Dir) error {
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	hold, err := net.Dial("unix", d.Socket()) //nolint:noctx // as long as the lab lives
	if err != nil {
		return fmt.Errorf("hold on to the lab: %w", err)
	}
	if _, err := io.WriteString(hold, "GET /hold HTTP/1.1\r\nHost: lab\r\n\r\n"); err != nil {
		return fmt.Errorf("hold on to the lab: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, hold) // returns when the root is gone
		log.Print("the lab has ended")
		stop()
	}()
	return serveForward(ctx, ln.(*net.TCPListener), dial.Lab(string(d)), config.APIServer)
}
