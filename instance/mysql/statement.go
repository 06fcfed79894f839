package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/operator/instance/flavor"
)

// Error numbers of the server that a caller here has to know.
const (
	errSyntax        = 1064
	errUnknownThread = 1094
	errRestartFailed = 3707 // after CLONE: shut down, to be started by somebody else
)

// Execute runs one statement. Its text is in no error.
func (s *Server) Execute(ctx context.Context, statement string) error {
	if _, err := s.db.ExecContext(ctx, statement); err != nil {
		return withheld(err)
	}
	return nil
}

// short runs a statement that has nothing to wait for.
func (s *Server) short(ctx context.Context, what, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if err := s.Execute(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// step bounds a step of which the caller said nothing.
func step(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, StepTimeout)
}

// withheld takes the quotation of the statement out of a syntax error: it may hold a password.
func withheld(err error) error {
	if number(err) == errSyntax {
		return &driver.MySQLError{Number: errSyntax, Message: "the server does not understand the statement (its text is withheld)"}
	}
	return err
}

// number is the server's error number, 0 when the error is not the server's.
func number(err error) uint16 {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// variables reads global variables; those that the server does not have are absent.
func (s *Server) variables(ctx context.Context, names ...string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var list strings.Builder
	for i, n := range names {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(flavor.Quote(n))
	}
	rows, err := s.db.QueryContext(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("+list.String()+")")
	if err != nil {
		return nil, fmt.Errorf("reading variables: %w", err)
	}
	defer rows.Close()
	return pairs(rows)
}

func pairs(rows *sql.Rows) (map[string]string, error) {
	out := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("reading variables: %w", err)
		}
		out[name] = value
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading variables: %w", err)
	}
	return out, nil
}

// row reads the present row by column names; NULL is absent.
func row(rows *sql.Rows) (map[string]string, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(names))
	for i, v := range values {
		if v.Valid {
			out[names[i]] = v.String
		}
	}
	return out, nil
}
