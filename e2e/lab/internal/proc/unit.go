package proc

import (
	"fmt"
	"log"
	"os"
	"sync"
	"syscall"
	"time"
)

// restartDelay is how long a unit stays down after it ended.
const restartDelay = time.Second

// Unit is a program that is kept running.
type Unit struct {
	Name string
	Argv []string
	// LogFile gets the program's output, appended.
	LogFile string

	mu     sync.Mutex
	pid    int
	starts int
}

// Status is the pid, or 0 while the unit is down, and how often it was started.
func (u *Unit) Status() (pid, starts int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pid, u.starts
}

// Supervise starts the unit and starts it again a second after each end, until
// this process ends.
func (r *Reaper) Supervise(u *Unit) {
	go func() {
		for {
			if err := r.runOnce(u); err != nil {
				log.Printf("%s: %v", u.Name, err)
			}
			time.Sleep(restartDelay)
		}
	}()
}

func (r *Reaper) runOnce(u *Unit) error {
	f, err := os.OpenFile(u.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	pid, ended, err := r.Start(f, u.Argv, &syscall.SysProcAttr{Setpgid: true})
	f.Close()
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.pid, u.starts = pid, u.starts+1
	u.mu.Unlock()
	log.Printf("%s: started, pid %d", u.Name, pid)
	ws := <-ended
	u.mu.Lock()
	u.pid = 0
	u.mu.Unlock()
	log.Printf("%s: %s", u.Name, Describe(ws))
	return nil
}
