package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/webhooks/validate"
)

func TestSamplesAreValidClusters(t *testing.T) {
	files, err := filepath.Glob("samples/mysql_*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("samples %v, %v", files, err)
	}
	for _, file := range files {
		c := &api.Cluster{}
		if err := yaml.UnmarshalStrict(read(t, file), c); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		c.Namespace = "default"
		c.Default()
		if errs := validate.Cluster(c); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs.ToAggregate())
		}
	}
}

// kubectl apply keeps the whole manifest in an annotation, and those of an object have 256 KiB together.
func TestTheCRDFitsIntoTheAnnotationOfApply(t *testing.T) {
	const limit = 256 << 10
	raw, err := yaml.YAMLToJSON(read(t, "crd/bases/mysql.cnmsql.co_clusters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > limit*9/10 {
		t.Errorf("the CRD has %d bytes as JSON; kubectl apply takes less than %d", len(raw), limit)
	}
}

func TestTheOperatorCannotDeleteDataOrSecrets(t *testing.T) {
	for _, rule := range role(t).Rules {
		for _, resource := range []string{"persistentvolumeclaims", "secrets", "*"} {
			if slices.Contains(rule.Resources, resource) && (slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "*")) {
				t.Errorf("the operator may %v %v", rule.Verbs, rule.Resources)
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("the operator may %s %v", verb, rule.Resources)
			}
		}
	}
}

// Each verb has its call; what is not here is not given. get is for what is read from the API server itself, past
// the caches.
func TestTheOperatorMayDoNoMoreThanItNeeds(t *testing.T) {
	want := map[string]string{
		"mysql.cnmsql.co/clusters":               "get list patch watch", // patch for the annotations about failovers
		"mysql.cnmsql.co/clusters/status":        "patch update",         // update is given on to instances
		"mysql.cnmsql.co/clusters/finalizers":    "update",
		"/nodes":                                 "list watch",
		"/pods":                                  "create delete get list patch watch",
		"/persistentvolumeclaims":                "create get list watch",
		"/secrets":                               "create get list patch watch",
		"/serviceaccounts":                       "create delete list patch watch",
		"/services":                              "create delete list patch watch",
		"policy/poddisruptionbudgets":            "create delete list patch watch",
		"rbac.authorization.k8s.io/roles":        "create delete list patch watch",
		"rbac.authorization.k8s.io/rolebindings": "create delete list patch watch",
		"coordination.k8s.io/leases":             "create get list update watch", // update is given on to instances
		"events.k8s.io/events":                   "create patch",
		"storage.k8s.io/storageclasses":          "list",
		"cert-manager.io/certificates":           "create delete list patch watch",
		"cert-manager.io/issuers":                "create list patch watch",
	}
	got := map[string]string{}
	for _, rule := range role(t).Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				got[group+"/"+resource] = strings.Join(slices.Sorted(slices.Values(rule.Verbs)), " ")
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// Nobody can give away a right that he does not have: a missing one would show only when the first instance
// is made.
func TestTheOperatorHasEveryRightThatItGivesToInstances(t *testing.T) {
	c := &api.Cluster{}
	c.Name, c.Namespace = "c1", "default"
	own := role(t).Rules
	for _, given := range objects.Role(c, "c1-1").Rules {
		for _, group := range given.APIGroups {
			for _, resource := range given.Resources {
				for _, verb := range given.Verbs {
					if !slices.ContainsFunc(own, func(r rbacv1.PolicyRule) bool {
						return len(r.ResourceNames) == 0 && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
					}) {
						t.Errorf("the operator gives %s of %s in %q to instances and does not have it", verb, resource, group)
					}
				}
			}
		}
	}
}

// The image stands in one place; everything else is filled in from there.
func TestTheImageIsNamedOnce(t *testing.T) {
	var named []string
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") && strings.Contains(string(read(t, path)), "cnmsql/operator") {
			named = append(named, path)
		}
		return err
	})
	if err != nil || !slices.Equal(named, []string{"manager/kustomization.yaml"}) {
		t.Errorf("the image is named in %v, %v", named, err)
	}
}

func role(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	raw, err := yaml.YAMLToJSON(read(t, "rbac/role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := &rbacv1.ClusterRole{}
	if err := json.Unmarshal(raw, r); err != nil || len(r.Rules) == 0 {
		t.Fatalf("%d rules, %v", len(r.Rules), err)
	}
	return r
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// kustomize changes the names of objects, and not those that a Certificate only mentions.
func TestTheMetricsCertificateIsThatOfItsServiceAndIsTheOneThatIsMounted(t *testing.T) {
	var overlay struct{ Namespace, NamePrefix string }
	var certificate cmapi.Certificate
	var issuer cmapi.Issuer
	var service corev1.Service
	var deployment appsv1.Deployment
	for file, into := range map[string]any{
		"default/kustomization.yaml": &overlay, "certmanager/metrics_certificate.yaml": &certificate, "certmanager/issuer.yaml": &issuer,
		"manager/metrics_service.yaml": &service, "manager/operator.yaml": &deployment,
	} {
		if err := yaml.Unmarshal(read(t, file), into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if want := overlay.NamePrefix + service.Name + "." + overlay.Namespace + ".svc"; !slices.Contains(certificate.Spec.DNSNames, want) {
		t.Errorf("the certificate is for %v, and the Service is %s", certificate.Spec.DNSNames, want)
	}
	if want := overlay.NamePrefix + issuer.Name; certificate.Spec.IssuerRef.Name != want {
		t.Errorf("issued by %s, which is %s", certificate.Spec.IssuerRef.Name, want)
	}
	if mounted := deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName; mounted != certificate.Spec.SecretName {
		t.Errorf("%s is mounted, and the certificate is in %s", mounted, certificate.Spec.SecretName)
	}
}
