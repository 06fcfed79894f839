package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	api "cnmsql.co/operator/api/v1alpha1"
)

// API is the little that an instance asks of the API server. Reads come from the API server itself, never
// from a cache; updates carry the resourceVersion of the object that is given.
type API interface {
	Cluster(ctx context.Context) (*api.Cluster, error)
	UpdateClusterStatus(ctx context.Context, c *api.Cluster) (*api.Cluster, error)
	// WatchCluster begins with the present Cluster, when there is one, as an Added event.
	WatchCluster(ctx context.Context) (watch.Interface, error)
	LeaseAPI
	WatchLease(ctx context.Context) (watch.Interface, error)
	// PodStopping tells whether the Pod of an instance that has this UID is to be stopped, or is gone already.
	PodStopping(ctx context.Context, name, uid string) (bool, error)
}

// LeaseAPI is what the Keeper asks of the API server.
type LeaseAPI interface {
	Lease(ctx context.Context) (*coordinationv1.Lease, error)
	UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// watchTimeout is when the API server ends a watch by itself; the next one begins with the present object.
const watchTimeout = 5 * time.Minute

// Kube is the API of one Cluster and its Lease over HTTP.
type Kube struct {
	namespace, cluster, lease string
	clusters, leases          rest.Interface
	parameters                runtime.ParameterCodec
}

// NewKube makes the client. HTTP/1.1 is used on purpose: a call that times out takes its connection with it,
// where HTTP/2 would send the next renewal down the same dead connection.
func NewKube(config *rest.Config, namespace, cluster string) (*Kube, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.NextProtos = []string{"http/1.1"}
	config.QPS = -1
	if config.Dial == nil {
		config.Dial = (&net.Dialer{
			Timeout:         callTimeout,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3},
		}).DialContext
	}
	k := &Kube{
		namespace: namespace, cluster: cluster, lease: (&api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}).LeaseName(),
		parameters: runtime.NewParameterCodec(scheme),
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the HTTP client of the API server: %w", err)
	}
	config.GroupVersion = &api.GroupVersion
	if k.clusters, err = rest.RESTClientForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("making the client of Clusters: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &coordinationv1.SchemeGroupVersion
	if k.leases, err = rest.RESTClientForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("making the client of Leases: %w", err)
	}
	return k, nil
}

// Cluster reads the Cluster.
func (k *Kube) Cluster(ctx context.Context) (*api.Cluster, error) {
	out := &api.Cluster{}
	err := k.clusters.Get().Namespace(k.namespace).Resource("clusters").Name(k.cluster).MaxRetries(0).Do(ctx).Into(out)
	return result(out, err, "reading the Cluster")
}

// UpdateClusterStatus writes the status of c if its resourceVersion is still the present one.
func (k *Kube) UpdateClusterStatus(ctx context.Context, c *api.Cluster) (*api.Cluster, error) {
	out := &api.Cluster{}
	err := k.clusters.Put().Namespace(k.namespace).Resource("clusters").Name(k.cluster).SubResource("status").
		MaxRetries(0).Body(c).Do(ctx).Into(out)
	return result(out, err, "writing the Cluster's status")
}

// WatchCluster watches the Cluster from its present state on.
func (k *Kube) WatchCluster(ctx context.Context) (watch.Interface, error) {
	return k.watch(ctx, k.clusters, "clusters", k.cluster)
}

// Lease reads the primary Lease.
func (k *Kube) Lease(ctx context.Context) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	err := k.leases.Get().Namespace(k.namespace).Resource("leases").Name(k.lease).MaxRetries(0).Do(ctx).Into(out)
	return result(out, err, "reading the primary Lease")
}

// UpdateLease writes l if its resourceVersion is still the present one.
func (k *Kube) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	err := k.leases.Put().Namespace(k.namespace).Resource("leases").Name(k.lease).MaxRetries(0).Body(l).Do(ctx).Into(out)
	return result(out, err, "writing the primary Lease")
}

// WatchLease watches the primary Lease from its present state on.
func (k *Kube) WatchLease(ctx context.Context) (watch.Interface, error) {
	return k.watch(ctx, k.leases, "leases", k.lease)
}

// PodStopping reads the Pod.
func (k *Kube) PodStopping(ctx context.Context, name, uid string) (bool, error) {
	raw, err := k.clusters.Get().AbsPath("/api/v1").Namespace(k.namespace).Resource("pods").Name(name).MaxRetries(0).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	pod := metav1.PartialObjectMetadata{}
	if err == nil {
		err = json.Unmarshal(raw, &pod)
	}
	if err != nil {
		return false, fmt.Errorf("reading the Pod: %w", err)
	}
	return string(pod.UID) != uid || pod.DeletionTimestamp != nil, nil
}

// watch gives no resourceVersion, so the API server begins with the present object: an instance needs
// neither the right to list nor a version that may have become too old.
func (k *Kube) watch(ctx context.Context, c rest.Interface, resource, name string) (watch.Interface, error) {
	seconds := int64(watchTimeout / time.Second)
	options := metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	}
	w, err := c.Get().Namespace(k.namespace).Resource(resource).VersionedParams(&options, k.parameters).MaxRetries(0).Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", resource, err)
	}
	return w, nil
}

func result[T any](out *T, err error, doing string) (*T, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}
