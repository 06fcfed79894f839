package mysql

import (
	"time"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/protocol"
)

// Age is beats.age of one source.
type Age struct{ b beats }

// Of is the age for a figure, a mark and a time.
func (a *Age) Of(micros, mark string, now time.Time) (int64, error) {
	return a.b.age(micros, mark, now)
}

// Connections logs in with what present says, by with.
func Connections(present func() (string, error), with func(string) (string, error)) func() (string, error) {
	l := &login{}
	return func() (string, error) { return connect(present, with, l) }
}

// Never is the figure for a time that has not come.
const Never = never

// Withheld is what becomes of an error.
var Withheld = withheld

// Globals reads the first row of the facts.
var Globals = globals

// SemiSyncOf reads variables and status variables.
func SemiSyncOf(n flavor.SemiSync, variables, status map[string]string) protocol.SemiSync {
	return semiSync(n, rowsOf(variables), rowsOf(status))
}

func rowsOf(m map[string]string) []map[string]string {
	var out []map[string]string
	for k, v := range m {
		out = append(out, map[string]string{"Variable_name": k, "Value": v})
	}
	return out
}
