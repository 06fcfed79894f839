package provision

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cnmsql.co/operator/instance/flavor"
)

// Accounts are the accounts that every server has.
type Accounts struct {
	// Root is root's password. RootEverywhere lets root log in over the network too.
	Root           string
	RootEverywhere bool
	// Control is the manager's own account, which logs in through the socket only. Replication is the one
	// by which replicas read from the primary, with a certificate of ReplicationSubject, for example
	// /CN=cnmsql-replication.
	Control, Replication Account
	ReplicationSubject   string
}

// Account is a name and a password.
type Account struct{ User, Password string }

// validate names the account whose password the server or replication cannot work with.
func (a Accounts) validate() error {
	if err := checkPassword(a.Root); err != nil {
		return fmt.Errorf("the password of root %w", err)
	}
	for _, x := range []Account{a.Control, a.Replication} {
		if err := x.validate(); err != nil {
			return err
		}
	}
	if len(a.Replication.Password) > flavor.MaxReplicationPassword {
		return fmt.Errorf("the password of %s has more than the %d bytes that replication accepts", a.Replication.User, flavor.MaxReplicationPassword)
	}
	return nil
}

func (a Account) validate() error {
	if a.User == "" {
		return errors.New("an account has no name")
	}
	if err := checkPassword(a.Password); err != nil {
		return fmt.Errorf("the password of %s %w", a.User, err)
	}
	return nil
}

func checkPassword(p string) error {
	switch {
	case p == "":
		return errors.New("is empty")
	case !utf8.ValidString(p):
		return errors.New("is no UTF-8 text")
	case strings.ContainsAny(p, "\x00\r\n"):
		return errors.New("has a line break or a zero byte: look for a newline at the end of the Secret's value")
	}
	return nil
}

// statements make the accounts in a server that is being initialised, one to a line.
func (a Accounts) statements() []string {
	root := user("root", "localhost")
	control := user(a.Control.User, "localhost")
	replication := user(a.Replication.User, "%")
	list := []string{
		"SET NAMES utf8mb4",
		"SET SESSION sql_mode = ''",
		"ALTER USER " + root + identified(a.Root),
		"CREATE USER " + control + identified(a.Control.Password),
		"GRANT ALL ON *.* TO " + control + " WITH GRANT OPTION",
		"CREATE USER " + replication + identified(a.Replication.Password) + " REQUIRE SUBJECT " + flavor.Quote(a.ReplicationSubject),
		// CONNECTION_ADMIN: replicas read on from a server that refuses clients, or has no connection left.
		"GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN ON *.* TO " + replication,
	}
	if a.RootEverywhere {
		everywhere := user("root", "%")
		list = append(list,
			"CREATE USER "+everywhere+identified(a.Root),
			"GRANT ALL ON *.* TO "+everywhere+" WITH GRANT OPTION")
	}
	return list
}

func user(name, host string) string { return flavor.Quote(name) + "@" + flavor.Quote(host) }

func identified(password string) string { return " IDENTIFIED BY " + flavor.Quote(password) }
