package semisync

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/status"
	"cnmsql.co/operator/instance/protocol"
)

// setTimeout is for one request to a primary.
const setTimeout = 3 * time.Second

// act writes the status first: it may only ever be at or below what the primary waits for, so a lowered
// number has to be stored before the primary is told.
func (r *Reconciler) act(ctx context.Context, c *api.Cluster, d decision) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(c)
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{SemiSync: true},
		status.Fields{Conditions: []metav1.Condition{d.condition}, SemiSync: d.status})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.remember(key, d.raising)
	if d.settings != nil {
		call, cancel := context.WithTimeout(ctx, setTimeout)
		defer cancel()
		if err := r.Instances.SetSemiSync(call, key, d.primary, *d.settings); err != nil {
			return ctrl.Result{}, fmt.Errorf("asking %s for %d acknowledgements: %w", d.primary, d.settings.WaitFor, err)
		}
		ctrl.LoggerFrom(ctx).Info("asked the primary for another number of acknowledgements", "primary", d.primary, "waitFor", d.settings.WaitFor)
	}
	if d.raising != nil {
		// Under load the replicas' reports change all the time, and no single change ends the wait.
		return ctrl.Result{RequeueAfter: protocol.WatchHeartbeat}, nil
	}
	return ctrl.Result{}, nil
}
