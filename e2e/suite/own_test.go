package suite

import "testing"

// Tests that make a Cluster of their own do not disturb one another, and most of what they do is wait: they wait
// together.
func TestOnClustersOfTheirOwn(t *testing.T) {
	environment(t)
	aside := func(name string, test func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
	// The longest first.
	aside("scaling up, down and up again", scalingUpDownAndUpAgain)
	aside("what is wrong inside an instance is named and corrected", correctedStepByStep("inside", wrongInsideTheInstance()))
	aside("what is wrong around an instance is named and corrected", correctedStepByStep("around", wrongAroundTheInstance()))
	aside("a storage class that nobody serves is named", storageClassThatNobodyServesIsNamed)
	aside("commits that wait keep no replica from being made", waitingCommitsHoldNothingUp)
	aside("a deleted Cluster leaves nothing", deletedClusterLeavesNothing)
}
