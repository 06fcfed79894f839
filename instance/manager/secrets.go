package manager

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// secrets are the mounted Secrets. What was there once is used for as long as the manager lives when the Secret has it
// no more: a value that somebody emptied is no password that the servers know.
type secrets struct {
	dir string // a directory for each account

	mu   sync.Mutex
	last map[string]string
}

func newSecrets(dir string) *secrets { return &secrets{dir: dir, last: map[string]string{}} }

// value is one value as it is now, else the last one that was not empty.
func (s *secrets) value(account, key string) (string, error) {
	path := filepath.Join(s.dir, account, key)
	b, err := os.ReadFile(path)
	text := strings.TrimRight(string(b), "\r\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[path]
	switch {
	case err == nil && text != "":
		s.last[path] = text
		return text, nil
	case known:
		return last, nil
	case err != nil:
		return "", fmt.Errorf("reading the %s of %s: %w", key, account, err)
	}
	return "", nil
}
