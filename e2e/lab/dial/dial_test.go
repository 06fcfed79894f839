package dial

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fakeLab answers at the control socket with answer and whatever serve does after.
func fakeLab(t *testing.T, serve func(name string, c net.Conn)) Lab {
	t.Helper()
	dir := t.TempDir()
	ln, err := net.Listen("unix", dir+"/control.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		q, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		serve(q.URL.Query().Get("name"), c)
	}()
	return Lab(dir)
}

func TestBytesThatComeWithTheAnswerAreNotLost(t *testing.T) {
	lab := fakeLab(t, func(name string, c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhello from "+name+" ")
		io.Copy(c, c)
	})
	c, err := lab.Dial(t.Context(), "db.demo:3306")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "echo"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || string(b) != "hello from db.demo:3306 echo" {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestARefusalSaysWhy(t *testing.T) {
	lab := fakeLab(t, func(_ string, c net.Conn) {
		io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 13\r\n\r\nno route to x")
	})
	_, err := lab.Dial(t.Context(), "x:1")
	if err == nil || !strings.Contains(err.Error(), "no route to x") {
		t.Errorf("error is %v", err)
	}
}

func TestTheContextEndsADialThatIsNotAnswered(t *testing.T) {
	lab := fakeLab(t, func(_ string, c net.Conn) { io.Copy(io.Discard, c) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lab.Dial(ctx, "x:1"); err == nil {
		t.Error("no error")
	}
	var ne net.Error
	_, err := lab.Dial(ctx, "x:1")
	if err == nil || (errors.As(err, &ne) && !ne.Timeout()) {
		t.Errorf("error is %v", err)
	}
}

func TestALabThatIsNotUpIsNamedAsTheReason(t *testing.T) {
	_, err := Lab(t.TempDir()).Dial(t.Context(), "x:1")
	if err == nil || !strings.Contains(err.Error(), "is it up?") {
		t.Errorf("error is %v", err)
	}
}
