package credentials

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

func aCluster() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	c.Default()
	return c
}

func secret(username, password string) found {
	data := map[string][]byte{}
	for key, value := range map[string]string{api.SecretKeyUsername: username, api.SecretKeyPassword: password} {
		if value != "" {
			data[key] = []byte(value)
		}
	}
	return found{secret: &corev1.Secret{Data: data}}
}

// complete are the Secrets of a Cluster in which nothing is wrong: root, app, replication, control.
func complete() []found {
	return []found{secret("root", "p"), secret("app", "p"), secret(api.AccountReplication, "p"), secret(api.AccountControl, "p")}
}

func TestDecide(t *testing.T) {
	const root, app, replication = 0, 1, 2
	for _, tc := range []struct {
		name   string
		given  func(*api.Cluster, []found)
		steps  []string // secret: what is done to it
		reason string
		says   []string
	}{
		{"everything is there", func(*api.Cluster, []found) {}, nil, api.ReasonReconciled, nil},
		{
			"a new Cluster", func(_ *api.Cluster, f []found) { clear(f) },
			[]string{"c1-root: create username password", "c1-app: create username password", "c1-replication: create username password", "c1-control: create username password"},
			api.ReasonReconciled, nil,
		},
		{
			"a Secret without a password", func(_ *api.Cluster, f []found) { f[replication] = secret("x", "") },
			[]string{"c1-replication: password"}, api.ReasonReconciled, nil,
		},
		{
			"a Secret without a user name", func(_ *api.Cluster, f []found) { f[replication] = secret("", "p") },
			[]string{"c1-replication: username"}, api.ReasonReconciled, nil,
		},
		{"root needs no user name", func(_ *api.Cluster, f []found) { f[root] = secret("", "p") }, nil, api.ReasonReconciled, nil},
		{
			"an incomplete Secret that another controller keeps",
			func(_ *api.Cluster, f []found) { f[replication] = secret("x", ""); f[replication].theirs = true },
			nil, api.ReasonSecretIncomplete, []string{"c1-replication", "password"},
		},
		{
			"a deleted Secret of an established Cluster",
			func(c *api.Cluster, f []found) { c.Status.CurrentPrimary = "c1-1"; f[root] = found{} },
			nil, api.ReasonSecretMissing, []string{"c1-root", "create it", "that the servers know"},
		},
		{
			"an emptied password of an established Cluster",
			func(c *api.Cluster, f []found) { c.Status.CurrentPrimary = "c1-1"; f[root] = secret("root", "") },
			nil, api.ReasonSecretIncomplete, []string{"c1-root", "password", "ignored"},
		},
		{
			"a user's Secret that does not exist",
			func(c *api.Cluster, f []found) {
				c.Spec.RootPasswordSecret = &corev1.LocalObjectReference{Name: "mine"}
				f[root] = found{}
			},
			nil, api.ReasonSecretMissing, []string{"Secret mine", "spec.rootPasswordSecret", `"password"`},
		},
		{
			"a user's Secret that lacks keys is not written",
			func(c *api.Cluster, f []found) {
				c.Spec.Bootstrap.InitDB.Secret = &corev1.LocalObjectReference{Name: "mine"}
				f[app] = secret("", "")
			},
			nil, api.ReasonSecretIncomplete, []string{"Secret mine", "username and password"},
		},
		{
			"one missing Secret does not keep the others from being made",
			func(c *api.Cluster, f []found) {
				clear(f)
				c.Spec.RootPasswordSecret = &corev1.LocalObjectReference{Name: "mine"}
			},
			[]string{"c1-app: create username password", "c1-replication: create username password", "c1-control: create username password"},
			api.ReasonSecretMissing, []string{"Secret mine"},
		},
		{
			"another owner than the Secret's user",
			func(c *api.Cluster, _ []found) { c.Spec.Bootstrap.InitDB.Owner = "shop" },
			nil, api.ReasonSecretIncomplete, []string{`"app"`, `"shop"`},
		},
		{"a trailing newline", func(_ *api.Cluster, f []found) { f[root] = secret("root", "p\n") }, nil, api.ReasonSecretIncomplete, []string{"newline"}},
		{
			"33 characters for replication", func(_ *api.Cluster, f []found) { f[replication] = secret("x", strings.Repeat("é", 33)) },
			nil, api.ReasonSecretIncomplete, []string{"33 characters", "at most 32"},
		},
		{"32 characters for replication", func(_ *api.Cluster, f []found) { f[replication] = secret("x", strings.Repeat("é", 32)) }, nil, api.ReasonReconciled, nil},
		{"the server's own account for the application", func(_ *api.Cluster, f []found) { f[app] = secret("Root", "p") }, nil, api.ReasonSecretIncomplete, []string{"Root"}},
		{"special characters", func(_ *api.Cluster, f []found) { f[root] = secret("root", "a#b'c\"d\\e;f %p@/:?é") }, nil, api.ReasonReconciled, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, seen := aCluster(), complete()
			tc.given(c, seen)
			p := decide(c, seen)
			var steps []string
			for _, s := range p.steps {
				text := s.secret + ":"
				for word, is := range map[string]bool{" create": s.create, " username": s.needUsername, " password": s.needPassword} {
					if is {
						text += word
					}
				}
				steps = append(steps, sorted(text))
			}
			if !slices.Equal(steps, tc.steps) {
				t.Errorf("steps %q, want %q", steps, tc.steps)
			}
			got := p.condition(nil)
			if got.Reason != tc.reason || (got.Status == metav1.ConditionTrue) != (tc.reason == api.ReasonReconciled) {
				t.Errorf("condition %+v", got)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message lacks %q: %s", part, got.Message)
				}
			}
		})
	}
}

// sorted puts the words after the first into the order create, username, password.
func sorted(text string) string {
	words := strings.Fields(text)
	order := []string{"create", "username", "password"}
	slices.SortFunc(words[1:], func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return strings.Join(words, " ")
}

func TestUserNameOfTheApplicationIsTheOwner(t *testing.T) {
	for _, tc := range []struct{ owner, database, want string }{
		{"", "app", "app"}, {"", "orders", "orders"}, {"shop", "orders", "shop"},
	} {
		c := aCluster()
		c.Spec.Bootstrap.InitDB.Owner, c.Spec.Bootstrap.InitDB.Database = tc.owner, tc.database
		if got := accounts(c)[1].username; got != tc.want {
			t.Errorf("owner %q, database %q: %q, want %q", tc.owner, tc.database, got, tc.want)
		}
	}
}

func TestGeneratedPasswordsFitAndDiffer(t *testing.T) {
	a, b := generate(), generate()
	if len(a) != 32 || a == b || strings.Trim(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("passwords %q and %q", a, b)
	}
}
