package docs

import (
	"os"
	"strings"
	"testing"

	api "cnmsql.co/operator/api/v1alpha1"
)

// People search the log by these messages: they are in the document as they are in the code.
func TestTheDocumentListsTheMessagesThatAreKept(t *testing.T) {
	raw, err := os.ReadFile("primary.md")
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{
		"failover blocked by anti-flap cooldown",
		"re-asserting fenced promoted primary: no site is writable and the last failover target is GTID-complete; restoring writability",
		"primary re-assert refused: recorded promotion GTID set failed to parse — status corrupted or manually edited?",
	}
	for _, message := range append(kept, api.LogMessages...) {
		if !strings.Contains(string(raw), "`"+message+"`") {
			t.Errorf("primary.md does not list %q", message)
		}
	}
	for _, message := range kept {
		if !strings.Contains(strings.Join(api.LogMessages, "\n"), message) {
			t.Errorf("the code has no message %q any more", message)
		}
	}
}
