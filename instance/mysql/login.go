package mysql

import (
	"context"
	"database/sql/driver"
	"sync"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// errAccessDenied is the server's number for a password that is not the account's.
const errAccessDenied = 1045

// login remembers the password that last opened a connection. What the server knows changes only by its own
// statements, what the mounted Secret holds by anybody's mistake: a manager that can log in stays able to.
type login struct {
	mu     sync.Mutex
	worked *string
}

func (l *login) last() *string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.worked
}

func (l *login) succeeded(password string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worked = &password
}

// connect opens a connection with the present password and, when that cannot be had or is not the account's, with
// the one that worked last. The error is about the present one.
func connect[C any](present func() (string, error), with func(password string) (C, error), l *login) (C, error) {
	password, err := present()
	var c C
	if err == nil {
		if c, err = with(password); err == nil {
			l.succeeded(password)
			return c, nil
		}
		if number(err) != errAccessDenied {
			return c, err
		}
	}
	last := l.last()
	if last == nil || *last == password {
		return c, err
	}
	if again, lastErr := with(*last); lastErr == nil {
		return again, nil
	}
	return c, err
}

// connector opens the connections of one pool.
type connector struct {
	config  *mysqldriver.Config
	present func() (string, error)
	login   *login
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	return connect(c.present, func(password string) (driver.Conn, error) {
		config := c.config.Clone()
		config.Passwd = password
		one, err := mysqldriver.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return one.Connect(ctx)
	}, c.login)
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return mysqldriver.MySQLDriver{} }
