package v1alpha1

// Messages of the log that are kept as they are, whatever the code around them becomes: people search and alert by
// them. docs/primary.md lists them with their fields.
const (
	// LogFailoverBraked: an automatic failover is held back by failoverPolicy.minTimeBetweenFailovers. Fields:
	// lastFailover (a time), cooldown (a duration).
	LogFailoverBraked = "failover blocked by anti-flap cooldown"
)

// LogMessages are all of them.
var LogMessages = []string{LogFailoverBraked}
