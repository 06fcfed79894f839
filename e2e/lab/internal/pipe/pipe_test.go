package pipe

import (
	"io"
	"net"
	"testing"
)

// pair makes the two ends of a TCP connection.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func TestOneDirectionMayEndBeforeTheOther(t *testing.T) {
	client, a := pair(t)
	b, server := pair(t)
	done := make(chan struct{})
	go func() { Join(a, b, b); close(done) }()
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	client.CloseWrite()
	got, err := io.ReadAll(server) // sees the end, so it was passed on
	if err != nil || string(got) != "question" {
		t.Fatalf("server read %q, %v", got, err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	got, err = io.ReadAll(client)
	if err != nil || string(got) != "answer" {
		t.Errorf("client read %q, %v", got, err)
	}
	<-done
}
