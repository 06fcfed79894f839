package mysql_test

import (
	"errors"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/operator/instance/mysql"
)

func TestAPasswordThatWorkedIsKeptWhateverTheSecretSaysLater(t *testing.T) {
	present, unreadable, down := "one", error(nil), error(nil)
	known := "one" // to the server
	tried := 0
	login := mysql.Connections(func() (string, error) { return present, unreadable }, func(password string) (string, error) {
		tried++
		switch {
		case down != nil:
			return "", down
		case password != known:
			return "", &driver.MySQLError{Number: 1045, Message: "denied with " + password}
		}
		return password, nil
	})
	attempt := func(what, want string) {
		t.Helper()
		if got, err := login(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: logged in with %q: %v", what, got, err)
		}
	}
	present = "wrong"
	attempt("wrong from the beginning", "")
	present = "one"
	attempt("right", "one")
	present = "wrong"
	attempt("another that the server does not know", "one")
	unreadable = errors.New("no such file")
	attempt("none at all", "one")
	unreadable, present, known = nil, "two", "two"
	attempt("changed in both places", "two")
	present = "one"
	attempt("the one of before", "two")
	known = "three"
	if _, err := login(); err == nil || err.Error() != "Error 1045: denied with one" {
		t.Errorf("the error is not about the present password: %v", err)
	}
	down, tried = errors.New("connection refused"), 0
	attempt("a server that is down", "")
	if tried != 1 {
		t.Errorf("%d tries: that it is down has nothing to do with the password", tried)
	}
}
