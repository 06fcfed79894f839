package core

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// dumped is a snapshot after it was written down and read again.
func dumped(t *testing.T, s Snapshot) Snapshot {
	t.Helper()
	raw, err := s.Dump()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseSnapshot(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return again
}

func TestSnapshotThatWasWrittenDownLeadsToTheSameDecision(t *testing.T) {
	handoff := set("1:1-100")
	for name, w := range map[string]*world{
		"healthy":        sound(),
		"crashed":        sound().crash(1),
		"left behind":    sound().crash(1).held(2, "1:1-90", "1:80-100").held(3, "1:1-80", ""),
		"handed over":    func() *world { w := sound(); w.Lease.Holder, w.Lease.Handoff = "", &handoff; return w }(),
		"fresh, patient": func() *world { w := sound().crash(1); w.Fresh, w.Patience = true, 3*time.Second; return w }(),
	} {
		t.Run(name, func(t *testing.T) {
			want, got := Explain(w.Snapshot), Explain(dumped(t, w.Snapshot))
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b gtid.Set) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func TestNoSecretAndNoDataOfUsersIsWrittenDown(t *testing.T) {
	w := sound()
	c := w.Cluster
	c.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2", api.AnnotationLastFailoverTarget: "c1-3"}
	c.Labels = map[string]string{"team": "hunter2"}
	c.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}}
	c.Spec.MySQL.Parameters = map[string]string{"init_connect": "hunter2"}
	c.Spec.MySQL.AdditionalConfigFiles = map[string]string{"a.cnf": "hunter2"}
	c.Spec.Bootstrap = &api.BootstrapConfiguration{InitDB: &api.InitDBConfiguration{PostInitSQL: []string{"CREATE USER x IDENTIFIED BY 'hunter2'"}}}
	r := w.i(2).Report.MySQL.Replication
	r.SQLErrno, r.SQLError = 1062, "Could not execute: Error 'Duplicate entry 'hunter2' for key 'users.PRIMARY'' on query. Default database: 'app'. Query: 'INSERT INTO users VALUES ('hunter2')'"
	c.Status.PhaseReason = "c1-2 does not replicate: " + r.SQLError
	raw, err := w.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hunter2") {
		t.Errorf("it holds a secret:\n%s", raw)
	}
	for _, kept := range []string{"Duplicate entry '…' for key 'users.PRIMARY'", "1062", "last-failover-target"} {
		if !strings.Contains(string(raw), kept) {
			t.Errorf("%q is missing in:\n%s", kept, raw)
		}
	}
	if w.i(2).Report.MySQL.Replication.SQLError != r.SQLError || c.Spec.Env == nil {
		t.Error("the snapshot itself was changed")
	}
}

// A field of the specification that a rule reads is written down; one that is not read is not, since it may hold
// anything. This list is the choice for each of them.
func TestEachFieldOfTheSpecificationIsWrittenDownOrLeftOutOnPurpose(t *testing.T) {
	leftOut := []string{
		"Description", "InheritedMetadata", "ImagePullPolicy", "ImagePullSecrets", "Storage", "BinlogStorage", "Bootstrap", "RootPasswordSecret",
		"EnableSuperuserAccess", "Certificates", "Resources", "Affinity", "TopologySpreadConstraints", "PriorityClassName", "SchedulerName", "Env",
		"EnvFrom", "PodSecurityContext", "SecurityContext", "ServiceAccountTemplate", "MaxStartDelay", "MaxStopDelay", "LogLevel", "Managed",
	}
	full := &api.Cluster{}
	fill(reflect.ValueOf(&full.Spec).Elem(), 6)
	kept := reflect.ValueOf(whatRulesRead(full).Spec)
	for n := range kept.NumField() {
		name := kept.Type().Field(n).Name
		if out := slices.Contains(leftOut, name); out != kept.Field(n).IsZero() {
			t.Errorf("spec field %s: left out %t", name, kept.Field(n).IsZero())
		}
	}
}

// fill gives every field some value.
func fill(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}

func TestSnapshotThatCannotBeReadSaysWhy(t *testing.T) {
	whole, err := sound().Dump()
	if err != nil {
		t.Fatal(err)
	}
	for says, raw := range map[string]string{
		"unknown field":        strings.Replace(string(whole), `"receiver"`, "", 1)[:len(whole)-1] + `,"nonsense":1}`,
		`"ponies"`:             strings.Replace(string(whole), `"ordinal":1`, `"ordinal":1,"ponies":2`, 1),
		"this is no snapshot":  "{}",
		"is there twice":       strings.Replace(string(whole), `"name":"c1-2"`, `"name":"c1-1"`, 1),
		"is no instance of c1": strings.Replace(string(whole), `"name":"c1-2"`, `"name":"c2-2"`, 1),
	} {
		if _, err := ParseSnapshot([]byte(raw)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
}
