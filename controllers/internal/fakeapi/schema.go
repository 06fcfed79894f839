package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
)

// clusterConverter lets server-side apply merge a Cluster as its CRD says: conditions by their type, each
// owned by its manager. Without a schema a list would be one value.
func clusterConverter(t testing.TB) managedfields.TypeConverter {
	t.Helper()
	schema, err := clusterSchema()
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"co.cnmsql.mysql.v1alpha1.Cluster": schema}, true)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

func clusterSchema() (*spec.Schema, error) {
	raw, path, err := readAbove("config/crd/bases/mysql.cnmsql.co_clusters.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the CRD: %w", err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil || len(crd.Spec.Versions) == 0 {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema); err != nil {
		return nil, fmt.Errorf("parsing the schema in %s: %w", path, err)
	}
	gv := api.GroupVersion
	schema.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gv.Group, "version": gv.Version, "kind": "Cluster"},
	})
	return schema, nil
}

// readAbove reads a file of the repository. A test runs in the folder of its package, which is somewhere below the top.
func readAbove(name string) (content []byte, path string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	for {
		path = filepath.Join(dir, name)
		content, err = os.ReadFile(path)
		above := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || above == dir {
			return content, path, err
		}
		dir = above
	}
}
