package mysqltest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// Hang stops the server's process until resume is called or the test ends. A thread that runs on another
// core when the signal is sent goes on for a moment, long enough to answer a query: Hang returns when every thread stands still.
func (s *Server) Hang(t testing.TB) (resume func()) {
	t.Helper()
	pid := s.Supervisor.State().Pid
	check(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	gomega.NewWithT(t).Eventually(func() ([]string, error) { return moving(pid) }).
		WithTimeout(10*time.Second).WithPolling(time.Millisecond).Should(gomega.BeEmpty(), "threads that go on")
	return resume
}

// moving are the threads of a process that are not stopped.
func moving(pid int) ([]string, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("process %d has no threads", pid)
	}
	var found []string
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended since
		}
		if err != nil {
			return nil, err
		}
		// The state is the field after the name, which is in parentheses and may hold anything.
		state := string(stat[bytes.LastIndexByte(stat, ')')+1:])
		if !strings.HasPrefix(state, " T ") {
			found = append(found, string(stat))
		}
	}
	return found, nil
}
