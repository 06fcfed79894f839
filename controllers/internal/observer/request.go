package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/operator/instance/protocol"
)

// refreshTimeout bounds one round of questions to all instances of a Cluster.
const refreshTimeout = time.Second

// Refresh asks all instances of a Cluster anew and returns those who answered, by name, within a second. What
// they said is kept as their last reports.
func (o *Observer) Refresh(ctx context.Context, cluster types.NamespacedName) map[string]*protocol.Report {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]*protocol.Report{}
	)
	for _, w := range o.all(cluster) {
		group.Go(func() {
			r, err := w.ask(ctx)
			if err != nil {
				w.log().V(1).Info("an instance did not answer a question", "error", err.Error())
				return
			}
			w.took(r)
			mu.Lock()
			defer mu.Unlock()
			answers[w.target.Instance] = r
		})
	}
	group.Wait()
	return answers
}

func (o *Observer) all(cluster types.NamespacedName) []*watcher {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.groups[cluster]
	if g == nil {
		return nil
	}
	list := make([]*watcher, 0, len(g.watchers))
	for _, w := range g.watchers {
		list = append(list, w)
	}
	return list
}

// SetSemiSync asks an instance for a number of acknowledgements. It is an error when the instance is not
// followed, does not answer, or refuses.
func (o *Observer) SetSemiSync(ctx context.Context, cluster types.NamespacedName, instance string, s protocol.SemiSyncSettings) error {
	w := o.watcher(cluster, instance)
	if w == nil {
		return fmt.Errorf("instance %s of %s is not followed", instance, cluster)
	}
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the semi-sync settings: %w", err)
	}
	response, err := w.do(ctx, http.MethodPut, protocol.PathSemiSync, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return nil
}

// ask is one question for a fresh report.
func (w *watcher) ask(ctx context.Context) (*protocol.Report, error) {
	response, err := w.do(ctx, http.MethodGet, protocol.PathStatus, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("reading the report of %s: %w", w.target.Instance, err)
	}
	return w.parse(body)
}

// do sends one request. An answer that is not a success is an error with what the instance says.
func (w *watcher) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.group.url(w.target.Instance, path), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request to %s: %w", w.target.Instance, err)
	}
	response, err := w.group.client.Load().Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", w.target.Instance, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	problem := protocol.Problem{}
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&problem) // without one the status says enough
	return nil, fmt.Errorf("%s answered %s: %s", w.target.Instance, response.Status, problem.Error)
}

func (w *watcher) log() logr.Logger {
	return w.group.observer.o.Log.WithValues("cluster", w.group.key.String(), "instance", w.target.Instance, "podUID", w.target.PodUID)
}
