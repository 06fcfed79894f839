package observer

import (
	"testing"

	"cnmsql.co/operator/instance/protocol"
)

func TestWhatOnlyGrowsWithTimeWakesNobody(t *testing.T) {
	report := func(lag, waiting int64, failed string) *protocol.Report {
		return &protocol.Report{
			MySQL:     &protocol.MySQL{SemiSync: protocol.SemiSync{Waiting: int(waiting)}},
			Heartbeat: &protocol.Heartbeat{LagMillis: &lag, WaitingMillis: waiting, StampError: failed},
		}
	}
	before := shapeOf(report(10, 0, ""))
	if shapeOf(report(2000, 1, "")) != before {
		t.Error("a replica that is a little further behind, or a stamp under way, wakes the operator")
	}
	if shapeOf(report(10, 0, "no space left")) == before {
		t.Error("a stamp that fails wakes nobody")
	}
}
