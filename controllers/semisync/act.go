package semisync

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	r.remember(key, d.memory)
	if d.settings != nil {
		call, cancel := context.WithTimeout(ctx, setTimeout)
		defer cancel()
		if err := r.Instances.SetSemiSync(call, key, d.primary, *d.settings); err != nil {
			return ctrl.Result{}, fmt.Errorf("asking %s: %s: %w", d.primary, d.wish(), err)
		}
		r.tell(ctx, c, d)
	}
	if d.waits {
		// Under load the replicas' reports change all the time, and no single change ends the wait; without it none may
		// change.
		return ctrl.Result{RequeueAfter: protocol.WatchHeartbeat}, nil
	}
	return ctrl.Result{}, nil
}

// wish is what the primary is asked for.
func (d decision) wish() string {
	if d.settings.LetGo {
		return "let go the commits that wait"
	}
	return fmt.Sprintf("wait for %d acknowledgements", d.settings.WaitFor)
}

func (r *Reconciler) tell(ctx context.Context, c *api.Cluster, d decision) {
	log := ctrl.LoggerFrom(ctx).WithValues("primary", d.primary, "waitFor", d.settings.WaitFor)
	if !d.settings.LetGo {
		log.Info("asked the primary for another number of acknowledgements")
		return
	}
	log.Info("asked the primary to let go commits that wait: a replica cannot be cloned meanwhile", "cloning", d.cloning)
	r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.EventCommitsLetGo, "LetCommitsGo",
		"%s is asked to end its clients' sessions and then the wait of commits for acknowledgements that do not come: while they wait, %s cannot be cloned. They are kept, and no client was told so",
		d.primary, strings.Join(d.cloning, ", "))
}
