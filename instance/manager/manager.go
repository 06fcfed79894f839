package manager

import (
	"context"
	"errors"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/agent"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/provision"
	"cnmsql.co/operator/instance/role"
	"cnmsql.co/operator/instance/server"
	"cnmsql.co/operator/instance/watchdog"
)

// manager is all parts of one running instance manager.
type manager struct {
	Config
	log          logr.Logger
	reaper       *mysqld.Reaper
	supervisor   *mysqld.Supervisor
	mysql        *mysql.Server
	configurer   *configurer
	data         *data
	server       *agent.Instance
	keeper       *agent.Keeper
	watcher      *agent.Watcher
	certificates *agent.Certificates
	loop         *agent.Loop
	heartbeat    *agent.Heartbeat
	reporter     *agent.Reporter
	shutdown     *agent.Shutdown
	watchdog     *watchdog.Guard // nil for none
	// volume stays locked as long as this process lives.
	volume    *provision.Volume
	abandoned context.Context //nolint:containedctx // ends provisioning
}

// Run is the instance manager, until a signal has ended it and the server is gone. The API server is reached
// by kubernetes.
func Run(c Config, kubernetes *rest.Config, signals <-chan os.Signal, log logr.Logger) error {
	kube, err := agent.NewKube(kubernetes, c.Namespace, c.Cluster)
	if err != nil {
		return err
	}
	reaper := mysqld.NewReaper(log)
	defer reaper.Close()
	guard, err := dog(c, reaper, log.WithName("watchdog"))
	if err != nil {
		return err
	}
	m := assemble(c, kube, reaper, guard, log)
	defer m.mysql.Close()
	log.Info("starting", "version", c.Version, "cluster", c.Cluster, "podUID", c.PodUID)
	return m.run(signals)
}

// assemble makes the parts and ties them together. Nothing runs yet.
func assemble(c Config, kube agent.API, reaper *mysqld.Reaper, guard *watchdog.Guard, log logr.Logger) *manager {
	m := &manager{Config: c, log: log, reaper: reaper, watchdog: guard}
	clock := agent.BootClock{}
	cluster := func() *api.Cluster { return m.watcher.Cluster() }
	m.data = &data{Config: c, cluster: cluster, secrets: newSecrets(c.Paths.Credentials)}
	m.configurer = &configurer{Config: c, reaper: reaper, cluster: cluster, log: log}
	m.mysql = mysql.Open(mysql.Options{
		Socket: c.Paths.socket(), User: api.AccountControl, KeepUsers: []string{api.AccountReplication},
		Password: func() (string, error) { return m.data.secrets.value("control", api.SecretKeyPassword) },
		MayOpen:  m.mayOpen,
		Log:      log.WithName("mysql"),
	})
	m.supervisor = mysqld.NewSupervisor(mysqld.SupervisorOptions{
		Reaper: reaper, Prepare: m.configurer.prepare, Ready: m.mysql.WaitReady, Log: log.WithName("mysqld"),
	})
	wake := func() {
		m.reporter.Wake()
		m.loop.Wake()
	}
	m.server = agent.NewInstance(m.supervisor, wake)
	namespaced := api.Cluster{}
	namespaced.Namespace, namespaced.Name = c.Namespace, c.Cluster
	m.certificates = agent.NewCertificates(c.Paths.ServerTLS, m.reloadTLS, log.WithName("certificates"))
	peers := agent.NewPeers(m.certificates, func(instance string) string {
		return net.JoinHostPort(namespaced.InstanceHost(instance), strconv.Itoa(api.PortControl))
	})
	var deadMansSwitch agent.Switch
	if guard != nil {
		deadMansSwitch = guard
	}
	m.keeper = agent.NewKeeper(agent.KeeperOptions{
		API: kube, Clock: clock, Instance: c.Instance, Holder: api.LeaseHolder(c.Instance, c.PodUID),
		Fencer: agent.ServerFencer{Instance: m.server, Server: m.mysql}, Voters: peers,
		View:     func() lease.View { return agent.ViewOf(cluster(), c.Instance) },
		Attached: m.attached, Switch: deadMansSwitch, Changed: wake, Log: log.WithName("lease"),
	})
	m.watcher = agent.NewWatcher(kube, clock, m.keeper, func() {
		wake()
		m.configurer.retryOn(m.server)
	}, log.WithName("watcher"))
	stopping := &agent.Stopping{}
	m.reporter = agent.NewReporter(agent.ReporterOptions{
		Instance: c.Instance, PodUID: c.PodUID, ClusterUID: c.ClusterUID, Boot: uuid.NewString(), Version: c.Version,
		Server: m.server, Reader: m.mysql, Watcher: m.watcher, Keeper: m.keeper, Clock: clock,
		ConfigHashes: m.configurer.hashes, Volumes: c.Paths.volumes, Heartbeat: func() *protocol.Heartbeat { return m.heartbeat.State() },
		Reasserts: func() int64 { return m.loop.Reasserts() }, Changed: func() { m.loop.Wake() }, Log: log.WithName("reporter"),
	})
	m.heartbeat = agent.NewHeartbeat(agent.HeartbeatOptions{
		Server: m.mysql, Cluster: cluster, Report: m.reporter.Report, Clock: clock, Log: log.WithName("heartbeat"),
	})
	m.loop = agent.NewLoop(agent.LoopOptions{
		Name: c.Instance, Instance: m.server, Server: m.mysql, Watcher: m.watcher, Keeper: m.keeper, Peers: peers,
		API: kube, Clock: clock, Stopping: stopping, Source: m.data.source, Publish: m.publish, NoRoom: m.reporter.NoRoom, Log: log.WithName("role"),
	})
	abandoned, abandon := context.WithCancel(context.Background())
	m.abandoned = abandoned
	m.shutdown = agent.NewShutdown(agent.ShutdownOptions{
		Name: c.Instance, Stopping: stopping, Instance: m.server, Reader: m.mysql, Keeper: m.keeper, Watcher: m.watcher,
		Ordered: func(ctx context.Context) (bool, error) { return kube.PodStopping(ctx, c.Instance, c.PodUID) },
		NoRoom:  m.reporter.NoRoom, Grace: c.Grace, Peers: peers, Wake: wake, Abandon: abandon, Disconnect: m.disconnect, Log: log.WithName("shutdown"),
	})
	return m
}

// publish takes a decision of the role loop with the facts it was made from.
func (m *manager) publish(facts *protocol.MySQL, readAt time.Duration, d role.Decision) {
	m.reporter.Publish(facts, readAt, d)
	m.heartbeat.Wake()
}

// disconnect ends everybody's connections to a server that is about to be stopped, our own for good.
func (m *manager) disconnect() {
	defer m.mysql.Close()
	if m.supervisor.State().Server != protocol.ServerRunning {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := m.mysql.PrepareStop(ctx); err != nil {
		m.log.Info("the stop may take longer: not all connections could be ended", "reason", err.Error())
	}
}

// reloadTLS tells a running server of new certificate files; one that starts reads them by itself.
func (m *manager) reloadTLS(ctx context.Context) error {
	if !m.server.Running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return m.mysql.ReloadTLS(ctx)
}

// run starts the probes and the control API first, so that whoever looks sees what is being done.
func (m *manager) run(signals <-chan os.Signal) error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.probes().Run(ctx) })
	group.Go(func() error { return m.metrics().Run(ctx) })
	group.Go(func() error {
		if err := m.certificates.Await(ctx); err != nil {
			return nil //nolint:nilerr // it waits until the manager ends
		}
		return m.control(ctx).Run(ctx)
	})
	for _, part := range []func(context.Context) error{
		m.watch, m.keeper.Run, m.watcher.Run, m.reporter.Run, m.loop.Run, m.heartbeat.Run, m.certificates.Run,
	} {
		group.Go(func() error { return part(ctx) })
	}
	provisioned := make(chan struct{})
	group.Go(func() error {
		defer close(provisioned)
		m.provision(ctx)
		return nil
	})
	group.Go(func() error {
		err := m.shutdown.Run(ctx, signals)
		if ctx.Err() == nil {
			<-provisioned
			end()
		}
		return err
	})
	err := group.Wait()
	if m.volume != nil && m.server.Gone() {
		m.volume.Release()
	}
	if err != nil {
		return err
	}
	m.log.Info("ended")
	return nil
}

// provision makes the data and starts the server. What cannot be mended by trying again is reported until
// the Pod ends.
func (m *manager) provision(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.abandoned, cancel)()
	volume, err := provision.Ensure(ctx, provision.Plan{
		ClusterUID: m.ClusterUID, Instance: m.Instance, Layout: m.Paths.layout(),
		Fenced: m.configurer.fenced, Origin: m.data.origin, Accounts: m.data.accounts, Database: m.data.database, Donor: m.data.donor,
		Command: m.configurer.prepare, Reaper: m.reaper, Supervisor: m.supervisor, Server: m.mysql,
		Limit: m.data.maxStart, Progress: m.server.Progress, Log: m.log.WithName("provision"),
	})
	if err == nil {
		m.volume = volume
		m.server.Provisioned()
		return
	}
	if ctx.Err() != nil {
		return
	}
	step := "refused"
	if refusal := (*provision.Refusal)(nil); errors.As(err, &refusal) {
		step = refusal.Reason
	}
	m.log.Error(err, "provisioning has ended", "reason", step)
	m.server.Progress(&protocol.Provision{Step: step, Attempts: 1, LastError: err.Error()})
}

func (m *manager) probes() *server.Listener {
	p := &server.Probes{
		Present: m.reporter,
		Fenced: func() time.Duration {
			return m.keeper.State().FencedFor
		},
		Primary: func() string {
			if c := m.watcher.Cluster(); c != nil {
				return c.Status.CurrentPrimary
			}
			return ""
		},
		MaxLag: func() time.Duration {
			if c := m.watcher.Cluster(); c != nil {
				return c.MaxReadyLag()
			}
			return 0
		},
	}
	return m.listener(api.PortProbes, p.Handler())
}

func (m *manager) metrics() *server.Listener {
	return m.listener(api.PortMetrics, server.Metrics(m.reporter))
}

func (m *manager) control(ctx context.Context) *server.Listener {
	c := &server.Control{
		Cluster: m.Cluster, Reporter: m.reporter, Settings: m.loop, Voter: m.keeper, Refused: agent.ErrRefused, Done: ctx.Done(),
	}
	l := m.listener(api.PortControl, c.Handler())
	l.TLS = m.certificates.ServerTLS()
	return l
}

func (m *manager) listener(port int, h http.Handler) *server.Listener {
	return &server.Listener{
		Address: net.JoinHostPort(m.Listen, strconv.Itoa(port)), Handler: h,
		Errors: errorLog(m.log.WithName("http")),
	}
}

// errorLog is for what the HTTP servers say of single connections: scanners and clients that go away are no
// event of the instance.
func errorLog(log logr.Logger) *stdlog.Logger {
	return slog.NewLogLogger(logr.ToSlogHandler(log.V(1)), slog.LevelInfo)
}
