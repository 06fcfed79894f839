package sim

import (
	"fmt"
	"math/bits"
	"strings"

	"cnmsql.co/operator/instance/gtid"
)

// MaxInstances is the largest world.
const MaxInstances = 5

// maxTxns is how many transactions a run can tell apart.
const maxTxns = 256

// txn is a transaction: its content, whatever number it has. A server that lost the end of its binary log
// gives the same number to another one.
type txn uint8

// content is a set of transactions by content.
type content [maxTxns / 64]uint64

func (c *content) add(t txn)      { c[t/64] |= 1 << (t % 64) }
func (c *content) has(t txn) bool { return c[t/64]&(1<<(t%64)) != 0 }

// minus is what c has and d has not.
func (c *content) minus(d *content) content {
	var out content
	for n := range c {
		out[n] = c[n] &^ d[n]
	}
	return out
}

// and is what both have.
func (c *content) and(d *content) content {
	var out content
	for n := range c {
		out[n] = c[n] & d[n]
	}
	return out
}

func (c *content) empty() bool { return *c == content{} }

func (c *content) count() int {
	n := 0
	for _, b := range c {
		n += bits.OnesCount64(b)
	}
	return n
}

// numbers is a set of transactions by number: for each server the first so many. A server sends its log in
// order, so there are no gaps.
type numbers [MaxInstances]uint8

func (n numbers) union(m numbers) numbers {
	for i := range n {
		n[i] = max(n[i], m[i])
	}
	return n
}

func (n numbers) contains(m numbers) bool {
	for i := range n {
		if m[i] > n[i] {
			return false
		}
	}
	return true
}

// uuid is the server_uuid of an instance's server.
var uuid = [MaxInstances]string{
	"aaaaaaaa-0000-4000-8000-000000000001",
	"aaaaaaaa-0000-4000-8000-000000000002",
	"aaaaaaaa-0000-4000-8000-000000000003",
	"aaaaaaaa-0000-4000-8000-000000000004",
	"aaaaaaaa-0000-4000-8000-000000000005",
}

// Sets makes GTID sets of numbers. It remembers them, since a set never changes; one is not for use by two
// goroutines at once.
type Sets struct{ known map[numbers]gtid.Set }

func (s *Sets) of(n numbers) gtid.Set {
	if set, ok := s.known[n]; ok {
		return set
	}
	var parts []string
	for i, last := range n {
		if last > 0 {
			parts = append(parts, fmt.Sprintf("%s:1-%d", uuid[i], last))
		}
	}
	set, err := gtid.Parse(strings.Join(parts, ","))
	if err != nil {
		panic("a set of the model: " + err.Error())
	}
	if s.known == nil || len(s.known) > 100_000 {
		s.known = map[numbers]gtid.Set{}
	}
	s.known[n] = set
	return set
}
