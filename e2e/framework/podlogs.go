package framework

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keepEvery is how often KeepPodLogs looks for new files.
const keepEvery = time.Second

// KeepPodLogs links the log files of all containers in the namespaces to a folder in the lab's state directory, until
// ctx ends: there they outlive their Pods. It needs neither the API server nor a network. The folder goes with the lab;
// CopyPodLogs takes what is to stay.
func (l Lab) KeepPodLogs(ctx context.Context, namespaces ...string) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		if err := l.linkLogs(namespaces); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (l Lab) keptLogs() string { return filepath.Join(l.Dir(), "kept-pod-logs") }

func (l Lab) linkLogs(namespaces []string) error {
	var errs []error
	for _, namespace := range namespaces {
		files, err := filepath.Glob(filepath.Join(l.Dir(), "n*", "pods", namespace+"_*", "*", "*.log"))
		if err != nil {
			return fmt.Errorf("looking for logs: %w", err)
		}
		for _, file := range files {
			// .../n1/pods/NAMESPACE_POD_UID/CONTAINER/0.log
			parts := strings.Split(strings.TrimPrefix(file, l.Dir()+"/"), "/")
			to := filepath.Join(l.keptLogs(), parts[2], parts[3], parts[4])
			if err := link(file, to); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func link(file, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making the folder for a log: %w", err)
	}
	err := os.Link(file, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) { // the Pod is gone already
		return nil
	}
	return fmt.Errorf("keeping a log: %w", err)
}

// CopyPodLogs copies what KeepPodLogs kept.
func (l Lab) CopyPodLogs(to string) error {
	if err := os.CopyFS(to, os.DirFS(l.keptLogs())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copying the Pods' logs: %w", err)
	}
	return nil
}
