package lease

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/controllers/internal/status"
	"cnmsql.co/operator/controllers/internal/sweep"
	"cnmsql.co/operator/controllers/objects"
)

// act makes identities and the Lease and deletes the identities of removed instances, each independently of the
// others, then shows the holder and how it went.
func (r *Reconciler) act(ctx context.Context, c *api.Cluster, lease *coordinationv1.Lease) (ctrl.Result, error) {
	result := r.identities(ctx, c)
	sweepErr := sweep.Removed(ctx, r.Client, r.Live, c, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{})
	switch {
	case lease == nil:
		var made apply.Result
		lease, made = r.make(ctx, client.ObjectKeyFromObject(c))
		result = made.And(result)
	case !metav1.IsControlledBy(lease, c):
		lease, result = nil, foreignLease(lease).And(result)
	}
	now := result.Condition(api.ConditionLeaseReady, "the primary Lease and every instance's identity exist as they should")
	status.Tell(r.Events, c, now)
	_, statusErr := status.Apply(ctx, r.Client, Manager, c, status.Owns{PrimaryLease: true},
		status.Fields{Conditions: []metav1.Condition{now}, PrimaryLease: shown(c.Status.PrimaryLease, lease)})
	if err := errors.Join(result.Err, sweepErr, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if len(result.Foreign) > 0 {
		return ctrl.Result{RequeueAfter: scope.RecheckForeign}, nil
	}
	return ctrl.Result{}, nil
}

// identities makes each instance's ServiceAccount, Role and RoleBinding.
func (r *Reconciler) identities(ctx context.Context, c *api.Cluster) apply.Result {
	var list []client.Object
	for _, instance := range objects.Instances(c) {
		list = append(list, objects.ServiceAccount(c, instance), objects.Role(c, instance), objects.RoleBinding(c, instance))
	}
	return apply.All(ctx, r.Client, Manager, c, list)
}

// make creates the Lease. One that is there after all is left as it is, and returned when it is ours. It is nil when
// there is none that is ours, or the Cluster is gone.
func (r *Reconciler) make(ctx context.Context, key client.ObjectKey) (*coordinationv1.Lease, apply.Result) {
	o, err := r.observeOrigin(ctx, key)
	if o == nil {
		return nil, apply.Result{Err: err}
	}
	lease := objects.Lease(o.cluster, firstHolder(o), r.Now())
	err = r.Client.Create(ctx, lease, client.FieldOwner(Manager))
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("made the primary Lease", "holder", holderOf(lease))
		return lease, apply.Result{Written: 1}
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, apply.Result{Err: fmt.Errorf("creating Lease %s: %w", lease.Name, err)}
	}
	there := &coordinationv1.Lease{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(lease), there); err != nil {
		return nil, apply.Result{Err: fmt.Errorf("reading Lease %s: %w", lease.Name, err)}
	}
	if !metav1.IsControlledBy(there, o.cluster) {
		return nil, foreignLease(lease)
	}
	return there, apply.Result{}
}

func foreignLease(l *coordinationv1.Lease) apply.Result {
	return apply.Result{Foreign: []*apply.ForeignError{{Kind: "Lease", Name: l.Name}}}
}
