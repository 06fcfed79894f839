package manager

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/watchdog"
)

// dog is the watchdog of this manager, nil when it is to have none.
func dog(c Config, reaper *mysqld.Reaper, log logr.Logger) (*watchdog.Guard, error) {
	if c.Watchdog == nil {
		return nil, nil //nolint:nilnil // none is asked for
	}
	return watchdog.NewGuard(watchdog.Options{Reaper: reaper, Command: c.Watchdog, Log: log})
}

// mayOpen says why the server must not be opened for writes now.
func (m *manager) mayOpen() error {
	if m.keeper.Remaining() <= 0 {
		return errors.New("the primary lease is not in force")
	}
	if m.watchdog != nil {
		return m.watchdog.Ready(m.supervisor.State().Pid)
	}
	return nil
}

// watch keeps the watchdog running, and tells it which process is the server.
func (m *manager) watch(ctx context.Context) error {
	if m.watchdog == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.watchdog.Run(ctx) })
	group.Go(func() error {
		for {
			st, changed := m.supervisor.Watch()
			if st.Pid != m.watchdog.Server() {
				m.watchdog.SetServer(st.Pid)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	})
	return group.Wait()
}

// attached are the instances of this Cluster that replicate from this server.
func (m *manager) attached(ctx context.Context) ([]string, error) {
	if !m.server.Running() {
		return nil, nil
	}
	hosts, err := m.mysql.ReplicaHosts(ctx)
	if err != nil {
		return nil, err
	}
	c := api.Cluster{}
	c.Namespace, c.Name = m.Namespace, m.Cluster
	var names []string
	for _, host := range hosts {
		name := protocol.HostInstance(host)
		if _, is := c.InstanceOrdinal(name); is && host == c.InstanceHost(name) {
			names = append(names, name)
		}
	}
	return names, nil
}
