package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Server is the API server of one Cluster.
type Server struct {
	t    testing.TB
	http *httptest.Server

	mu      sync.Mutex
	changed chan struct{}
	version int
	cluster api.Cluster
	lease   coordinationv1.Lease
	pods    map[string]metav1.ObjectMeta
	hangs   bool
	calls   map[string]int
}

// New serves a Cluster, and its Lease with nobody as the holder, until the test ends.
func New(t testing.TB, cluster api.Cluster) *Server {
	t.Helper()
	s := &Server{t: t, changed: make(chan struct{}), version: 1000, cluster: cluster, calls: map[string]int{}, pods: map[string]metav1.ObjectMeta{}}
	s.cluster.TypeMeta = metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "Cluster"}
	s.lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	s.lease.Name, s.lease.Namespace = cluster.LeaseName(), cluster.Namespace
	s.lease.Spec.LeaseDurationSeconds = new(int32(15))
	s.cluster.ResourceVersion, s.lease.ResourceVersion = "1000", "1000"
	s.http = httptest.NewServer(s.handler())
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Config is for a client.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Hang makes the server answer nothing any more, or answer again.
func (s *Server) Hang(hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = hangs
	s.tell()
}

// Disconnect ends all connections.
func (s *Server) Disconnect() { s.http.CloseClientConnections() }

// Calls is how many requests there were, as "GET lease" or "PUT cluster".
func (s *Server) Calls(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what]
}

// Status is the Cluster's.
func (s *Server) Status() api.ClusterStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.cluster.Status.DeepCopy()
}

// Change writes the Cluster as the operator or a user does.
func (s *Server) Change(f func(*api.Cluster)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.cluster)
	s.cluster.ResourceVersion = s.next()
	s.tell()
}

// SetPod makes a Pod known, with its metadata alone.
func (s *Server) SetPod(m metav1.ObjectMeta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[m.Name] = m
}

func (s *Server) getPod(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	m, there := s.pods[r.PathValue("name")]
	s.mu.Unlock()
	if !there {
		failure(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods \""+r.PathValue("name")+"\" not found")
		return
	}
	write(w, http.StatusOK, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: m})
}

// Lease is the primary Lease.
func (s *Server) Lease() coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.lease.DeepCopy()
}

// ChangeLease writes the Lease as somebody else does.
func (s *Server) ChangeLease(f func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.lease)
	s.lease.ResourceVersion = s.next()
	s.tell()
}

func (s *Server) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// tell wakes the watches.
func (s *Server) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) handler() http.Handler {
	clusters := fmt.Sprintf("/apis/%s/namespaces/%s/clusters", api.GroupVersion, s.cluster.Namespace)
	leases := fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", s.cluster.Namespace)
	cluster := func() (any, string) { return s.cluster.DeepCopy(), s.cluster.ResourceVersion }
	lease := func() (any, string) { return s.lease.DeepCopy(), s.lease.ResourceVersion }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/"+s.cluster.Namespace+"/pods/{name}", s.call("GET pod", s.getPod))
	mux.HandleFunc("GET "+clusters+"/"+s.cluster.Name, s.call("GET cluster", func(w http.ResponseWriter, _ *http.Request) { s.get(w, cluster) }))
	mux.HandleFunc("GET "+leases+"/"+s.lease.Name, s.call("GET lease", func(w http.ResponseWriter, _ *http.Request) { s.get(w, lease) }))
	mux.HandleFunc("PUT "+clusters+"/"+s.cluster.Name+"/status", s.call("PUT cluster", s.putStatus))
	mux.HandleFunc("PUT "+leases+"/"+s.lease.Name, s.call("PUT lease", s.putLease))
	mux.HandleFunc("GET "+clusters, s.call("WATCH cluster", func(w http.ResponseWriter, r *http.Request) { s.watch(w, r, s.cluster.Name, cluster) }))
	mux.HandleFunc("GET "+leases, s.call("WATCH lease", func(w http.ResponseWriter, r *http.Request) { s.watch(w, r, s.lease.Name, lease) }))
	return mux
}

// call counts, and never answers while the server hangs.
func (s *Server) call(what string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[what]++
		hangs := s.hangs
		s.mu.Unlock()
		if hangs {
			// Only once its body was read is it noticed that the client has gone.
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		next(w, r)
	}
}

func (s *Server) get(w http.ResponseWriter, object func() (any, string)) {
	s.mu.Lock()
	o, _ := object()
	s.mu.Unlock()
	write(w, http.StatusOK, o)
}

func (s *Server) putStatus(w http.ResponseWriter, r *http.Request) {
	var in api.Cluster
	if !read(w, r, &in) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.ResourceVersion != s.cluster.ResourceVersion {
		conflict(w, "clusters")
		return
	}
	s.cluster.Status = in.Status
	s.cluster.ResourceVersion = s.next()
	s.tell()
	write(w, http.StatusOK, &s.cluster)
}

func (s *Server) putLease(w http.ResponseWriter, r *http.Request) {
	var in coordinationv1.Lease
	if !read(w, r, &in) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.ResourceVersion != s.lease.ResourceVersion {
		conflict(w, "leases")
		return
	}
	in.TypeMeta = s.lease.TypeMeta
	s.lease = in
	s.lease.ResourceVersion = s.next()
	s.tell()
	write(w, http.StatusOK, &s.lease)
}

// watch begins with the present object. Of several changes at once the last is told.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, name string, object func() (any, string)) {
	q := r.URL.Query()
	if q.Get("watch") == "" || q.Get("fieldSelector") != "metadata.name="+name || q.Get("resourceVersion") != "" {
		failure(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "not the watch that an instance opens: "+r.URL.RawQuery)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out, last, kind := http.NewResponseController(w), "", "ADDED"
	for {
		s.mu.Lock()
		o, version := object()
		changed, hangs := s.changed, s.hangs
		s.mu.Unlock()
		if version != last && !hangs {
			if json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": o}) != nil || out.Flush() != nil {
				return
			}
			last, kind = version, "MODIFIED"
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		failure(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return false
	}
	return true
}

func conflict(w http.ResponseWriter, what string) {
	failure(w, http.StatusConflict, metav1.StatusReasonConflict, what+": the object has been modified")
}

func failure(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	write(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: strings.TrimSpace(message), //nolint:gosec // an HTTP code
	})
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
