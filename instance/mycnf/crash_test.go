package mycnf_test

import "testing"

// A crash ends a server.
type crash string

const (
	serverKilled    crash = "mysqld killed"
	containerKilled crash = "container killed"
	powerLost       crash = "power lost"
)

// trial is a combination of settings. Those that are given win over the option file.
type trial struct {
	crash   crash
	options []string
	// applies tells that the replica applies while it receives. Otherwise all is in its relay log alone.
	applies bool
}

// outcome is what became of a server that crashed.
type outcome struct {
	// acked transactions were acknowledged by the replica. Lost ones are neither executed nor received any more on the
	// server that crashed.
	acked, lost uint64
	// rows were acknowledged to clients. Missing ones are not there after all that was received was applied.
	rows, missing int
	// trouble is what the applier complained of, if it did.
	trouble string
}

// TestWhatAReplicaAcknowledgedSurvivesACrashAsItIsConfiguredAndOtherwiseDoesNot crashes a replica that holds acknowledged
// transactions in its relay log alone, and takes the source away for good. The two combinations that differ from what is
// rendered show that a loss would be seen.
func TestWhatAReplicaAcknowledgedSurvivesACrashAsItIsConfiguredAndOtherwiseDoesNot(t *testing.T) {
	p := newPair(t, func(p *pair) *realServer { return p.replica })
	p.source.start(t)
	for _, c := range []struct {
		trial
		loses bool
	}{
		{trial{crash: serverKilled}, false},
		{trial{crash: powerLost}, false},
		{trial{crash: serverKilled, options: []string{"relay_log_recovery=ON"}}, true},
		{trial{crash: powerLost, options: []string{"sync_relay_log=10000"}}, true},
	} {
		got := p.crashReplica(t, c.trial)
		t.Logf("%s, %v: %+v", c.crash, c.options, got)
		switch {
		case got.acked == 0 || got.rows == 0:
			t.Errorf("%s, %v: nothing was acknowledged, so this shows nothing", c.crash, c.options)
		case c.loses && (got.lost == 0 || got.missing == 0):
			t.Errorf("%s, %v: nothing is lost: %+v", c.crash, c.options, got)
		case !c.loses && (got.lost > 0 || got.missing > 0 || got.trouble != ""):
			t.Errorf("%s, %v: %+v", c.crash, c.options, got)
		}
	}
}
