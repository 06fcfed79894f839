package mysqld

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	maxLine = 64 << 10 // bytes
	// drainTime is how long the output of a process that is gone is waited for: something that it started may
	// have inherited the pipe and never close it.
	drainTime = 500 * time.Millisecond
)

// outputReader hands the lines that a process writes to a function.
type outputReader struct {
	pipe *os.File
	take func(string)
	end  chan struct{}
	once sync.Once
}

// openOutput makes the pipe; the second file is for the process.
func openOutput(take func(string)) (*outputReader, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("making a pipe for the output: %w", err)
	}
	return &outputReader{pipe: r, take: take, end: make(chan struct{})}, w, nil
}

func (o *outputReader) start() {
	go func() {
		defer close(o.end)
		defer o.close()
		b := bufio.NewReaderSize(o.pipe, maxLine)
		for {
			line, tooLong, err := b.ReadLine()
			if len(line) > 0 && o.take != nil {
				o.take(string(line))
			}
			for tooLong && err == nil { // the rest of an overlong line
				_, tooLong, err = b.ReadLine()
			}
			if err != nil {
				return
			}
		}
	}()
}

func (o *outputReader) drain() {
	select {
	case <-o.end:
	case <-time.After(drainTime):
		o.close()
	}
}

func (o *outputReader) close() { o.once.Do(func() { _ = o.pipe.Close() }) }
