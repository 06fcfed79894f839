package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// say prints what is done, each line with the time since the beginning.
type say struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

func newSay(out io.Writer) *say { return &say{out: out, begin: time.Now()} }

func (s *say) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (s *say) detail(text string) { s.line("    %s", text) }

// text prints what another program said, as it is.
func (s *say) text(t string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "\n%s\n", t)
}

// step says what is done, does it, and says how long it took.
func (s *say) step(what string, do func() error) error {
	s.line("%s", what)
	begin := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.detail(fmt.Sprintf("done in %.1f s", time.Since(begin).Seconds()))
	return nil
}

// details passes on the lines of a program that runs, indented.
type details struct {
	say  *say
	rest bytes.Buffer
}

func (d *details) Write(b []byte) (int, error) {
	d.rest.Write(b)
	for {
		n := bytes.IndexByte(d.rest.Bytes(), '\n')
		if n < 0 {
			return len(b), nil
		}
		d.say.detail(string(bytes.TrimRight(d.rest.Next(n+1), "\n")))
	}
}
