package credentials

import (
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
)

// Limits of the server, in characters.
const (
	maxReplicationPassword = 32
	maxUsername            = 32
)

// account is one of a Cluster's accounts and where its password is.
type account struct {
	name   string
	secret string
	// field is where the user names the Secret; empty when it is the operator's own.
	field string
	// username is who it is. Empty: whom the user's Secret names.
	username string
	// fixed tells that the Secret must say exactly this user name.
	fixed bool
	// anonymous accounts need no user name in their Secret.
	anonymous bool
	// maxPassword is in characters; 0 means no limit.
	maxPassword int
}

// accounts are all of a Cluster, in a fixed order.
func accounts(c *api.Cluster) []account {
	root := account{name: "root", secret: c.RootSecretName(), username: "root", anonymous: true}
	if c.Spec.RootPasswordSecret != nil && c.Spec.RootPasswordSecret.Name != "" {
		root.field = "spec.rootPasswordSecret"
	}
	app := account{name: "app", secret: c.AppSecretName()}
	initdb := c.Spec.Bootstrap.InitDB
	app.username, app.fixed = initdb.Owner, initdb.Owner != ""
	if initdb.Secret != nil && initdb.Secret.Name != "" {
		app.field = "spec.bootstrap.initdb.secret"
	} else if app.username == "" {
		app.username = initdb.Database
	}
	return []account{
		root, app,
		{name: "replication", secret: c.ReplicationSecretName(), username: api.AccountReplication, maxPassword: maxReplicationPassword},
		{name: "control", secret: c.ControlSecretName(), username: api.AccountControl},
	}
}

// step is what is to be done to one Secret: make it, or give it the keys that it lacks.
type step struct {
	account
	create                     bool
	needUsername, needPassword bool
}

// plan is what is to be done, and what a person has to do.
type plan struct {
	steps    []step
	missing  []string
	problems []string
}

// decide looks at each account on its own: what is wrong with one does not keep the others from being made.
func decide(c *api.Cluster, seen []found) plan {
	var p plan
	for i, a := range accounts(c) {
		p.account(a, seen[i], c.Established())
	}
	return p
}

func (p *plan) account(a account, f found, established bool) {
	if !f.exists() {
		if established || a.field != "" {
			p.missing = append(p.missing, missing(a, established))
			return
		}
		p.steps = append(p.steps, step{account: a, create: true, needUsername: true, needPassword: true})
		return
	}
	needUsername := !a.anonymous && f.value(api.SecretKeyUsername) == ""
	needPassword := f.value(api.SecretKeyPassword) == ""
	if !needUsername && !needPassword {
		p.problems = append(p.problems, faults(a, f)...)
		return
	}
	if established || a.field != "" || f.theirs {
		p.problems = append(p.problems, incomplete(a, needUsername, needPassword, established))
		return
	}
	p.steps = append(p.steps, step{account: a, needUsername: needUsername, needPassword: needPassword})
}

func missing(a account, established bool) string {
	where := ""
	if a.field != "" {
		where = fmt.Sprintf(", named in %s,", a.field)
	}
	text := fmt.Sprintf("Secret %s%s does not exist: create it with %s", a.secret, where, keys(a))
	if established {
		text += ", holding the password that the servers know; a new one is not generated, because they would not accept it"
	}
	return text
}

func keys(a account) string {
	if a.anonymous {
		return fmt.Sprintf("the key %q", api.SecretKeyPassword)
	}
	return fmt.Sprintf("the keys %q and %q", api.SecretKeyUsername, api.SecretKeyPassword)
}

func incomplete(a account, username, password, established bool) string {
	var lacking []string
	if username {
		lacking = append(lacking, api.SecretKeyUsername)
	}
	if password {
		lacking = append(lacking, api.SecretKeyPassword)
	}
	text := fmt.Sprintf("Secret %s: %s missing or empty: set it", a.secret, strings.Join(lacking, " and "))
	if established && password {
		text += " to the password that the servers know; the empty value is ignored"
	}
	return text
}

// faults are values that the server or its protocol would not take.
func faults(a account, f found) []string {
	var out []string
	fault := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("Secret %s: ", a.secret)+fmt.Sprintf(format, args...))
	}
	password, username := f.value(api.SecretKeyPassword), f.value(api.SecretKeyUsername)
	if strings.ContainsAny(password, "\n\r\x00") {
		fault("the password holds a line break or a zero byte (a trailing newline is easily left by a shell): remove it")
	}
	if !utf8.ValidString(password) {
		fault("the password is not UTF-8: use another")
	}
	if n := utf8.RuneCountInString(password); a.maxPassword > 0 && n > a.maxPassword {
		fault("the password has %d characters: replication takes at most %d", n, a.maxPassword)
	}
	if a.anonymous {
		return out
	}
	if a.fixed && username != a.username {
		fault("the username is %q and must be %q", username, a.username)
	}
	if a.name == "app" && !applicationName(username) {
		fault("the username %q is the server's own, or longer than %d characters, or holds a line break: use another", username, maxUsername)
	}
	return out
}

// applicationName tells whether an account of the application may be called so.
func applicationName(name string) bool {
	lower := strings.ToLower(name)
	reserved := lower == "root" || strings.HasPrefix(lower, "mysql.") || strings.HasPrefix(lower, "cnmsql_")
	return !reserved && utf8.RuneCountInString(name) <= maxUsername && !strings.ContainsAny(name, "\n\r\x00")
}

// condition tells a person where the Cluster stands once the steps are done.
func (p *plan) condition(failed error) metav1.Condition {
	out := metav1.Condition{Type: api.ConditionCredentialsReady, Status: metav1.ConditionFalse}
	switch {
	case len(p.missing) > 0:
		out.Reason, out.Message = api.ReasonSecretMissing, strings.Join(append(p.missing, p.problems...), "; ")
	case len(p.problems) > 0:
		out.Reason, out.Message = api.ReasonSecretIncomplete, strings.Join(p.problems, "; ")
	case failed != nil:
		out.Reason, out.Message = api.ReasonApplyFailed, apply.FailedMessage(failed)
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, api.ReasonReconciled, "every Secret exists and is complete"
	}
	return out
}
