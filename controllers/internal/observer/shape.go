package observer

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// shape is the hash of what of a report is worth a reconcile when it changes.
type shape [sha256.Size]byte

// shapeOf leaves out what changes with time or with each transaction.
func shapeOf(r *protocol.Report) shape {
	s := *r
	s.Sequence, s.ReadAt = 0, time.Time{}
	s.Role.Doing, s.Role.IntentAgeMillis = "", 0
	s.Lease.RenewedAgoMillis = 0
	if s.Provision != nil {
		p := *s.Provision
		p.Percent = p.Percent / 10 * 10
		s.Provision = &p
	}
	s.MySQL = bare(s.MySQL)
	s.Volumes = protocol.CoarseVolumes(s.Volumes)
	s.Heartbeat = s.Heartbeat.Coarse()
	raw, err := json.Marshal(s)
	if err != nil {
		// The type holds nothing that has no JSON; a zero shape would wake once.
		return shape{}
	}
	return sha256.Sum256(raw)
}

func bare(m *protocol.MySQL) *protocol.MySQL {
	if m == nil {
		return nil
	}
	out := *m
	out.Executed, out.Purged = gtid.Set{}, gtid.Set{}
	out.SemiSync.Waiting = 0
	if m.Replication != nil {
		r := *m.Replication
		r.Received, r.HeartbeatAgeMillis, r.SecondsBehind = gtid.Set{}, 0, nil
		// The text of a connection error counts the attempts.
		r.IOError = ""
		out.Replication = &r
	}
	return &out
}
