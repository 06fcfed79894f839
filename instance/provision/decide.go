package provision

import "fmt"

// todo is what a volume needs.
type todo string

const (
	start   todo = "start the server on complete data"
	prepare todo = "make the data, throwing away unfinished ones"
)

// decide tells what is to be done with a volume. found is the name of something in the data or binary log
// directory, empty when there is nothing.
func decide(s *State, clusterUID, instance, found string) (todo, error) {
	switch {
	case s == nil && found == "":
		return prepare, nil
	case s == nil:
		return "", &Refusal{ReasonForeignData, fmt.Sprintf(
			"the volume holds data that this operator did not put there (%s): empty it, or give the instance another volume", found)}
	case s.ClusterUID != clusterUID || s.Instance != instance:
		return "", &Refusal{ReasonForeignVolume, fmt.Sprintf(
			"the volume belongs to instance %q of the Cluster with UID %s, not to %q of %s: give the instance another volume",
			s.Instance, s.ClusterUID, instance, clusterUID)}
	case s.Stage == Complete && found != "":
		return start, nil
	case s.Stage == Complete:
		return "", &Refusal{ReasonForeignData, "the volume's data were complete and are gone: re-initialise the instance with an empty volume"}
	case s.Stage == Initialising, s.Stage == Joining:
		return prepare, nil
	}
	return "", &Refusal{ReasonUnreadableState, fmt.Sprintf("the volume is in state %q, which this version does not know", s.Stage)}
}
