package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/manager"
	"cnmsql.co/operator/instance/mysqld"
)

// containerPaths are where the Pod mounts things.
func containerPaths() manager.Paths {
	return manager.Paths{
		Data: "/var/lib/mysql", Binlog: "/var/lib/mysql-binlog", Run: "/run/cnmsql", Tmp: "/tmp",
		ServerTLS: "/etc/cnmsql/server-tls", Replication: "/etc/cnmsql/replication-tls", Credentials: "/etc/cnmsql/credentials",
	}
}

// environment is the configuration that the Pod gives.
func environment(get func(string) string) (manager.Config, api.LogLevel, error) {
	c := manager.Config{
		Cluster: get("CNMSQL_CLUSTER"), Namespace: get("CNMSQL_NAMESPACE"), ClusterUID: get("CNMSQL_CLUSTER_UID"),
		Instance: get("CNMSQL_INSTANCE"), PodUID: get("CNMSQL_POD_UID"), Version: managerVersion(), Paths: containerPaths(),
		Mysqld: func(args ...string) mysqld.Command { return mysqld.Command{Args: append([]string{"mysqld"}, args...)} },
		// This very program, whatever has been installed in its place meanwhile.
		Watchdog: func() mysqld.Command {
			return mysqld.Command{Args: []string{"/proc/self/exe", "watchdog"}, Env: []string{"GOMAXPROCS=1", "GOGC=20"}}
		},
	}
	var missing []error
	for _, v := range []struct{ name, value string }{
		{"CNMSQL_CLUSTER", c.Cluster}, {"CNMSQL_NAMESPACE", c.Namespace}, {"CNMSQL_CLUSTER_UID", c.ClusterUID},
		{"CNMSQL_INSTANCE", c.Instance}, {"CNMSQL_POD_UID", c.PodUID},
	} {
		if v.value == "" {
			missing = append(missing, fmt.Errorf("%s is not set", v.name))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return manager.Config{}, "", err
	}
	if text := get("CNMSQL_MEMORY_LIMIT"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return manager.Config{}, "", fmt.Errorf("CNMSQL_MEMORY_LIMIT is %q, not a number of bytes", text)
		}
		c.MemoryLimit = n
	}
	if text := get("CNMSQL_GRACE_SECONDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return manager.Config{}, "", fmt.Errorf("CNMSQL_GRACE_SECONDS is %q, not a number of seconds", text)
		}
		c.Grace = time.Duration(n) * time.Second
	}
	return c, api.LogLevel(get("CNMSQL_LOG_LEVEL")), nil
}
