package role_test

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/operator/instance/role"
)

func TestAClaimIsWrittenOnlyToTheClusterThatItWasDecidedFor(t *testing.T) {
	decided := role.Intent{Known: true, CurrentPrimary: "a", Generation: 3, Transition: &role.Transition{Attempt: "x", From: "a", To: "b", Generation: 4}}
	d := role.Decision{Step: role.Step{Kind: role.Claim, Attempt: "x"}}
	for name, tc := range map[string]struct {
		change func(*role.Intent)
		left   time.Duration
		says   string
	}{
		"as decided":                 {func(*role.Intent) {}, time.Second, ""},
		"no transition":              {func(i *role.Intent) { i.Transition = nil }, time.Minute, "transition is not the same"},
		"another attempt":            {func(i *role.Intent) { i.Transition = &role.Transition{Attempt: "y", To: "b", Generation: 4} }, time.Minute, "transition is not the same"},
		"another target":             {func(i *role.Intent) { i.Transition = &role.Transition{Attempt: "x", To: "c", Generation: 4} }, time.Minute, "transition is not the same"},
		"another primary":            {func(i *role.Intent) { i.CurrentPrimary = "c" }, time.Minute, "primary has changed"},
		"another generation":         {func(i *role.Intent) { i.Generation = 4 }, time.Minute, "primary has changed"},
		"a mark":                     {func(i *role.Intent) { i.Diverged = true }, time.Minute, "diverged"},
		"not the next generation":    {func(i *role.Intent) { i.Transition = &role.Transition{Attempt: "x", To: "b", Generation: 5} }, time.Minute, "next generation"},
		"a lease that ends too soon": {func(*role.Intent) {}, time.Second - 1, "lease is not in force"},
		"a lease that has ended":     {func(*role.Intent) {}, 0, "lease is not in force"},
	} {
		now := decided
		tc.change(&now)
		why := role.Claimable("b", decided, now, d, tc.left)
		if (why == "") != (tc.says == "") || !strings.Contains(why, tc.says) {
			t.Errorf("%s: %q, want %q", name, why, tc.says)
		}
	}
}
