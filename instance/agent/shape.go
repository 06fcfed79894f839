package agent

import (
	"encoding/json"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// shape takes apart what of a report must be told at once (material) and what within a moment (content).
// What only grows with time is in neither.
func shape(r protocol.Report) (material, content []byte) {
	r.Sequence, r.ReadAt = 0, time.Time{}
	r.Role.IntentAgeMillis, r.Lease.RenewedAgoMillis = 0, 0
	r.MySQL = steady(r.MySQL)
	r.Volumes = protocol.CoarseVolumes(r.Volumes)
	r.Heartbeat = r.Heartbeat.Coarse()
	content = encode(r)
	r.Role.Doing = ""
	r.MySQL = bare(r.MySQL)
	if p := r.Provision; p != nil {
		q := *p
		q.Percent = 0
		r.Provision = &q
	}
	return encode(r), content
}

// steady is the facts without what changes while nothing happens.
func steady(m *protocol.MySQL) *protocol.MySQL {
	if m == nil || m.Replication == nil {
		return m
	}
	out, replication := *m, *m.Replication
	replication.HeartbeatAgeMillis, replication.SecondsBehind = 0, nil
	out.Replication = &replication
	return &out
}

// bare is the facts without what changes with each transaction.
func bare(m *protocol.MySQL) *protocol.MySQL {
	if m == nil {
		return nil
	}
	out := *steady(m)
	out.Executed, out.Purged = gtid.Set{}, gtid.Set{}
	out.SemiSync.Waiting = 0
	if out.Replication != nil {
		replication := *out.Replication
		replication.Received = gtid.Set{}
		out.Replication = &replication
	}
	return &out
}

// sameShape tells whether two readings differ in no more than transactions.
func sameShape(a, b *protocol.MySQL) bool {
	x, err := json.Marshal(bare(a))
	if err != nil {
		return false
	}
	y, err := json.Marshal(bare(b))
	return err == nil && string(x) == string(y)
}
