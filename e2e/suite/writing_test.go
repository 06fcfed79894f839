package suite

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// whileWriting does something to a Cluster while an application writes through its rw Service, waits until
// all is well again and writes are acknowledged, and then holds every instance to the ledger. It returns for
// how long writes stood still.
func whileWriting(t *testing.T, e *framework.Environment, key client.ObjectKey, do func()) time.Duration {
	t.Helper()
	ctx := t.Context()
	db, err := e.Database(ctx, key)
	must(t, err)
	w, err := db.StartWriter(ctx, tableName(t))
	must(t, err)
	stopped := false
	defer func() {
		if !stopped {
			w.Stop()
		}
	}()
	begin := time.Now()
	do()
	must(t, w.AwaitAcknowledged(ctx, time.Now(), 2*time.Minute))
	must(t, e.AwaitHealed(ctx, key, readyWithin, func(now string) { t.Log(now) }))
	must(t, w.AwaitAcknowledged(ctx, time.Now(), time.Minute))
	gap := w.Ledger.Gap(begin, time.Now())
	w.Stop()
	stopped = true
	c := status(t, e, key)
	for _, host := range append([]string{c.ServiceName("rw")}, c.Status.InstanceNames...) {
		missing, invented, err := w.Verdict(ctx, db, host, time.Minute)
		must(t, err)
		if len(missing) > 0 || len(invented) > 0 {
			t.Errorf("%s: %d of %d acknowledged writes are missing: %v; nobody wrote: %v", host, len(missing), w.Ledger.Count(), missing, invented)
		}
	}
	errs, _ := w.Ledger.Errors()
	t.Logf("%d writes acknowledged, %d with an error; they stood still for %.2f s at most", w.Ledger.Count(), errs, gap.Seconds())
	return gap
}

// tableName is the test's own.
func tableName(t *testing.T) string {
	return "t_" + strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name()))[:min(len(t.Name()), 50)]
}
