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
// others, then shows the holder.
func (r *Reconciler) act(ctx context.Context, c *api.Cluster, lease *coordinationv1.Lease) (ctrl.Result, error) {
	identities := r.identities(ctx, c)
	if len(identities.Foreign) > 0 {
		r.foreign(c, identities.ForeignMessage())
	}
	sweepErr := sweep.Removed(ctx, r.Client, r.Live, c, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{})
	var leaseErr error
	foreignLease := false
	if lease == nil {
		lease, foreignLease, leaseErr = r.make(ctx, client.ObjectKeyFromObject(c))
	}
	_, statusErr := status.Apply(ctx, r.Client, Manager, c, status.Owns{PrimaryLease: true},
		status.Fields{PrimaryLease: shown(c.Status.PrimaryLease, lease)})
	if err := errors.Join(identities.Err, sweepErr, leaseErr, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if foreignLease || len(identities.Foreign) > 0 {
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

// make creates the Lease. One that is there after all is left as it is, and returned when it is ours;
// foreign tells that it is not.
func (r *Reconciler) make(ctx context.Context, key client.ObjectKey) (lease *coordinationv1.Lease, foreign bool, err error) {
	o, err := r.observeOrigin(ctx, key)
	if o == nil {
		return nil, false, err
	}
	lease = objects.Lease(o.cluster, firstHolder(o), r.Now())
	err = r.Client.Create(ctx, lease, client.FieldOwner(Manager))
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("made the primary Lease", "holder", holderOf(lease))
		return lease, false, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, fmt.Errorf("creating Lease %s: %w", lease.Name, err)
	}
	there := &coordinationv1.Lease{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(lease), there); err != nil {
		return nil, false, fmt.Errorf("reading Lease %s: %w", lease.Name, err)
	}
	if !metav1.IsControlledBy(there, o.cluster) {
		r.foreign(o.cluster, (&apply.ForeignError{Kind: "Lease", Name: lease.Name}).Error())
		return nil, true, nil
	}
	return there, false, nil
}

func (r *Reconciler) foreign(c *api.Cluster, message string) {
	r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.EventForeignObject, "Apply", "%s", message)
}
