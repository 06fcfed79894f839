package core

import (
	"fmt"
	"slices"
)

// preference is an instance's place in failoverPolicy.preferredPrimary; who is not named comes after all who are.
func (p *pass) preference(name string) int {
	list := p.preferred()
	if n := slices.Index(list, name); n >= 0 {
		return n
	}
	return len(list)
}

func (p *pass) preferred() []string {
	if p.c.Spec.FailoverPolicy == nil {
		return nil
	}
	return p.c.Spec.FailoverPolicy.PreferredPrimary
}

// tooFarBehind says that more would be lost than failoverPolicy allows; empty when not.
func (p *pass) tooFarBehind(missing uint64) string {
	f := p.c.Spec.FailoverPolicy
	if f == nil || f.MaxTransactionsBehind == nil || missing <= uint64(max(*f.MaxTransactionsBehind, 0)) { // #nosec G115 -- not negative
		return ""
	}
	return fmt.Sprintf("misses %d transactions that the primary was last known to have, more than maxTransactionsBehind (%d)", missing, *f.MaxTransactionsBehind)
}
