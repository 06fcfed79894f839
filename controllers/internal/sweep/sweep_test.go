package sweep_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
	"cnmsql.co/operator/controllers/internal/sweep"
	"cnmsql.co/operator/controllers/objects"
)

// cluster had three instances; c1-2 was removed.
func cluster() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	c.Default()
	c.Status = api.ClusterStatus{InstanceNames: []string{"c1-1", "c1-3"}, LatestGeneratedNode: 3, CurrentPrimary: "c1-1"}
	return c
}

func service(instance string, change func(*corev1.Service)) *corev1.Service {
	s := objects.InstanceService(cluster(), instance)
	s.UID = types.UID("uid-of-" + s.Name)
	if change != nil {
		change(s)
	}
	return s
}

func run(t *testing.T, s *fakeapi.Server, c *api.Cluster) []string {
	t.Helper()
	if err := sweep.Removed(t.Context(), s, s.Live, c, &corev1.ServiceList{}, &rbacv1.RoleList{}); err != nil {
		t.Fatal(err)
	}
	return s.Taken()
}

func TestOfARemovedInstanceNothingStays(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: service("c1-2", nil).ObjectMeta}
	s := fakeapi.New(t, service("c1-1", nil), service("c1-2", nil), service("c1-3", nil), service("c1-4", nil), claim,
		objects.Role(cluster(), "c1-1"), objects.Role(cluster(), "c1-2"))
	if got := run(t, s, cluster()); !slices.Equal(got, []string{"delete *v1.Service c1-2", "delete *v1.Role c1-2-instance"}) {
		t.Errorf("writes %v", got)
	}
	if err := s.Live.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Errorf("the volume claim: %v", err)
	}
	if got := run(t, s, cluster()); len(got) > 0 {
		t.Errorf("writes in steady state: %v", got)
	}
}

func TestWhatMayStillBeNeededOrIsNotOursStays(t *testing.T) {
	for _, tc := range []struct {
		name    string
		service func(*corev1.Service)
		cluster func(*api.Cluster)
		pod     bool
	}{
		{name: "its Pod is still there", pod: true},
		{name: "it has no owner", service: func(s *corev1.Service) { s.OwnerReferences = nil }},
		{name: "an earlier Cluster of the name made it", service: func(s *corev1.Service) { s.OwnerReferences[0].UID = "uid-of-an-earlier-c1" }},
		{name: "the Cluster is not its controller", service: func(s *corev1.Service) { s.OwnerReferences[0].Controller = nil }},
		{name: "it is no instance's", service: func(s *corev1.Service) { delete(s.Labels, api.LabelInstance) }},
		{name: "it has another Cluster's label", service: func(s *corev1.Service) { s.Labels[api.LabelCluster] = "c2" }},
		{name: "it is in another namespace", service: func(s *corev1.Service) { s.Namespace = "other" }},
		{name: "the status has no instances", cluster: func(c *api.Cluster) { c.Status.InstanceNames = nil }},
		{name: "the status has no primary", cluster: func(c *api.Cluster) { c.Status.CurrentPrimary = "" }},
		{name: "the whole status is lost", cluster: func(c *api.Cluster) { c.Status = api.ClusterStatus{} }},
		{name: "it is to be promoted", cluster: func(c *api.Cluster) { c.Status.PrimaryTransition = &api.PrimaryTransition{To: "c1-2"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			s := fakeapi.New(t, service("c1-2", tc.service))
			if tc.pod {
				if err := s.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2"}}); err != nil {
					t.Fatal(err)
				}
				s.Taken()
				s.Hide("c1-2") // the cache is behind
			}
			if got := run(t, s, c); len(got) > 0 {
				t.Errorf("writes %v", got)
			}
		})
	}
}

// stale lists what a cache that is behind still holds.
type stale struct {
	client.Client
	old client.Reader
}

func (s stale) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.old.List(ctx, list, opts...)
}

func TestObjectThatWasReplacedMeanwhileStays(t *testing.T) {
	now := service("c1-2", func(s *corev1.Service) { s.UID, s.OwnerReferences = "uid-of-another", nil })
	s := fakeapi.New(t, now)
	old := fakeapi.New(t, service("c1-2", nil))
	if err := sweep.Removed(t.Context(), stale{s, old}, s.Live, cluster(), &corev1.ServiceList{}); err == nil {
		t.Error("no error: nobody would look again")
	}
	if err := s.Live.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Errorf("the Service that is not ours: %v", err)
	}
	gone := fakeapi.New(t)
	if err := sweep.Removed(t.Context(), stale{gone, old}, gone.Live, cluster(), &corev1.ServiceList{}); err != nil {
		t.Errorf("an object that is gone already: %v", err)
	}
}

func TestOneErrorDoesNotKeepTheOthers(t *testing.T) {
	s := fakeapi.New(t, service("c1-2", nil), objects.Role(cluster(), "c1-2"))
	s.Fail("c1-2", errors.New("not now"))
	err := sweep.Removed(t.Context(), s, s.Live, cluster(), &corev1.ServiceList{}, &rbacv1.RoleList{})
	if err == nil || !strings.Contains(err.Error(), "not now") || !strings.Contains(err.Error(), "c1-2") {
		t.Errorf("error %v", err)
	}
	if err := s.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1-2-instance"}, &rbacv1.Role{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Role: %v", err)
	}
}
