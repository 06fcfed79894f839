package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"cnmsql.co/operator/controllers/topology/core"
)

// The snapshots are those by which the rules are tested, too.
func TestExplanationsReadAsTheyDid(t *testing.T) {
	for _, name := range []string{"healthy", "server-killed", "all-too-far-behind", "second-failure-within-the-brake", "replica-with-transactions-of-its-own", "switchover-to-a-broken-replica"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("../../controllers/topology/core/testdata/snapshots", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if raw, err = yaml.YAMLToJSONStrict(raw); err != nil {
				t.Fatal(err)
			}
			s, err := core.ParseSnapshot(raw)
			if err != nil {
				t.Fatal(err)
			}
			got := Explained{core.Explain(s), []string{"you may not read nodes"}}.Text(now)
			path := filepath.Join("testdata", "explain-"+name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplanationOfAClusterWithoutPrimaryInventsNone(t *testing.T) {
	text := Explained{Explanation: core.Explanation{Cluster: "shop/c1", Decision: core.Outcome{Number: 2, Rule: "no primary yet"}}}.Text(now)
	for _, want := range []string{"Primary  none", "rule 2, no primary yet", "Instances (counts of transactions)\n  none"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "What if") {
		t.Errorf("it says what would be without a primary:\n%s", text)
	}
}
