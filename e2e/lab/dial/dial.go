// Package dial opens TCP connections from outside a lab to addresses inside it:
// pods, Services and nodes. It is for tests and tools; it goes through the
// lab's control socket, so it works on the machine that the lab runs on.
//
// It imports the standard library alone.
package dial

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// defaultDir is where a lab lives unless LAB_DIR says otherwise.
const defaultDir = "/var/tmp/cnmsql-lab"

// Lab is the state directory of a running lab.
type Lab string

// Default is the lab of this machine: LAB_DIR, or the usual directory.
func Default() Lab {
	if d := os.Getenv("LAB_DIR"); d != "" {
		return Lab(d)
	}
	return Lab(defaultDir)
}

// Dial connects to HOST:PORT inside the lab. HOST is an address or a name in
// the cluster's DNS: "db.demo", "db.demo.svc" and "db.demo.svc.cluster.local"
// are the same Service. The lab gives up after 5 seconds; ctx may do so sooner.
func (l Lab) Dial(ctx context.Context, target string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", string(l)+"/control.sock")
	if err != nil {
		return nil, fmt.Errorf("dial %s in the lab: %w; is it up?", target, err)
	}
	in, err := request(ctx, c.(*net.UnixConn), target)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("dial %s in the lab: %w", target, err)
	}
	return in, nil
}

// DialContext has the shape that rest.Config.Dial, http.Transport and the MySQL
// driver ask for. The network is TCP whatever its name.
func (l Lab) DialContext(ctx context.Context, _, target string) (net.Conn, error) {
	return l.Dial(ctx, target)
}

// request asks for the connection. Until it is there, the end of ctx closes c.
func request(ctx context.Context, c *net.UnixConn, target string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	if _, err := fmt.Fprintf(c, "GET /dial?name=%s HTTP/1.1\r\nHost: lab\r\n\r\n", url.QueryEscape(target)); err != nil {
		return nil, err
	}
	br := bufio.NewReader(c)
	r, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		defer r.Body.Close()
		b, err := io.ReadAll(io.LimitReader(r.Body, 1000))
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(b)))
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return &Conn{c, br}, nil
}

// Conn is a connection into the lab. Its addresses are those of the control
// socket.
type Conn struct {
	*net.UnixConn
	ahead *bufio.Reader
}

// Read reads first what came together with the lab's answer.
func (c *Conn) Read(b []byte) (int, error) { return c.ahead.Read(b) }
