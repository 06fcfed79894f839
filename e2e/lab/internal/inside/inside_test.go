package inside

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

func testWorker(t *testing.T, files ...string) *worker {
	t.Helper()
	d := state.Dir(t.TempDir())
	for _, f := range files {
		if err := state.Write(d.Path(f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &worker{dir: d, node: 1}
}

func names(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, filepath.Base(p))
	}
	return out
}

func TestANodeImportsWhatItNeedsToBecomeReadyBeforeTheRest(t *testing.T) {
	w := testWorker(t, "images/3-mysql.tar", "images/0-pause.tar", "images/1-coredns.tar", "images/2-testapp.tar", "loaded/x.tar")
	early, late, err := w.archives()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(early), []string{"0-pause.tar", "1-coredns.tar", "2-testapp.tar"}; !slices.Equal(got, want) {
		t.Errorf("early %q, want %q", got, want)
	}
	if got, want := names(late), []string{"3-mysql.tar", "x.tar"}; !slices.Equal(got, want) {
		t.Errorf("late %q, want %q", got, want)
	}
}

func TestANodeThatStartsAgainImportsOnlyWhatWasLoadedSince(t *testing.T) {
	w := testWorker(t, "images/0-pause.tar", "loaded/x.tar", "n1/"+ImagesDone)
	early, late, err := w.archives()
	if err != nil || !slices.Equal(names(early), []string{"x.tar"}) || late != nil {
		t.Errorf("early %q, late %q, %v", early, late, err)
	}
}

func ask(c *root, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.handler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestControlRefusesNodesThatDoNotExistOrDoNotRun(t *testing.T) {
	c := &root{nodes: []*machine{{node: 1}}}
	for target, want := range map[string]struct {
		code int
		text string
	}{
		"/cut?name=n2":     {http.StatusNotFound, "this lab has no n2"},
		"/cut?name=../etc": {http.StatusNotFound, "is no node"},
		"/kill?name=n1":    {http.StatusConflict, "n1 is not running"},
		"/heal?name=n1":    {http.StatusConflict, "n1 is not running"},
		"/cut?name=n1":     {http.StatusConflict, "n1 is not running"},
		"/explode?name=n1": {http.StatusNotFound, ""},
	} {
		w := ask(c, http.MethodPost, target)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %q", target, w.Code, w.Body)
		}
	}
	if w := ask(c, http.MethodGet, "/kill?name=n1"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a GET that kills is answered %d", w.Code)
	}
}

func TestANodeIsCutOffFromKnownSidesOnly(t *testing.T) {
	c := &root{nodes: []*machine{{node: 1, pid: 77}}}
	if w := ask(c, http.MethodPost, "/cut?name=n1&from=moon"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "api or peers") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestARunningNodeIsNotStartedTwice(t *testing.T) {
	c := &root{nodes: []*machine{{node: 1, pid: 77}}}
	if w := ask(c, http.MethodPost, "/start?name=n1"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "is running") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestStatusNamesEveryNode(t *testing.T) {
	c := &root{nodes: []*machine{{node: 1, pid: 7}, {node: 2, pid: 8, cut: true, cutFrom: []config.Side{config.FromAPI}}, {node: 3}}}
	var s Status
	if err := json.Unmarshal(ask(c, http.MethodGet, "/status").Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	want := []NodeStatus{{"n1", 7, false, nil}, {"n2", 8, true, []config.Side{config.FromAPI}}, {"n3", 0, false, nil}}
	if !reflect.DeepEqual(s.Nodes, want) {
		t.Errorf("got %v, want %v", s.Nodes, want)
	}
}

func TestDialToNowhereSaysSo(t *testing.T) {
	w := ask(&root{}, http.MethodGet, "/dial?name=nonsense")
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "nonsense") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestTheGracePeriodIsLongerThanTheNodesLease(t *testing.T) {
	fs, err := config.Files(config.Places{State: "/s", Bin: "/b"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(fs["kubelet.yaml"]), "nodeLeaseDurationSeconds: 8\n") ||
		!slices.Contains(controllerFlags("/s"), "--node-monitor-grace-period=16s") {
		t.Error("lease and grace period are no longer 8 s and 16 s: a node must have missed renewals before it is lost")
	}
}
