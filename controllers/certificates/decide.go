package certificates

import (
	"fmt"
	"strings"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
)

// issued tells whether cert-manager says that a certificate is as last asked for; if not, what it says. The
// condition counts only for the generation that it speaks of: after a change it is still that of the old one.
func issued(c *cmv1.Certificate) (bool, string) {
	if c == nil {
		return false, "nothing yet"
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type != cmv1.CertificateConditionReady {
			continue
		}
		if condition.ObservedGeneration != c.Generation {
			return false, "nothing yet about what was asked for last"
		}
		if condition.Status == cmmeta.ConditionTrue {
			return true, ""
		}
		return false, condition.Message
	}
	return false, "nothing yet (see that its controller runs)"
}

// expirations are the ends of validity by Secret; nil when nothing was issued.
func expirations(seen []*cmv1.Certificate) *api.CertificatesStatus {
	ends := map[string]string{}
	for _, c := range seen {
		if c != nil && c.Status.NotAfter != nil {
			ends[c.Spec.SecretName] = c.Status.NotAfter.UTC().Format(time.RFC3339)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	return &api.CertificatesStatus{Expirations: ends}
}

// condition tells which certificates are not there yet, and why.
func condition(wanted, seen []*cmv1.Certificate, r apply.Result) metav1.Condition {
	out := r.Condition(api.ConditionCertificatesReady, "every certificate is issued")
	var pending []string
	first := "" // all wait for the same when they wait for the authority
	for i := range wanted {
		if ok, why := issued(seen[i]); !ok {
			pending = append(pending, wanted[i].Name)
			if first == "" {
				first = why
			}
		}
	}
	if out.Status == metav1.ConditionTrue && len(pending) > 0 {
		out.Status, out.Reason = metav1.ConditionFalse, api.ReasonCertificatePending
		out.Message = fmt.Sprintf("waiting for cert-manager to issue %s; of %s it says: %s", strings.Join(pending, ", "), pending[0], first)
	}
	return out
}

// absent says that cert-manager is needed.
func absent() metav1.Condition {
	return metav1.Condition{
		Type: api.ConditionCertificatesReady, Status: metav1.ConditionFalse, Reason: api.ReasonCertManagerMissing,
		Message: "cert-manager is not installed (no kinds Certificate and Issuer in " + cmv1.SchemeGroupVersion.String() +
			"): install cert-manager 1.16 or later; the Cluster goes on by itself within a minute",
	}
}
