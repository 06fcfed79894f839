package mysql

import (
	"context"
	"fmt"

	"cnmsql.co/operator/instance/flavor"
)

// ReplicaHosts are the host names by which the servers that read this one's binary log have introduced
// themselves; a server that names none is left out.
func (s *Server) ReplicaHosts(ctx context.Context) ([]string, error) {
	rows, err := s.reader.QueryContext(ctx, flavor.ShowReplicas)
	if err != nil {
		return nil, fmt.Errorf("reading who replicates from here: %w", err)
	}
	defer rows.Close()
	var hosts []string
	for rows.Next() {
		r, err := row(rows)
		if err != nil {
			return nil, fmt.Errorf("reading who replicates from here: %w", err)
		}
		if r["Host"] != "" {
			hosts = append(hosts, r["Host"])
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading who replicates from here: %w", err)
	}
	return hosts, nil
}
