package main

import (
	"fmt"
	"strings"
	"time"
)

// outcomes condenses the answers that one writer gets: a line when they change, none for more of the same.
// It is used by one goroutine.
type outcomes struct {
	t     *timeline
	who   string
	last  string
	count int
}

// slow is how long an acknowledged write may take before it is worth a line of its own.
const slow = 300 * time.Millisecond

func (o *outcomes) add(sent, now time.Time, err error) {
	if o == nil {
		return
	}
	what := "acknowledged"
	if err != nil {
		what = brief(err.Error())
	}
	if what == o.last && now.Sub(sent) < slow {
		o.count++
		return
	}
	before := ""
	if o.count > 1 && what != o.last {
		before = fmt.Sprintf(" (after %d × %s)", o.count, o.last)
	}
	took := ""
	if now.Sub(sent) >= slow {
		took = fmt.Sprintf(", %d ms after it was sent", now.Sub(sent).Milliseconds())
	}
	o.t.addAt(now, o.who, "%s%s%s", what, took, before)
	o.last, o.count = what, 1
}

// known are errors with words of their own, by what they contain.
var known = []struct{ part, brief string }{
	{"Error 1290", "refused: read-only"},
	{"Error 3032", "refused: offline"},
	{"connection refused", "no connection: refused"},
	{"look up", "no connection: its name is not known"},
	{"i/o timeout", "no connection: time is up"},
	{"invalid connection", "connection lost"},
	{"bad connection", "connection given up: read-only"},
}

// brief is an error without what differs from one attempt to the next.
func brief(text string) string {
	for _, k := range known {
		if strings.Contains(text, k.part) {
			return k.brief
		}
	}
	if n := strings.Index(text, ": read tcp"); n >= 0 {
		text = text[:n]
	}
	if len(text) > 110 {
		text = text[:110] + "…"
	}
	return text
}
