package inside

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/proc"
)

// pollEvery is how often waitFor asks.
const pollEvery = 50 * time.Millisecond

// waitFor returns when ok does, or an error after limit.
func waitFor(what string, limit time.Duration, ok func() bool) error {
	t := time.Now()
	for !ok() {
		if time.Since(t) > limit {
			return fmt.Errorf("%s: not there after %v", what, limit)
		}
		time.Sleep(pollEvery)
	}
	log.Printf("%s: there after %v", what, time.Since(t).Round(time.Millisecond))
	return nil
}

// healthy says whether a URL inside the lab answers 200. It proves that a
// server is up, not who it is, so certificates are not checked.
func healthy(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	r, err := c.Do(q)
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// runAll runs commands, given as lines, one after the other.
func runAll(r *proc.Reaper, lines ...string) error {
	for _, l := range lines {
		if err := r.Run(strings.Fields(l)...); err != nil {
			return err
		}
	}
	return nil
}

func sysctl(key, value string) error {
	if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s: %w", key, err)
	}
	return nil
}
