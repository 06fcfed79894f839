package provision

import (
	"context"
	"fmt"
	"strings"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mysql"
)

// Database is what a new database server contains.
type Database struct {
	// Name, CharacterSet and Collation of the database; no database is made when Name is empty.
	Name, CharacterSet, Collation string
	// Owner has all privileges on it, from everywhere. No account is made when Owner.User is empty.
	Owner Account
	// Heartbeat makes the table of the heartbeat, while nobody waits for acknowledgements yet.
	Heartbeat bool
	// PostInitSQL are run in order by root.
	PostInitSQL []string
}

// statements make the database and its owner. literal tells that the server takes the name of a database in a
// GRANT as it is, and not as a pattern.
func (d Database) statements(literal bool) []string {
	var list []string
	if d.Heartbeat {
		list = append(list, flavor.CreateHeartbeatDatabase, flavor.CreateHeartbeatTable)
	}
	if d.Name != "" {
		s := "CREATE DATABASE " + flavor.Identifier(d.Name)
		if d.CharacterSet != "" {
			s += " CHARACTER SET " + flavor.Quote(d.CharacterSet)
		}
		if d.Collation != "" {
			s += " COLLATE " + flavor.Quote(d.Collation)
		}
		list = append(list, s)
	}
	if d.Owner.User == "" {
		return list
	}
	owner := user(d.Owner.User, "%")
	list = append(list, "CREATE USER "+owner+identified(d.Owner.Password))
	if d.Name != "" {
		name := d.Name
		if !literal {
			name = strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(name)
		}
		list = append(list, "GRANT ALL ON "+flavor.Identifier(name)+".* TO "+owner)
	}
	return list
}

// fill makes the content of a new database server. It is written to the binary log, as the first
// transactions of the Cluster, and the server is read-only again afterwards.
func (d Database) fill(ctx context.Context, s *mysql.Server, root string) error {
	if d.Owner.User != "" {
		if err := d.Owner.validate(); err != nil {
			return err
		}
	}
	if err := s.ForgetBinaryLogs(ctx); err != nil {
		return err
	}
	literal, err := s.PartialRevokes(ctx)
	if err != nil {
		return err
	}
	if err := s.Execute(ctx, flavor.OpenForWrites); err != nil {
		return fmt.Errorf("opening the new server for its first statements: %w", err)
	}
	for _, statement := range d.statements(literal) {
		what, _, _ := strings.Cut(statement, " ")
		if err := s.Execute(ctx, statement); err != nil {
			return fmt.Errorf("making the database and its owner (spec.bootstrap.initdb): %s: %w", what, err)
		}
	}
	as := s.As("root", root)
	defer as.Close()
	for i, statement := range d.PostInitSQL {
		if err := as.Execute(ctx, statement); err != nil {
			return fmt.Errorf("spec.bootstrap.initdb.postInitSQL[%d]: %w", i, err)
		}
	}
	return s.SetReadOnly(ctx)
}
