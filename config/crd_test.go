package config

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// crd is the CRD as an API server sees it.
type crd struct {
	schema *structural.Structural
	values validation.SchemaValidator
	rules  *cel.Validator
}

func loadCRD(t *testing.T) crd {
	t.Helper()
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(read(t, "crd/bases/mysql.cnmsql.co_clusters.yaml"), v1); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	v1.Status.StoredVersions = []string{"v1alpha1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, internal, nil); err != nil {
		t.Fatal(err)
	}
	// This also refuses rules that do not compile and those that could cost too much.
	if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), internal); len(errs) > 0 {
		t.Fatalf("an API server refuses the CRD: %v", errs.ToAggregate())
	}
	props := internal.Spec.Validation
	if props == nil {
		props = internal.Spec.Versions[0].Schema
	}
	schema, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return crd{schema: schema, values: values, rules: cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

// update is what an API server that has only the CRD answers to a Cluster, or to a change of it; before may be nil.
func (c crd) update(t *testing.T, before, after map[string]any) field.ErrorList {
	t.Helper()
	var old any
	defaulting.Default(after, c.schema)
	if before != nil {
		defaulting.Default(before, c.schema)
		old = before
	}
	errs := validation.ValidateCustomResource(nil, after, c.values)
	found, _ := c.rules.Validate(t.Context(), nil, c.schema, after, old, celconfig.RuntimeCELCostBudget)
	return append(errs, found...)
}

// manifest is a Cluster as a person writes it, with more of its specification, status or metadata.
func manifest(t *testing.T, more ...string) map[string]any {
	t.Helper()
	out := object(t, `{apiVersion: mysql.cnmsql.co/v1alpha1, kind: Cluster, metadata: {name: c1, namespace: shop}, spec: {instances: 3, storage: {size: 1Gi}}}`)
	for _, m := range more {
		merge(out, object(t, m))
	}
	return out
}

// object has numbers as an API server has them: integers as such.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, is := value.(map[string]any)
		there, both := into[key].(map[string]any)
		if is && both {
			merge(there, inner)
			continue
		}
		into[key] = value
	}
}

func TestAnAPIServerTakesTheSamples(t *testing.T) {
	c := loadCRD(t)
	for _, file := range []string{"samples/mysql_v1alpha1_cluster.yaml", "samples/mysql_v1alpha1_cluster_full.yaml", "samples/mysql_v1alpha1_cluster_single.yaml"} {
		if errs := c.update(t, nil, object(t, string(read(t, file)))); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs.ToAggregate())
		}
	}
}

const (
	established = `{status: {establishedAt: "2026-01-02T03:04:05Z", currentPrimary: c1-1, currentPrimaryGeneration: 1}}`
	binlog      = `{spec: {binlogStorage: {size: 1Gi}}}`
)

// Without a webhook: what would lose data, or make a server something else than its data says.
func TestTheCRDRefusesChangesThatALiveClusterCannotBear(t *testing.T) {
	c := loadCRD(t)
	for _, tc := range []struct {
		name          string
		before, after []string
		field, says   string
	}{
		{"a binlog volume added", nil, []string{binlog}, "spec", "binlogStorage cannot be added or removed"},
		{"a binlog volume removed", []string{binlog}, nil, "spec", "binlogStorage cannot be added or removed"},
		{"a binlog volume of another class", []string{binlog}, []string{binlog, `{spec: {binlogStorage: {storageClass: fast}}}`}, "spec.binlogStorage", "storageClass is immutable"},
		{"a smaller binlog volume", []string{binlog}, []string{`{spec: {binlogStorage: {size: 512Mi}}}`}, "spec.binlogStorage.size", "size can only grow"},
		{"another class", []string{`{spec: {storage: {storageClass: slow}}}`}, []string{`{spec: {storage: {storageClass: fast}}}`}, "spec.storage", "storageClass is immutable"},
		{"a class added", nil, []string{`{spec: {storage: {storageClass: fast}}}`}, "spec.storage", "storageClass is immutable"},
		{"a class removed", []string{`{spec: {storage: {storageClass: fast}}}`}, nil, "spec.storage", "storageClass is immutable"},
		{"a smaller volume", nil, []string{`{spec: {storage: {size: 1023Mi}}}`}, "spec.storage.size", "size can only grow"},
		{"another flavor", []string{`{spec: {flavor: mysql}}`}, []string{`{spec: {flavor: mariadb}}`}, "spec", "flavor is immutable"},
		{"another flavor than the default", nil, []string{`{spec: {flavor: mariadb}}`}, "spec", "flavor is immutable"},
		{"the default flavor instead of another", []string{`{spec: {flavor: mariadb}}`}, nil, "spec", "flavor is immutable"},
		{"another mode", []string{`{spec: {replication: {mode: async}}}`}, []string{`{spec: {replication: {mode: groupReplication}}}`}, "spec", "replication.mode is immutable"},
		{"another mode than the default", nil, []string{`{spec: {replication: {mode: groupReplication}}}`}, "spec", "replication.mode is immutable"},
		{"another database", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {database: other}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
		{"no database of its own any more", []string{established, `{spec: {bootstrap: {initdb: {database: other}}}}`}, []string{established}, "spec.bootstrap", "was used when the Cluster was made"},
		{"another owner", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {owner: me}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
		{"another Secret of the owner", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {secret: {name: mine}}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
		{"other statements", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {postInitSQL: [SELECT 1]}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
		{"another character set", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {characterSet: latin1}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
		{"another collation", []string{established}, []string{established, `{spec: {bootstrap: {initdb: {collation: utf8mb4_bin}}}}`}, "spec.bootstrap", "was used when the Cluster was made"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errs := c.update(t, manifest(t, tc.before...), manifest(t, tc.after...))
			for _, err := range errs {
				if err.Field == tc.field && strings.Contains(err.Detail, tc.says) && strings.Contains(err.Detail, "set it back") {
					return
				}
			}
			t.Errorf("no error about %q that says %q and what to do: %v", tc.field, tc.says, errs)
		})
	}
}

func TestTheCRDTakesChangesThatAreGood(t *testing.T) {
	c := loadCRD(t)
	defaults := `{spec: {flavor: mysql, replication: {mode: async}, bootstrap: {initdb: {database: app}}}}`
	for _, tc := range []struct {
		name          string
		before, after []string
	}{
		{"nothing changed", []string{established, binlog}, []string{established, binlog}},
		{"larger volumes", []string{established, binlog}, []string{established, `{spec: {storage: {size: 2Gi}, binlogStorage: {size: 3Gi}}}`}},
		{"more instances and another image", []string{established}, []string{established, `{spec: {instances: 5, imageName: "mysql:8.4"}}`}},
		{"defaults written out", []string{established}, []string{established, defaults}},
		{"written-out defaults removed", []string{established, defaults}, []string{established}},
		{"another database before the first primary", nil, []string{`{spec: {bootstrap: {initdb: {database: other}}}}`}},
		{"the first status", nil, []string{`{status: {phase: Provisioning}}`}},
		{"the first primary", []string{`{status: {phase: Provisioning}}`}, []string{established}},
		{"an upper bound of 0 for the acknowledgements, which means the lower one", nil, []string{`{spec: {minSyncReplicas: 1, maxSyncReplicas: 0}}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if errs := c.update(t, manifest(t, tc.before...), manifest(t, tc.after...)); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}

// What a specification must fulfil by itself, and the field or the words by which an API server refuses it; empty for one
// that is good.
func TestTheCRDRefusesWhatCannotBeCarriedOut(t *testing.T) {
	c := loadCRD(t)
	for manifested, want := range map[string]string{
		`{replication: {maxReadyLag: 2s}}`:                                     "three intervals",
		`{replication: {maxReadyLag: 3s}}`:                                     "",
		`{replication: {maxReadyLag: 0s}}`:                                     "three intervals",
		`{replication: {maxReadyLag: -1s}}`:                                    "spec.replication.maxReadyLag",
		`{replication: {maxReadyLag: 5s, heartbeat: {interval: 2s}}}`:          "three intervals",
		`{replication: {maxReadyLag: 6s, heartbeat: {interval: 2s}}}`:          "",
		`{replication: {maxReadyLag: 30s, heartbeat: {enabled: false}}}`:       "needs the heartbeat",
		`{replication: {heartbeat: {enabled: false}}}`:                         "",
		`{replication: {heartbeat: {interval: 100ms}}}`:                        "from 500ms to 1m",
		`{managed: {services: {disabledDefaultServices: [ro, r]}}}`:            "",
		`{managed: {services: {disabledDefaultServices: [rw]}}}`:               "disabledDefaultServices[0]",
		`{managed: {services: {additional: [{name: a, selectorType: rw}]}}}`:   "",
		`{managed: {services: {additional: [{name: ro, selectorType: rw}]}}}`:  "choose another name",
		`{managed: {services: {additional: [{name: "2", selectorType: rw}]}}}`: "additional[0].name",
		`{managed: {services: {additional: [{name: a, selectorType: all}]}}}`:  "additional[0].selectorType",
		`{managed: {services: {template: {spec: {type: ExternalName}}}}}`:      "use ExternalName for an additional Service",
		`{managed: {services: {template: {spec: {type: LoadBalancer}}}}}`:      "",
	} {
		errs := c.update(t, nil, manifest(t, `{spec: `+manifested+`}`))
		switch {
		case want == "" && len(errs) > 0:
			t.Errorf("%s: %v", manifested, errs.ToAggregate())
		case want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want)):
			t.Errorf("%s: %v, want %q", manifested, errs.ToAggregate(), want)
		}
	}
}

// A writer leaves zeros out; kubectl get has to show them all the same.
func TestNoInstancesAndNoneReadyAreShownAsZero(t *testing.T) {
	c := loadCRD(t)
	stored := manifest(t, `{status: {phase: Provisioning}}`)
	defaulting.Default(stored, c.schema)
	status, _ := stored["status"].(map[string]any)
	if status["instances"] != int64(0) || status["readyInstances"] != int64(0) {
		t.Errorf("status %v", status)
	}
}
