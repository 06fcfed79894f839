package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Dump writes a snapshot down as JSON, with all that a rule looks at and nothing else of the Cluster: no environment,
// no parameters, no statements that were run when it was made. What a server's error message quotes of a statement or
// of a row is left out.
func (s Snapshot) Dump() ([]byte, error) {
	s.Cluster = whatRulesRead(s.Cluster)
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the snapshot: %w", err)
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("encoding the snapshot: %w", err)
	}
	raw, err = json.Marshal(withoutData(tree))
	if err != nil {
		return nil, fmt.Errorf("encoding the snapshot: %w", err)
	}
	return raw, nil
}

// ParseSnapshot reads what Dump wrote. A field that is not known is an error: what is overlooked would make another
// snapshot of it.
func ParseSnapshot(raw []byte) (Snapshot, error) {
	s := Snapshot{}
	if err := strictly(raw, &s); err != nil {
		return s, fmt.Errorf("reading the snapshot: %w", err)
	}
	if s.Cluster == nil || s.Cluster.Name == "" || s.Now.IsZero() {
		return s, fmt.Errorf("this is no snapshot: it needs now and cluster.metadata.name")
	}
	for n, i := range s.Instances {
		if _, ok := s.Cluster.InstanceOrdinal(i.Name); !ok {
			return s, fmt.Errorf("instances[%d]: %q is no instance of %s", n, i.Name, s.Cluster.Name)
		}
		if slices.ContainsFunc(s.Instances[:n], func(before Instance) bool { return before.Name == i.Name }) {
			return s, fmt.Errorf("instances[%d]: %s is there twice", n, i.Name)
		}
	}
	return s, nil
}

// whatRulesRead is a Cluster without the rest.
func whatRulesRead(c *api.Cluster) *api.Cluster {
	all := c.DeepCopy()
	kept := &api.Cluster{TypeMeta: all.TypeMeta, Status: all.Status}
	kept.ObjectMeta = metav1.ObjectMeta{
		Namespace: all.Namespace, Name: all.Name, UID: all.UID, Generation: all.Generation, ResourceVersion: all.ResourceVersion,
		CreationTimestamp: all.CreationTimestamp, DeletionTimestamp: all.DeletionTimestamp,
	}
	for _, key := range []string{api.AnnotationLastFailover, api.AnnotationLastFailoverTarget, api.AnnotationLastFailoverGeneration, api.AnnotationAcceptLoss} {
		if value, there := all.Annotations[key]; there {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	s := all.Spec
	kept.Spec = api.ClusterSpec{
		Flavor: s.Flavor, ImageName: s.ImageName, Instances: s.Instances, MinSyncReplicas: s.MinSyncReplicas, MaxSyncReplicas: s.MaxSyncReplicas,
		MySQL: api.MySQLConfiguration{SemiSync: s.MySQL.SemiSync}, Replication: s.Replication,
		MaxSwitchoverDelay: s.MaxSwitchoverDelay, FailoverDelay: s.FailoverDelay, SmartShutdownTimeout: s.SmartShutdownTimeout,
		EnablePDB: s.EnablePDB, EnableSwitchoverOnDrain: s.EnableSwitchoverOnDrain, FailoverPolicy: s.FailoverPolicy,
	}
	return kept
}

// What servers quote in their error messages, and what is left of that.
var quoted = []struct {
	what *regexp.Regexp
	left string
}{
	{regexp.MustCompile(`(?s)Default database: '.*`), "(the statement is left out)"},
	{regexp.MustCompile(`(?s)Query: '.*`), "(the statement is left out)"},
	{regexp.MustCompile(`(?s)Duplicate entry '.*?' for key`), "Duplicate entry '…' for key"},
}

// withoutData leaves out of every text what belongs to the users of the database.
func withoutData(tree any) any {
	switch v := tree.(type) {
	case string:
		for _, q := range quoted {
			v = q.what.ReplaceAllString(v, q.left)
		}
		return v
	case []any:
		for n := range v {
			v[n] = withoutData(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutData(v[key])
		}
	}
	return tree
}

func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Durations are written as people write them. The types below stand in for their like, without its methods.
type (
	plainSnapshot Snapshot
	plainInstance Instance
	plainLease    Lease

	timedSnapshot struct {
		plainSnapshot
		Patience *metav1.Duration `json:"patience,omitempty"`
	}
	timedInstance struct {
		plainInstance
		Age *metav1.Duration `json:"age,omitempty"`
	}
	timedLease struct {
		plainLease
		Unchanged *metav1.Duration `json:"unchanged,omitempty"`
	}
)

func written(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

func read(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// MarshalJSON writes the snapshot with its durations as text.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	return json.Marshal(timedSnapshot{plainSnapshot(s), written(s.Patience)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Snapshot) UnmarshalJSON(raw []byte) error {
	t := timedSnapshot{}
	err := strictly(raw, &t)
	*s = Snapshot(t.plainSnapshot)
	s.Patience = read(t.Patience)
	return err
}

// MarshalJSON writes the instance with its durations as text.
func (i Instance) MarshalJSON() ([]byte, error) {
	return json.Marshal(timedInstance{plainInstance(i), written(i.Age)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (i *Instance) UnmarshalJSON(raw []byte) error {
	t := timedInstance{}
	err := strictly(raw, &t)
	*i = Instance(t.plainInstance)
	i.Age = read(t.Age)
	return err
}

// MarshalJSON writes the lease with its durations as text.
func (l Lease) MarshalJSON() ([]byte, error) {
	return json.Marshal(timedLease{plainLease(l), written(l.Unchanged)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Lease) UnmarshalJSON(raw []byte) error {
	t := timedLease{}
	err := strictly(raw, &t)
	*l = Lease(t.plainLease)
	l.Unchanged = read(t.Unchanged)
	return err
}
