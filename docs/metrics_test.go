package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// described matches the place where an instance's metric gets its name, its meaning and its labels.
var (
	described = regexp.MustCompile(`(description|ofCluster)\("([a-z_]+)", "([^"]+)"((?:, "[a-z]+")*)\)`)
	label     = regexp.MustCompile(`"([a-z]+)"`)
)

func TestTheDocumentListsTheMetricsOfAnInstance(t *testing.T) {
	source, err := os.ReadFile("../instance/server/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	found := described.FindAllStringSubmatch(string(source), -1)
	if made := strings.Count(string(source), "= description(") + strings.Count(string(source), "= ofCluster("); len(found) != made || made == 0 {
		t.Fatalf("%d of %d metrics are understood", len(found), made)
	}
	var b strings.Builder
	b.WriteString("| | labels | |\n| --- | --- | --- |\n")
	for _, m := range found {
		prefix := map[string]string{"description": "cnmsql_instance_", "ofCluster": "cnmsql_"}[m[1]]
		labels := label.ReplaceAllString(strings.TrimPrefix(m[4], ", "), "`$1`")
		fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", prefix, m[2], labels, m[3])
	}
	generated(t, "metrics.md", "metrics", b.String())
}
