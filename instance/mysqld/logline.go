package mysqld

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// LogLine is one line of the server's error log.
type LogLine struct {
	// Level is System, Error, Warning or Note; empty when the line is not in the server's own format.
	Level string
	// Code is such as MY-010095, Subsystem such as InnoDB.
	Code      string
	Subsystem string
	// Message is the rest, or the whole line.
	Message string
}

// ParseLogLine reads the format of MySQL 8 and later:
//
//	2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-010095] [Server] Failed to access directory…
//
// Any text gives a LogLine.
func ParseLogLine(line string) LogLine {
	whole := LogLine{Message: line}
	_, rest, ok := strings.Cut(line, " ") // time
	if !ok {
		return whole
	}
	_, rest, ok = strings.Cut(rest, " ") // thread
	if !ok {
		return whole
	}
	var l LogLine
	for _, field := range []*string{&l.Level, &l.Code, &l.Subsystem} {
		if *field, rest, ok = bracketed(rest); !ok {
			return whole
		}
	}
	l.Level = strings.ToUpper(l.Level[:1]) + strings.ToLower(l.Level[1:])
	l.Message = rest
	return l
}

func bracketed(text string) (inside, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "[")
	if !ok {
		return "", "", false
	}
	inside, rest, ok = strings.Cut(text, "]")
	return inside, strings.TrimPrefix(rest, " "), ok && inside != ""
}

// afterwards are the errors by which the server only says that it gives up because of the one before.
var afterwards = map[string]bool{
	"MY-010119": true, // Aborting
	"MY-013236": true, // The designated data directory … is unusable.
}

// ServerLog passes the server's log lines on and remembers the last error among them.
type ServerLog struct {
	log logr.Logger
	mu  sync.Mutex
	err string
}

// NewServerLog logs to log.
func NewServerLog(log logr.Logger) *ServerLog { return &ServerLog{log: log} }

// Take is for Command.Output.
func (s *ServerLog) Take(line string) {
	l := ParseLogLine(line)
	if l.Level == "Error" {
		if afterwards[l.Code] {
			s.log.Info(l.Message, "level", l.Level, "code", l.Code, "subsystem", l.Subsystem)
			return
		}
		// What replication meets ends no server, and is in its own facts.
		if l.Subsystem != "Repl" {
			s.mu.Lock()
			s.err = l.Code + " " + l.Message
			s.mu.Unlock()
		}
		s.log.Error(nil, l.Message, "code", l.Code, "subsystem", l.Subsystem)
		return
	}
	if l.Level == "" {
		s.log.Info(l.Message)
		return
	}
	s.log.Info(l.Message, "level", l.Level, "code", l.Code, "subsystem", l.Subsystem)
}

// LastError is the last error line; empty when there was none.
func (s *ServerLog) LastError() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
