package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"cnmsql.co/operator/instance/mysqld"
)

// initialiseOptions go at the end of the command line, where they win over my.cnf. Without flushing after
// each step it is quicker by what a flush costs times some 250; flush follows.
var initialiseOptions = []string{
	"--initialize-insecure", // the accounts file gives root its password
	"--super-read-only=OFF",
	"--read-only=OFF",
	"--skip-log-bin",
	"--performance-schema=OFF",
	"--innodb-flush-method=nosync",
	"--innodb-doublewrite=OFF",
	"--innodb-flush-log-at-trx-commit=0",
}

// Initialise makes an empty server with its accounts in the data directory that the command's my.cnf names,
// which must be empty, and returns when it is on the disk. When ctx ends first, the server is killed and
// what it made is worthless.
func Initialise(ctx context.Context, reaper *mysqld.Reaper, c mysqld.Command, dataDir string, a Accounts, log logr.Logger) error {
	if err := a.validate(); err != nil {
		return err
	}
	secret, err := hidden(strings.Join(a.statements(), ";\n") + ";\n")
	if err != nil {
		return err
	}
	defer secret.Close()
	lines := mysqld.NewServerLog(log)
	forget, err := loosen(&c)
	if err != nil {
		return err
	}
	defer forget()
	c.Args = slices.Concat(c.Args, initialiseOptions, []string{fmt.Sprintf("--init-file=/proc/self/fd/%d", 3+len(c.Files))})
	c.Files = append(slices.Clone(c.Files), secret)
	c.Output = lines.Take
	p, err := reaper.Start(c)
	if err != nil {
		return fmt.Errorf("initialising the server: %w", err)
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		_ = p.Kill()
		<-p.Gone()
		return fmt.Errorf("initialising the server: %w", context.Cause(ctx))
	}
	if exit.Code != 0 {
		return fmt.Errorf("initialising the server: %s: %w", exit, errors.New(orUnknown(lines.LastError())))
	}
	return flush(dataDir)
}

// loosen makes the command read a copy of its option file in which an option that the server does not know is
// no error: while it initialises it loads no plugins, and so does not know theirs. The function that it
// returns removes the copy.
func loosen(c *mysqld.Command) (func(), error) {
	const option = "--defaults-file="
	i := slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, option) })
	if i < 0 {
		return func() {}, nil
	}
	path := strings.TrimPrefix(c.Args[i], option)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the option file: %w", err)
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.ContainsAny(l[:1], "#;[!") && !strings.HasPrefix(strings.ToLower(l), "loose") {
			lines[i] = "loose_" + l
		}
	}
	loose := path + ".initialise"
	if err := os.WriteFile(loose, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		return nil, fmt.Errorf("writing an option file to initialise with: %w", err)
	}
	c.Args = slices.Clone(c.Args)
	c.Args[i] = option + loose
	return func() { _ = os.Remove(loose) }, nil
}

func orUnknown(text string) string {
	if text == "" {
		return "its log has no error"
	}
	return text
}

// hidden is a file in memory that has no name and is not on any disk.
func hidden(content string) (*os.File, error) {
	fd, err := unix.MemfdCreate("accounts", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "accounts")
	if _, err := bytes.NewBufferString(content).WriteTo(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return f, nil
}
