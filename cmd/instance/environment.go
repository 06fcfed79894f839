package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/provision"
)

// config is everything that the manager is told from outside.
type config struct {
	cluster, namespace, clusterUID string
	instance, podUID, podIP        string
	memoryLimit                    int64 // bytes, 0 without a limit
	logLevel                       api.LogLevel
	paths                          paths
}

// paths are where things are in the container.
type paths struct {
	data, binlog           string
	run, tmp               string
	serverTLS, replication string
	credentials            string
	mysqld                 string
}

func containerPaths() paths {
	return paths{
		data: "/var/lib/mysql", binlog: "/var/lib/mysql-binlog", run: "/run/cnmsql", tmp: "/tmp",
		serverTLS: "/etc/cnmsql/server-tls", replication: "/etc/cnmsql/replication-tls",
		credentials: "/etc/cnmsql/credentials", mysqld: "mysqld",
	}
}

func (p paths) socket() string { return filepath.Join(p.run, "mysql.sock") }

// layout is where things are on the volumes; a second volume holds the binary logs.
func (p paths) layout() provision.Layout {
	l := provision.Layout{
		State:  filepath.Join(p.data, "cnmsql"),
		Data:   filepath.Join(p.data, "data"),
		Binlog: filepath.Join(p.data, "binlog"),
	}
	if info, err := os.Stat(p.binlog); err == nil && info.IsDir() {
		l.Binlog = filepath.Join(p.binlog, "log")
	}
	return l
}

// secret reads one value of a mounted Secret, as it is now.
func (p paths) secret(account, key string) (string, error) {
	b, err := os.ReadFile(filepath.Join(p.credentials, account, key))
	if err != nil {
		return "", fmt.Errorf("reading the %s of %s: %w", key, account, err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

func environment(get func(string) string) (config, error) {
	c := config{
		cluster: get("CNMSQL_CLUSTER"), namespace: get("CNMSQL_NAMESPACE"), clusterUID: get("CNMSQL_CLUSTER_UID"),
		instance: get("CNMSQL_INSTANCE"), podUID: get("CNMSQL_POD_UID"), podIP: get("CNMSQL_POD_IP"),
		logLevel: api.LogLevel(get("CNMSQL_LOG_LEVEL")), paths: containerPaths(),
	}
	var missing []error
	for name, value := range map[string]string{
		"CNMSQL_CLUSTER": c.cluster, "CNMSQL_NAMESPACE": c.namespace, "CNMSQL_CLUSTER_UID": c.clusterUID,
		"CNMSQL_INSTANCE": c.instance, "CNMSQL_POD_UID": c.podUID,
	} {
		if value == "" {
			missing = append(missing, fmt.Errorf("%s is not set", name))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return config{}, err
	}
	if text := get("CNMSQL_MEMORY_LIMIT"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return config{}, fmt.Errorf("CNMSQL_MEMORY_LIMIT is %q, not a number of bytes", text)
		}
		c.memoryLimit = n
	}
	return c, nil
}
