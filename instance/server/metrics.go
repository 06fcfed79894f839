package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// Metrics serves /metrics: the manager's own process and what it reports.
func Metrics(present Present) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		instance{present},
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	return mux
}

var (
	up         = description("up", "1 when the server answers.")
	writable   = description("writable", "1 when clients may write.")
	roleInfo   = description("role", "1 for the role that this instance has.", "role")
	generation = description("generation", "The generation of the primary role that this instance acts in.")
	leaseHeld  = description("lease_held", "1 when this instance holds the primary lease and renews it in time.")
	selfFenced = description("self_fenced", "1 when the manager made the server read-only because it could not renew the lease.")
	fenced     = description("fenced", "1 while the server is kept stopped because a person fenced the instance.")
	restarts   = description("server_restarts_total", "Unintended ends of the server since the manager started.")
	ioRunning  = description("replica_io_running", "1 when the receiver runs. Absent without replication.")
	sqlRunning = description("replica_sql_running", "1 when the applier runs. Absent without replication.")
	unapplied  = description("replica_unapplied_transactions", "Transactions received and not applied. Absent without replication.")
	lag        = ofCluster("replication_lag_seconds", "How far this replica is behind the primary, by the heartbeat. Absent on the primary, and while it is not known.")
	stampWait  = description("heartbeat_waiting_seconds", "How long the primary's stamp that is being written has waited, as every other commit does then. Absent on replicas.")
	stampFails = description("heartbeat_failing", "1 when the primary could not write its last stamp. Absent on replicas.")
	available  = description("volume_available_bytes", "What the server may still use of the volume that holds its data, or its binary logs.", "volume")
	size       = description("volume_size_bytes", "The size of that volume.", "volume")
	configOld  = description("config_outdated", "1 when the server runs with another configuration than the present one.")
)

var reasserts = ofCluster("primary_reasserts_total", "How often a running primary was opened again that somebody else had made read-only, since the manager started.")

// ofCluster is a metric that is named as the operator's are: it is about the Cluster's replication, whichever instance tells.
func ofCluster(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("cnmsql_"+name, help, nil, nil)
}

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cnmsql_instance_"+name, help, labels, nil)
}

// instance turns the present report into metrics when they are asked for.
type instance struct{ present Present }

// Describe implements prometheus.Collector.
func (instance) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{up, writable, roleInfo, generation, leaseHeld, selfFenced, fenced, restarts, ioRunning, sqlRunning, unapplied, lag, stampWait, stampFails, available, size, configOld, reasserts} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c instance) Collect(ch chan<- prometheus.Metric) {
	r := c.present.Report()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(up, number(r.MySQL != nil))
	gauge(writable, number(r.MySQL.Writable()))
	for _, name := range []string{role.Primary, role.Replica, role.None} {
		gauge(roleInfo, number(r.Role.Name == name), name)
	}
	gauge(generation, float64(r.Role.Generation))
	gauge(leaseHeld, number(r.Lease.Held))
	gauge(selfFenced, number(r.Lease.Fenced))
	gauge(fenced, number(r.Server.State == protocol.ServerFenced))
	for _, v := range r.Volumes {
		gauge(available, float64(v.AvailableBytes), v.Name)
		gauge(size, float64(v.SizeBytes), v.Name)
	}
	gauge(configOld, number(outdated(r.Server)))
	ch <- prometheus.MustNewConstMetric(reasserts, prometheus.CounterValue, float64(r.Role.Reasserts))
	ch <- prometheus.MustNewConstMetric(restarts, prometheus.CounterValue, float64(r.Server.Restarts))
	if r.MySQL != nil && r.MySQL.Replication != nil {
		gauge(ioRunning, number(r.MySQL.Replication.IORunning))
		gauge(sqlRunning, number(r.MySQL.Replication.SQLRunning))
		gauge(unapplied, float64(r.MySQL.Unapplied().Count()))
	}
	if behind, known := r.Lag(); known {
		gauge(lag, behind.Seconds())
	}
	if r.Heartbeat != nil && r.Role.Name == role.Primary {
		gauge(stampWait, float64(r.Heartbeat.WaitingMillis)/1000)
		gauge(stampFails, number(r.Heartbeat.StampError != ""))
	}
}

func outdated(s protocol.Server) bool {
	return s.ConfigHash != "" && s.WantedConfigHash != "" && s.ConfigHash != s.WantedConfigHash
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
