package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// lameDuck is how long the server goes on after SIGTERM.
const lameDuck = 3 * time.Second

// serve answers with its name, and has switches for its probes.
func serve(ctx context.Context, _ []string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var ready, live atomic.Bool
	ready.Store(true)
	live.Store(true)
	m := http.NewServeMux()
	m.HandleFunc("/readyz", probe(&ready))
	m.HandleFunc("/livez", probe(&live))
	m.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) { ready.Store(true) })
	m.HandleFunc("/unready", func(http.ResponseWriter, *http.Request) { ready.Store(false) })
	m.HandleFunc("/unlive", func(http.ResponseWriter, *http.Request) { live.Store(false) })
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from", host, "to", r.RemoteAddr) })
	s := &http.Server{Addr: ":8080", Handler: m, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		log.Print("SIGTERM: ending in ", lameDuck)
		time.Sleep(lameDuck)
		s.Close()
	})
	log.Print("serving")
	if err := s.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

func probe(ok *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !ok.Load() {
			http.Error(w, "switched off", http.StatusInternalServerError)
		}
	}
}

// webhook is a mutating admission webhook that marks what it is shown.
func webhook(_ context.Context, args []string) error {
	m := http.NewServeMux()
	m.HandleFunc("/mutate", mutate)
	s := &http.Server{Addr: ":8443", Handler: m, ReadHeaderTimeout: 10 * time.Second}
	return s.ListenAndServeTLS(args[0], args[1])
}

func mutate(w http.ResponseWriter, r *http.Request) {
	var in struct{ Request struct{ UID string } }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/data/mutated","value":"yes"}]`))
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`, in.Request.UID, patch)
	log.Print("called from ", r.RemoteAddr)
}
