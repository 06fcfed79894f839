package manager

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/agent"
	"cnmsql.co/operator/instance/internal/apitest"
	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// small keeps a server's memory and its start small.
var small = map[string]string{
	"innodb_buffer_pool_size": "64M", "innodb_redo_log_capacity": "32M", "max_connections": "60",
	"performance_schema_max_table_instances": "400", "performance_schema_max_thread_instances": "300", "table_open_cache": "200",
}

// cluster is a Cluster of real instance managers with real servers, each on an address of its own. The test
// is the operator.
type cluster struct {
	t      *testing.T
	number int // in this process; part of the namespace's name and of the addresses
	root   string
	dir    string
	api    *apitest.Server
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey
}

// made counts the Clusters of this process.
var made atomic.Int32

func newCluster(t *testing.T, semiSync bool) *cluster {
	t.Helper()
	c := &cluster{t: t, root: mysqltest.Root(t), number: int(made.Add(1))}
	if c.number > clusters {
		t.Fatalf("there are host names for %d Clusters", clusters)
	}
	dir, err := os.MkdirTemp("", "im") // short: the path of a socket has at most 107 characters
	c.must(err)
	c.dir = dir
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	spec := api.ClusterSpec{Instances: 3, MySQL: api.MySQLConfiguration{Parameters: small}}
	if semiSync {
		enableSemiSync(&spec)
	}
	c.api = apitest.New(t, api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: c.namespace(), UID: "u"}, Spec: spec})
	c.makeAuthority()
	return c
}

func (c *cluster) namespace() string { return namespace(c.number) }

func enableSemiSync(s *api.ClusterSpec) {
	s.MinSyncReplicas = 1
	s.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) makeAuthority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "c-ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	c.must(err)
	c.ca, err = x509.ParseCertificate(der)
	c.must(err)
	c.key = key
}

// issue writes what the kubelet mounts of a certificate's Secret.
func (c *cluster) issue(dir, name string, hosts ...string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, &key.PublicKey, c.key)
	c.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	c.must(err)
	c.write(dir, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	c.write(dir, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	c.write(dir, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.ca.Raw})))
}

func (c *cluster) write(dir, name, content string) {
	c.must(os.MkdirAll(dir, 0o755))
	c.must(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

// member is one running manager.
type member struct {
	*manager
	c       *cluster
	signals chan os.Signal
	ended   chan error
}

// start runs the manager of instance n, in a new Pod on the volume it had before.
func (c *cluster) start(n int) *member {
	c.t.Helper()
	name, address := fmt.Sprintf("c-%d", n), address(c.number, n)
	dir := filepath.Join(c.dir, name)
	p := Paths{
		Data: filepath.Join(dir, "data"), Binlog: filepath.Join(dir, "none"), Run: filepath.Join(dir, "run"), Tmp: filepath.Join(dir, "tmp"),
		ServerTLS: filepath.Join(dir, "tls"), Replication: filepath.Join(dir, "replication"), Credentials: filepath.Join(dir, "credentials"),
	}
	for _, d := range []string{p.Data, p.Run, p.Tmp} {
		c.must(os.MkdirAll(d, 0o755))
	}
	c.issue(p.ServerTLS, name, name, name+"."+c.namespace()+".svc", "localhost")
	c.issue(p.Replication, api.SubjectReplication)
	for account, user := range map[string]string{
		"root": "root", "app": "app", "control": api.AccountControl, "replication": api.AccountReplication,
	} {
		c.write(filepath.Join(p.Credentials, account), "username", user)
		c.write(filepath.Join(p.Credentials, account), "password", account+"-secret")
	}
	e := Config{
		Cluster: "c", Namespace: c.namespace(), ClusterUID: "u", Instance: name, PodUID: uuid.NewString(), Paths: p, Listen: address,
		Mysqld: func(args ...string) mysqld.Command {
			return mysqltest.Command(c.root, "usr/sbin/mysqld", append(args,
				"--basedir="+filepath.Join(c.root, "usr"), "--lc-messages-dir="+filepath.Join(c.root, "usr/share/mysql"),
				"--character-sets-dir="+filepath.Join(c.root, "usr/share/mysql/charsets"), "--plugin-dir="+filepath.Join(c.root, "usr/lib/mysql/plugin"),
				"--bind-address="+address, "--user=root")...)
		},
		Watchdog: func() mysqld.Command {
			return mysqld.Command{Args: []string{"/proc/self/exe"}, Env: []string{beWatchdog + "=1"}}
		},
	}
	c.api.SetPod(metav1.ObjectMeta{Name: name, UID: types.UID(e.PodUID)})
	kube, err := agent.NewKube(c.api.Config(), e.Namespace, e.Cluster)
	c.must(err)
	m := &member{c: c, signals: make(chan os.Signal, 2), ended: make(chan error, 1)}
	guard, err := dog(e, mysqltest.Reaper(), mysqltest.Log(c.t, name))
	c.must(err)
	m.manager = assemble(e, kube, mysqltest.Reaper(), guard, mysqltest.Log(c.t, name))
	go func() { m.ended <- m.run(m.signals) }()
	c.t.Cleanup(func() {
		m.signals <- syscall.SIGTERM
		m.signals <- syscall.SIGTERM
		select {
		case <-m.ended:
		case <-time.After(60 * time.Second):
			c.t.Errorf("%s does not end", name)
		}
		m.mysql.Close()
	})
	return m
}

// stop sends a signal and waits for the end.
func (m *member) stop() time.Duration {
	m.c.t.Helper()
	started := time.Now()
	m.signals <- syscall.SIGTERM
	if err := <-m.ended; err != nil {
		m.c.t.Errorf("%s ended: %v", m.Instance, err)
	}
	m.ended <- nil // for the end of the test
	return time.Since(started)
}

// await waits until the member's report fulfils want.
func (m *member) await(what string, within time.Duration, want func(protocol.Report) bool) protocol.Report {
	m.c.t.Helper()
	deadline := time.Now().Add(within)
	for {
		r := m.reporter.Report()
		if want(r) {
			return r
		}
		select {
		case err := <-m.ended:
			m.ended <- err // for the end of the test
			m.c.t.Fatalf("%s ended before it was %s: %v", m.Instance, what, err)
		default:
		}
		if time.Now().After(deadline) {
			m.c.t.Fatalf("%s is not %s: server %+v, provision %+v, mysql %+v, role %+v", m.Instance, what, r.Server, r.Provision, r.MySQL, r.Role)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func writable(r protocol.Report) bool { return r.Role.Name == "primary" && r.MySQL.Writable() }

func following(primary string) func(protocol.Report) bool {
	return func(r protocol.Report) bool {
		if r.MySQL == nil || r.MySQL.Replication == nil {
			return false
		}
		p := r.MySQL.Replication
		return p.Connected && p.SQLRunning && protocol.HostInstance(p.SourceHost) == primary && r.MySQL.SuperReadOnly
	}
}

// waitingForAcknowledgements is writable with semi-synchronous replication.
func waitingForAcknowledgements(r protocol.Report) bool {
	return writable(r) && r.MySQL.SemiSync.SourceEnabled
}

// acknowledging is following with semi-synchronous replication.
func acknowledging(primary string) func(protocol.Report) bool {
	follows := following(primary)
	return func(r protocol.Report) bool { return follows(r) && r.MySQL.SemiSync.ReplicaEnabled }
}

func (c *cluster) transition(kind api.TransitionKind, from, to string) {
	c.api.Change(func(o *api.Cluster) {
		o.Status.PrimaryTransition = &api.PrimaryTransition{
			Attempt: uuid.NewString(), Kind: kind, From: from, To: to, Generation: o.Status.CurrentPrimaryGeneration + 1,
		}
	})
}

// bootstrap makes c-1 the first primary.
func (c *cluster) bootstrap() *member {
	c.t.Helper()
	c.api.Change(func(o *api.Cluster) { o.Status.InstanceNames = []string{"c-1"} })
	m := c.start(1)
	c.transition(api.TransitionBootstrap, "", "c-1")
	m.await("the first primary", 90*time.Second, writable)
	c.api.Change(func(o *api.Cluster) {
		o.Status.PrimaryTransition = nil
		o.Status.EstablishedAt = new(metav1.Now())
	})
	return m
}

func (m *member) probe(path string) (int, string) {
	m.c.t.Helper()
	response, err := http.Get("http://" + net.JoinHostPort(m.Listen, "8080") + path)
	m.c.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	m.c.must(err)
	return response.StatusCode, string(body)
}

func TestTheFirstInstanceServesResumesAndStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t, false)
	m := c.bootstrap()
	s := c.api.Status()
	if s.CurrentPrimary != "c-1" || s.CurrentPrimaryGeneration != 1 || s.PromotionGTIDExecuted == "" || s.CurrentPrimaryServerUUID == "" {
		t.Errorf("claimed %+v", s)
	}
	for _, path := range []string{"/livez", "/startupz", "/readyz"} {
		if code, body := m.probe(path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}

	m.supervisor.Kill()
	died := time.Now()
	m.await("down", time.Second, func(r protocol.Report) bool { return r.MySQL == nil })
	if code, body := m.probe("/readyz"); code == http.StatusOK {
		t.Errorf("ready without a server: %s", body)
	}
	m.await("writable again", 60*time.Second, writable)
	t.Logf("writable again %s after kill -9", time.Since(died).Round(time.Millisecond))

	// A deadline that passes: nobody but the watchdog acts on it. A renewal moves it again, so it is set until it has.
	first := m.supervisor.State().Pid
	m.await("killed", 10*time.Second, func(protocol.Report) bool {
		m.watchdog.Arm(1)
		return m.supervisor.State().Pid != first
	})
	m.await("writable again", 60*time.Second, writable)
	t.Logf("watchdogs started: %d, last exit: %s", m.watchdog.Starts(), m.supervisor.State().LastExit)

	// A specification that no server starts with is told, and one that mends it is tried at once.
	c.api.Change(func(o *api.Cluster) { o.Spec.MySQL.Parameters = map[string]string{"innodb_page_size": "1"} })
	m.await("outdated", 5*time.Second, func(r protocol.Report) bool { return r.Server.ConfigHash != r.Server.WantedConfigHash })
	m.supervisor.Kill()
	r := m.await("failing", 60*time.Second, func(r protocol.Report) bool { return r.Server.Restarts >= 4 && r.Server.State == protocol.ServerDown })
	if r.Server.LastError == "" {
		t.Errorf("the reason is not said: %+v", r.Server)
	}
	c.api.Change(func(o *api.Cluster) { o.Spec.MySQL.Parameters = small })
	m.await("writable again", 60*time.Second, writable)

	took := m.stop()
	if l := c.api.Lease(); l.Spec.HolderIdentity != nil {
		t.Errorf("held by %q", *l.Spec.HolderIdentity)
	}
	t.Logf("stopped in %s", took.Round(time.Millisecond))

	corrupted(c)

	// A new Pod on the same volume.
	m = c.start(1)
	m.await("writable again", 60*time.Second, writable)
}

// corrupted starts a Pod on data that the server cannot read. It says so, goes on trying, and wipes nothing.
func corrupted(c *cluster) {
	c.t.Helper()
	file := filepath.Join(c.dir, "c-1", "data", "data", "mysql.ibd")
	whole, err := os.ReadFile(file)
	c.must(err)
	c.must(os.WriteFile(file, bytes.Repeat([]byte("?"), len(whole)), 0o640))
	m := c.start(1)
	r := m.await("failing", 60*time.Second, func(r protocol.Report) bool { return r.Server.Restarts >= 2 && r.Server.LastError != "" })
	if r.Provision != nil && r.Provision.LastError != "" {
		c.t.Errorf("it was initialised anew: %+v", r.Provision)
	}
	if code, body := m.probe("/livez"); code != http.StatusOK {
		c.t.Errorf("to start the container anew does not help: %d %s", code, body)
	}
	m.stop()
	if now, err := os.ReadFile(file); err != nil || now[0] != '?' {
		c.t.Errorf("the data were touched: %v", err)
	}
	c.t.Logf("said of damaged data: %s", r.Server.LastError)
	c.must(os.WriteFile(file, whole, 0o640))
}

func TestInstancesJoinAndChangeTheRole(t *testing.T) {
	inNamespaces(t)
	t.Parallel()
	for _, semiSync := range []string{"off", "on", "switched on later"} {
		t.Run("semi-sync "+semiSync, func(t *testing.T) {
			t.Parallel()
			changeRoles(t, semiSync)
		})
	}
}

// outage is one of the API server: the primary goes on by the word of the others.
func (c *cluster) outage(primary *member) {
	c.t.Helper()
	c.api.Hang(true)
	c.api.Disconnect()
	began := time.Now()
	primary.await("vouched for", 30*time.Second, func(r protocol.Report) bool { return r.Lease.Vouched })
	for time.Since(began) < 40*time.Second {
		r := primary.reporter.Report()
		if !writable(r) || r.Lease.Fenced {
			c.t.Fatalf("%s into the outage: lease %+v, role %+v", time.Since(began), r.Lease, r.Role)
		}
		time.Sleep(50 * time.Millisecond) // it is watched all the time
	}
	if r := primary.reporter.Report(); len(r.Lease.Peers) != 2 || r.Lease.RenewedAgoMillis < 30_000 {
		c.t.Errorf("lease %+v", r.Lease)
	}
	c.api.Hang(false)
	primary.await("renewing again", 30*time.Second, func(r protocol.Report) bool { return r.Lease.Held && !r.Lease.Vouched })
}

func changeRoles(t *testing.T, semiSync string) {
	c := newCluster(t, semiSync == "on")
	one := c.bootstrap()
	c.api.Change(func(o *api.Cluster) {
		o.Status.InstanceNames = []string{"c-1", "c-2", "c-3"}
		if semiSync != "off" {
			enableSemiSync(&o.Spec) // the first server goes on as it was started
		}
	})
	writable, following := writable, following
	if semiSync != "off" {
		writable, following = waitingForAcknowledgements, acknowledging
	}
	two, three := c.start(2), c.start(3)
	for _, m := range []*member{two, three} {
		m.await("a replica", 120*time.Second, following("c-1"))
	}

	switchover := func(from, to, third *member) {
		t.Helper()
		asked := time.Now()
		c.transition(api.TransitionSwitchover, from.Instance, to.Instance)
		to.await("the primary", 30*time.Second, writable)
		t.Logf("switchover to %s: writable after %s", to.Instance, time.Since(asked).Round(time.Millisecond))
		from.await("a replica of the new primary", 30*time.Second, following(to.Instance))
		third.await("a replica of the new primary", 30*time.Second, following(to.Instance))
		t.Logf("switchover to %s: all follow after %s", to.Instance, time.Since(asked).Round(time.Millisecond))
		c.api.Change(func(o *api.Cluster) { o.Status.PrimaryTransition = nil })
	}
	switchover(one, two, three)
	switchover(two, three, one)

	// The server of the primary dies, and the operator promotes at once.
	three.supervisor.Kill()
	three.await("down", time.Second, func(r protocol.Report) bool { return r.MySQL == nil })
	died := time.Now()
	c.transition(api.TransitionFailover, "c-3", "c-1")
	one.await("the primary", 30*time.Second, writable)
	t.Logf("failover: writable after %s", time.Since(died).Round(time.Millisecond))
	for _, m := range []*member{two, three} {
		m.await("a replica of the new primary", 60*time.Second, following("c-1"))
	}
	c.api.Change(func(o *api.Cluster) { o.Status.PrimaryTransition = nil })
	if s := c.api.Status(); s.CurrentPrimaryGeneration != 4 {
		t.Errorf("generation %d", s.CurrentPrimaryGeneration)
	}
	if semiSync == "off" {
		c.outage(one)
		for _, m := range []*member{two, three} {
			m.await("in sight of the Cluster again", 30*time.Second, func(r protocol.Report) bool { return r.Role.IntentAgeMillis < 5000 })
		}
	}
	// The Pod of the primary is stopped; the operator moves the role.
	go func() {
		time.Sleep(500 * time.Millisecond)
		c.transition(api.TransitionSwitchover, "c-1", "c-2")
	}()
	took := one.stop()
	two.await("the primary", 5*time.Second, writable)
	t.Logf("a stopping primary ended after %s", took.Round(time.Millisecond))
	if !strings.HasPrefix(*c.api.Lease().Spec.HolderIdentity, "c-2/") {
		t.Errorf("held by %q", *c.api.Lease().Spec.HolderIdentity)
	}
}
