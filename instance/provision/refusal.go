package provision

// Refusal is an error that no retry can mend: somebody has to look at the volume. Nothing on it was changed.
type Refusal struct {
	// Reason is one of the Reason constants, Message says what to do.
	Reason, Message string
}

// The reasons of a refusal.
const (
	// ReasonForeignData: there are data that no instance of this Cluster put there.
	ReasonForeignData = "ForeignData"
	// ReasonForeignVolume: the volume belongs to another Cluster or another instance.
	ReasonForeignVolume = "ForeignVolume"
	// ReasonUnreadableState: the state file is damaged.
	ReasonUnreadableState = "UnreadableState"
)

func (r *Refusal) Error() string { return r.Message }
