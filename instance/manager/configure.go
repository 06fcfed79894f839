package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/agent"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mycnf"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// clusterWait is for how long, in the life of this process, the Cluster is waited for before the server starts with the
// my.cnf that the container before left behind: a replica comes back during an outage of the API server.
const clusterWait = 10 * time.Second

// configurer writes my.cnf from the present Cluster before each start of the server.
type configurer struct {
	Config
	reaper  *mysqld.Reaper
	cluster func() *api.Cluster
	log     logr.Logger

	mu      sync.Mutex
	waitEnd time.Time // of the one wait for the Cluster
	server  *flavor.Server
	running string // hash of the file that the last server was started with
	wanted  string // hash of what the Cluster of version renders to
	refused string // why it renders to nothing
	version string
}

func (c *configurer) file() string { return filepath.Join(c.Paths.Run, "my.cnf") }

// prepare implements mysqld.SupervisorOptions.Prepare.
func (c *configurer) prepare(ctx context.Context) (mysqld.Command, error) {
	command := c.Mysqld("--defaults-file=" + c.file())
	if err := forgetSocket(c.Paths.socket()); err != nil {
		return command, err
	}
	cluster, err := c.known(ctx)
	if err != nil {
		old, readErr := os.ReadFile(c.file())
		if readErr != nil || ctx.Err() != nil {
			return command, fmt.Errorf("configuring the server: the Cluster is not known yet: %w", err)
		}
		c.log.Info("the Cluster is not known yet: starting with the configuration of before")
		c.started(hash(string(old)))
		return command, nil
	}
	text, err := c.render(ctx, cluster)
	if err != nil {
		return command, err
	}
	if err := replaceFile(c.file(), []byte(text)); err != nil {
		return command, fmt.Errorf("configuring the server: %w", err)
	}
	c.started(hash(text))
	return command, nil
}

// known is the Cluster as soon as it was seen, or an error when that takes too long.
func (c *configurer) known(ctx context.Context) (*api.Cluster, error) {
	c.mu.Lock()
	if c.waitEnd.IsZero() {
		c.waitEnd = time.Now().Add(clusterWait)
	}
	ctx, cancel := context.WithDeadline(ctx, c.waitEnd)
	c.mu.Unlock()
	defer cancel()
	return await(ctx, c.cluster, func(c *api.Cluster) bool { return c != nil })
}

// fenced tells that the Cluster, as far as it is known, keeps this instance's server stopped.
func (c *configurer) fenced(ctx context.Context) bool {
	cluster, err := c.known(ctx)
	return err == nil && slices.Contains(api.JoinFencing(cluster.Status.FencedInstances, api.ParseFencing(cluster.Annotations[api.AnnotationFencing])), c.Instance)
}

// forgetSocket removes the lock on the socket that a killed container leaves on the volume. It names the server of that time
// by a number, which in this container may be any process: beside that one, a server would refuse to start. None runs now.
func forgetSocket(path string) error {
	if err := os.Remove(path + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what a killed server left: %w", err)
	}
	return nil
}

func (c *configurer) started(hash string) {
	c.mu.Lock()
	c.running = hash
	c.mu.Unlock()
}

// hashes are of the my.cnf in use and of the one that the present Cluster wants; empty when not known. A Cluster that
// no my.cnf can be made from wants protocol.ConfigInvalid, and refused says why.
func (c *configurer) hashes() (running, wanted, refused string) {
	cluster := c.cluster()
	c.mu.Lock()
	defer c.mu.Unlock()
	if cluster != nil && c.server != nil && c.version != cluster.ResourceVersion {
		c.version, c.refused = cluster.ResourceVersion, ""
		if text, err := mycnf.Render(c.input(*c.server, cluster)); err == nil {
			c.wanted = hash(text)
		} else {
			c.wanted, c.refused = protocol.ConfigInvalid, err.Error()
		}
	}
	return c.running, c.wanted, c.refused
}

func (c *configurer) render(ctx context.Context, cluster *api.Cluster) (string, error) {
	c.mu.Lock()
	server := c.server
	c.mu.Unlock()
	if server == nil {
		found, err := c.detect(ctx)
		if err != nil {
			return "", err
		}
		server = &found
		c.mu.Lock()
		c.server = server
		c.mu.Unlock()
	}
	return mycnf.Render(c.input(*server, cluster))
}

// detect asks the program in the image what it is.
func (c *configurer) detect(ctx context.Context) (flavor.Server, error) {
	var lines []string
	var mu sync.Mutex
	command := c.Mysqld("--no-defaults", "--version")
	command.Output = func(line string) {
		mu.Lock()
		lines = append(lines, line)
		mu.Unlock()
	}
	p, err := c.reaper.Start(command)
	if err != nil {
		return flavor.Server{}, fmt.Errorf("spec.imageName: asking the server for its version: %w", err)
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return flavor.Server{}, fmt.Errorf("spec.imageName: asking the server for its version: %w", errors.Join(err, p.Kill()))
	}
	mu.Lock()
	text := strings.Join(lines, " ")
	mu.Unlock()
	if exit.Code != 0 {
		return flavor.Server{}, fmt.Errorf("spec.imageName: asking the server for its version: %s: %s", exit, text)
	}
	server, err := flavor.Detect(text)
	if err != nil {
		return flavor.Server{}, fmt.Errorf("spec.imageName: the image's server: %w", err)
	}
	return server, nil
}

func (c *configurer) input(server flavor.Server, cluster *api.Cluster) mycnf.Input {
	layout, s := c.Paths.layout(), &cluster.Spec
	ordinal, _ := cluster.InstanceOrdinal(c.Instance)
	return mycnf.Input{
		Server: server, InstanceName: c.Instance, ServerID: api.ServerID(ordinal),
		ReportHost: cluster.InstanceHost(c.Instance), Port: api.PortMySQL,
		DataDir: layout.Data, BinlogDir: layout.Binlog, SocketPath: c.Paths.socket(),
		PidFile: filepath.Join(c.Paths.Run, "mysqld.pid"), TmpDir: c.Paths.Tmp,
		TLS: mycnf.TLS{
			CA:   filepath.Join(c.Paths.ServerTLS, "ca.crt"),
			Cert: filepath.Join(c.Paths.ServerTLS, "tls.crt"),
			Key:  filepath.Join(c.Paths.ServerTLS, "tls.key"),
		},
		// The number of acknowledgements is set at run time, with the role: changing it needs no restart.
		SemiSync:     mycnf.SemiSync{Enabled: cluster.SemiSyncEnabled(), TimeoutMillis: s.MySQL.SemiSync.TimeoutMillis, WaitForReplicaCount: 1},
		BinlogFormat: s.MySQL.BinlogFormat, MemoryLimitBytes: c.MemoryLimit,
		Parameters: s.MySQL.Parameters, AdditionalFiles: s.MySQL.AdditionalConfigFiles,
	}
}

// retryOn tells the instance to start a server that does not come up again at once when the Cluster gives it
// another configuration.
func (c *configurer) retryOn(instance *agent.Instance) {
	if running, wanted, refused := c.hashes(); wanted != "" && refused == "" && running != wanted {
		instance.Retry()
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// replaceFile writes a file that is there as a whole or as it was before.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o640), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
