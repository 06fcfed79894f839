package observer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// Pauses between attempts to connect: the first, and the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// maxReport bounds one report, in bytes: sets of transactions can be long.
const maxReport = 16 << 20

var (
	errSilent    = errors.New("nothing was heard in time")
	errReconnect = errors.New("connecting anew with other credentials")
)

// watcher follows one Pod.
type watcher struct {
	group  *group
	target Target
	ctx    context.Context //nolint:containedctx // the life of the watcher
	stop   context.CancelFunc

	mu      sync.Mutex
	asked   bool
	report  *protocol.Report
	arrived time.Time
	shape   shape
	// sever ends the present stream.
	sever context.CancelCauseFunc
}

func newWatcher(g *group, t Target) *watcher {
	ctx, stop := context.WithCancel(g.observer.ctx)
	return &watcher{group: g, target: t, ctx: ctx, stop: stop}
}

// run streams until the watcher is stopped. A stream that breaks is tried again at once, and then with
// growing pauses.
func (w *watcher) run() {
	pause := firstPause
	for w.ctx.Err() == nil {
		started := w.group.observer.o.Now()
		heard, err := w.stream()
		if w.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errSilent) || !heard && !errors.Is(err, errReconnect) {
			w.lost(err)
		}
		if heard && w.group.observer.o.Now().Sub(started) >= longestPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-w.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, longestPause)
	}
}

// stream reads one stream to its end; heard tells that a report came.
func (w *watcher) stream() (heard bool, err error) {
	ctx, sever := context.WithCancelCause(w.ctx)
	defer sever(nil)
	w.mu.Lock()
	w.sever = sever
	w.mu.Unlock()
	watchdog := time.AfterFunc(min(connectTimeout, w.group.observer.o.Silence), func() { sever(errSilent) })
	defer watchdog.Stop()
	response, err := w.do(ctx, http.MethodGet, protocol.PathStatus+"?watch=true", nil)
	if err != nil {
		return false, because(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxReport)
	for lines.Scan() {
		report, err := w.parse(lines.Bytes())
		if err != nil {
			return false, err
		}
		watchdog.Reset(w.group.observer.o.Silence)
		heard = true
		w.took(report)
	}
	if err := lines.Err(); err != nil {
		return heard, because(ctx, fmt.Errorf("reading reports of %s: %w", w.target.Instance, err))
	}
	return heard, fmt.Errorf("%s ended its stream of reports", w.target.Instance)
}

// because prefers the reason for which we ended a request to what the transport says of it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// parse accepts a report of the very Pod that is followed.
func (w *watcher) parse(line []byte) (*protocol.Report, error) {
	r := &protocol.Report{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("report of %s: %w", w.target.Instance, err)
	}
	if err := r.From(w.target.Instance, w.target.PodUID, w.group.clusterUID); err != nil {
		return nil, err
	}
	return r, nil
}

// took keeps a report, unless a later one of the same manager is there already.
func (w *watcher) took(r *protocol.Report) {
	next := shapeOf(r)
	w.mu.Lock()
	if old := w.report; old != nil && old.Boot == r.Boot && old.Sequence > r.Sequence {
		w.mu.Unlock()
		return
	}
	changed := !w.asked || w.report == nil || w.shape != next
	first := w.report == nil
	w.asked, w.report, w.arrived, w.shape = true, r, w.group.observer.o.Now(), next
	w.mu.Unlock()
	if first {
		w.log().V(1).Info("an instance answers")
	}
	if changed {
		w.group.observer.wake(w.group.key)
	}
}

// lost notes that the instance is silent.
func (w *watcher) lost(err error) {
	w.mu.Lock()
	before, known := w.report, w.asked
	w.asked, w.report = true, nil
	w.mu.Unlock()
	if before != nil {
		w.log().Info("an instance does not answer", "error", err.Error())
	}
	if before != nil || !known {
		w.group.observer.wake(w.group.key)
	}
}

// reconnect ends the present stream; the next one uses the present credentials.
func (w *watcher) reconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sever != nil {
		w.sever(errReconnect)
	}
}

func (w *watcher) sight() Sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Sight{Report: w.report, Asked: w.asked}
	if w.report != nil {
		s.Age = w.group.observer.o.Now().Sub(w.arrived)
	}
	return s
}
