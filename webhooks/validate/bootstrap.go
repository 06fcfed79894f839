package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Limits of the server, in characters.
const (
	maxDatabaseName = 64
	maxUserName     = 32
)

var (
	serverDatabases = []string{"mysql", "sys", "performance_schema", "information_schema", "heartbeat"}
	serverAccounts  = []string{"root", "mysql.sys", "mysql.session", "mysql.infoschema"}
	charsetName     = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
)

func bootstrap(c *api.Cluster) field.ErrorList {
	path := spec.Child("bootstrap", "initdb")
	initdb := c.Spec.Bootstrap.InitDB
	errs := slices.Concat(
		name(path.Child("database"), initdb.Database, maxDatabaseName),
		name(path.Child("owner"), initdb.Owner, maxUserName),
	)
	if slices.Contains(serverDatabases, strings.ToLower(initdb.Database)) {
		errs = append(errs, field.Invalid(path.Child("database"), initdb.Database, "is the server's own: use another name"))
	}
	owner := strings.ToLower(initdb.Owner)
	if slices.Contains(serverAccounts, owner) || strings.HasPrefix(owner, "cnmsql_") {
		errs = append(errs, field.Invalid(path.Child("owner"), initdb.Owner, "is the server's or the operator's own: use another name"))
	}
	// A long database name is refused as the owner's name, for which it stands.
	generated := initdb.Secret == nil || initdb.Secret.Name == ""
	if initdb.Owner == "" && generated && utf8.RuneCountInString(initdb.Database) > maxUserName {
		errs = append(errs, field.Required(path.Child("owner"), fmt.Sprintf(
			"the database's name has more than the %d characters that an account may have: name the owner", maxUserName)))
	}
	for _, f := range []struct{ name, value string }{{"characterSet", initdb.CharacterSet}, {"collation", initdb.Collation}} {
		if f.value != "" && !charsetName.MatchString(f.value) {
			errs = append(errs, field.Invalid(path.Child(f.name), f.value, "use letters, digits and underscores only"))
		}
	}
	return errs
}

func name(path *field.Path, value string, most int) field.ErrorList {
	var errs field.ErrorList
	if n := utf8.RuneCountInString(value); n > most {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("has %d characters: use at most %d", n, most)))
	}
	if strings.ContainsAny(value, "\x00\n\r") || !utf8.ValidString(value) || strings.HasSuffix(value, " ") {
		errs = append(errs, field.Invalid(path, value, "holds a line break, a zero byte, a space at the end or is no UTF-8: use another name"))
	}
	return errs
}

// bootstrapChange: what was used once is not used again, and a change would look as if it were.
func bootstrapChange(before, after *api.Cluster) field.ErrorList {
	if before.Established() && !equality.Semantic.DeepEqual(before.Spec.Bootstrap, after.Spec.Bootstrap) {
		return field.ErrorList{field.Forbidden(spec.Child("bootstrap"), "was used when the Cluster was made and has no effect any more: set it back")}
	}
	return nil
}

// secrets: one Secret cannot hold the password of two accounts unless both are meant to have the same.
func secrets(c *api.Cluster) field.ErrorList {
	var errs field.ErrorList
	own := map[string]string{
		c.Name + "-app": "the application", c.Name + "-root": "root",
		c.ReplicationSecretName(): "replication", c.ControlSecretName(): "the instance manager", c.CASecretName(): "the certificate authority",
	}
	check := func(path *field.Path, name, mine string) {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path, name, problem))
		}
		if whose, taken := own[name]; taken && whose != mine {
			errs = append(errs, field.Invalid(path, name, "is the Secret of "+whose+": name another"))
		}
	}
	if r := c.Spec.RootPasswordSecret; r != nil {
		check(spec.Child("rootPasswordSecret", "name"), r.Name, "root")
	}
	if s := c.Spec.Bootstrap.InitDB.Secret; s != nil {
		check(spec.Child("bootstrap", "initdb", "secret", "name"), s.Name, "the application")
	}
	return errs
}
