package core

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the decisions of the snapshots anew")

// A snapshot of any cluster (kubectl cnmsql debug snapshot) that is put into testdata/snapshots becomes a case, once
// `go test ./controllers/topology/core -run Snapshots -update` has written its decision beside it, to be read and kept.
func TestSnapshotsOfClustersAreDecidedAsTheyWere(t *testing.T) {
	files, err := filepath.Glob("testdata/snapshots/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no snapshots: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got, err := yaml.Marshal(Explain(snapshotFrom(t, file)))
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".decision"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test -update writes it: read it, and keep it if it is right", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("decided otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func snapshotFrom(t *testing.T, file string) Snapshot {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSnapshot(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
