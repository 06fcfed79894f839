package v1alpha1

// Messages of the log that are kept as they are, whatever the code around them becomes: people search and alert by
// them. docs/primary.md lists them with their fields.
const (
	// LogFailoverBraked: an automatic failover is held back by failoverPolicy.minTimeBetweenFailovers. Fields:
	// lastFailover (a time), cooldown (a duration).
	LogFailoverBraked = "failover blocked by anti-flap cooldown"
	// LogReassert: an instance is about to open its running server, which somebody else had made read-only, again.
	// Field: site (the instance).
	LogReassert = "re-asserting fenced promoted primary: no site is writable and the last failover target is GTID-complete; restoring writability"
	// LogReassertRefused: a primary does not open, because status.promotionGTIDExecuted cannot be read. Field: site
	// (the instance).
	LogReassertRefused = "primary re-assert refused: recorded promotion GTID set failed to parse — status corrupted or manually edited?"
)

// LogMessages are all of them.
var LogMessages = []string{LogFailoverBraked, LogReassert, LogReassertRefused}
