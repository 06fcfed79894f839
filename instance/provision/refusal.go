package provision

import "errors"

var errNotYet = errors.New("not written yet")

// Refusal is an error that no retry can mend: somebody has to look at the volume.
type Refusal struct {
	// Reason is one of the Reason constants, Message says what to do.
	Reason, Message string
}

// The reasons of a refusal.
const (
	// ReasonForeignData: the data directory holds something that no instance of this Cluster put there.
	ReasonForeignData = "ForeignData"
	// ReasonForeignVolume: the volume belongs to another Cluster or another instance.
	ReasonForeignVolume = "ForeignVolume"
	// ReasonUnreadableState: the state file is damaged.
	ReasonUnreadableState = "UnreadableState"
)

func (r *Refusal) Error() string { return r.Message }
