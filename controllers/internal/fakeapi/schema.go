package fakeapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "..", "config", "crd", "bases", "mysql.cnmsql.co_clusters.yaml")
	raw, err := os.ReadFile(path)
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
