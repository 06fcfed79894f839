package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// settle is how long the application goes on writing after a disruption, so that a second gap would show.
const settle = 2 * time.Second

type demo struct {
	say            *say
	root           string
	image, archive string
	nodes          int
	lab            framework.Lab
	cluster        client.ObjectKey

	env    *framework.Environment
	db     *framework.Database
	writer *framework.Writer
	gaps   []gap
}

// gap is how long writes stood still for a reason.
type gap struct {
	what string
	long time.Duration
}

func (d *demo) run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{d.install, d.create, d.firstData, d.disrupt, d.settleAccounts, d.showStatus} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.goOn()
	return nil
}

func (d *demo) install(ctx context.Context) error {
	err := d.say.step("lab: a Kubernetes cluster on this machine (built first if it is not yet, which takes long)", func() error {
		started, err := d.lab.Up(ctx, d.nodes, &details{say: d.say})
		if err == nil && !started {
			d.say.detail("it is up already")
		}
		return err
	})
	if err != nil {
		return err
	}
	if d.env, err = framework.Open(ctx, d.lab, filepath.Join(d.root, "bin")); err != nil {
		return err
	}
	return d.say.step("operator: kubectl apply -k config/default (image "+d.image+")", func() error {
		return d.env.Install(ctx, d.archive)
	})
}

func (d *demo) create(ctx context.Context) error {
	sample := filepath.Join(d.root, "config/samples/mysql_v1alpha1_cluster.yaml")
	return d.say.step("cluster: kubectl apply -f config/samples/mysql_v1alpha1_cluster.yaml", func() error {
		if _, err := d.env.Kubectl(ctx, "-n", d.cluster.Namespace, "apply", "-f", sample); err != nil {
			return err
		}
		return d.env.AwaitReady(ctx, d.cluster, 10*time.Minute, d.say.detail)
	})
}

// firstData starts the application, and reads what it wrote through the Service for reading.
func (d *demo) firstData(ctx context.Context) error {
	var err error
	if d.db, err = d.env.Database(ctx, d.cluster); err != nil {
		return err
	}
	return d.say.step("application: writes through demo-rw, reads back through demo-ro", func() error {
		if d.writer, err = d.db.StartWriter(ctx, "ledger"); err != nil {
			return err
		}
		db, err := d.db.Service("ro")
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return framework.Await(ctx, "the first rows on a replica", 30*time.Second, func(ctx context.Context) (bool, string, error) {
			keys, err := d.writer.Keys(ctx, db)
			if err == nil && len(keys) > 0 {
				d.say.detail(fmt.Sprintf("%d acknowledged so far, %d of them read from a replica", d.writer.Ledger.Count(), len(keys)))
			}
			return len(keys) > 0, "no row", err
		})
	})
}

// disrupt takes the primary away in three ways. The application never stops.
func (d *demo) disrupt(ctx context.Context) error {
	for _, way := range []func(ctx context.Context, primary, other string) (what string, do func() error){
		d.switchOver, d.killServer, d.deletePod,
	} {
		c, err := d.env.Cluster(ctx, d.cluster)
		if err != nil {
			return err
		}
		primary := c.Status.CurrentPrimary
		others := slices.DeleteFunc(slices.Clone(c.Status.InstanceNames), func(name string) bool { return name == primary })
		if len(others) == 0 {
			return errors.New("there is no other instance than the primary")
		}
		what, do := way(ctx, primary, others[0])
		err = d.say.step(what, func() error {
			begin := time.Now()
			if err := do(); err != nil {
				return err
			}
			return d.after(ctx, what, primary, begin)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) switchOver(ctx context.Context, _, other string) (what string, do func() error) {
	return "switchover: kubectl cnmsql promote demo " + other, func() error {
		out, err := d.env.Plugin(ctx, d.cluster.Namespace, "promote", d.cluster.Name, other, "--wait", "--timeout", "60s")
		for line := range strings.Lines(out) {
			d.say.detail(strings.TrimSpace(line))
		}
		return err
	}
}

func (d *demo) killServer(ctx context.Context, primary, _ string) (what string, do func() error) {
	return "failover: kill -9 of mysqld in " + primary + ", the primary", func() error {
		return d.env.KillServer(ctx, client.ObjectKey{Namespace: d.cluster.Namespace, Name: primary})
	}
}

func (d *demo) deletePod(ctx context.Context, primary, _ string) (what string, do func() error) {
	return "deletion: kubectl delete pod " + primary + ", the primary", func() error {
		_, err := d.env.Kubectl(ctx, "-n", d.cluster.Namespace, "delete", "pod", primary, "--wait=false")
		return err
	}
}

// after waits until there is another primary and all is well again, and records how long writes stood still.
func (d *demo) after(ctx context.Context, what, old string, begin time.Time) error {
	primary, err := d.env.AwaitPrimary(ctx, d.cluster, old, 2*time.Minute)
	if err != nil {
		return err
	}
	if err := d.writer.AwaitAcknowledged(ctx, time.Now(), time.Minute); err != nil {
		return err
	}
	if err := d.env.AwaitHealed(ctx, d.cluster, 5*time.Minute, d.say.detail); err != nil {
		return err
	}
	if err := d.writer.AwaitAcknowledged(ctx, time.Now().Add(settle), time.Minute); err != nil {
		return err
	}
	long := d.writer.Ledger.Gap(begin, time.Now())
	d.gaps = append(d.gaps, gap{what, long})
	d.say.detail(fmt.Sprintf("%s is the primary; writes stood still for %.2f s", primary, long.Seconds()))
	return nil
}

// settleAccounts compares the application's ledger with what every server has.
func (d *demo) settleAccounts(ctx context.Context) error {
	d.writer.Stop()
	c, err := d.env.Cluster(ctx, d.cluster)
	if err != nil {
		return err
	}
	return d.say.step("ledger: every acknowledged write must be on every instance", func() error {
		lost := 0
		for _, host := range append([]string{c.ServiceName("rw")}, c.Status.InstanceNames...) {
			missing, invented, err := d.writer.Verdict(ctx, d.db, host, time.Minute)
			if err != nil {
				return err
			}
			lost += len(missing) + len(invented)
			d.say.detail(fmt.Sprintf("%-8s %d acknowledged, %d missing, %d that nobody wrote", host, d.writer.Ledger.Count(), len(missing), len(invented)))
		}
		if lost > 0 {
			return errors.New("writes are missing or wrong")
		}
		return nil
	})
}

func (d *demo) showStatus(ctx context.Context) error {
	out, err := d.env.Plugin(ctx, d.cluster.Namespace, "status", d.cluster.Name)
	if err != nil {
		return err
	}
	d.say.line("kubectl cnmsql status demo")
	d.say.text(out)
	return nil
}

func (d *demo) goOn() {
	errs, _ := d.writer.Ledger.Errors()
	var text strings.Builder
	text.WriteString("Writes stood still:\n")
	for _, g := range d.gaps {
		fmt.Fprintf(&text, "  %6.2f s  %s\n", g.long.Seconds(), g.what)
	}
	fmt.Fprintf(&text, "Acknowledged writes: %d. Missing: 0. Writes that ended with an error and were not counted: %d.\n", d.writer.Ledger.Count(), errs)
	fmt.Fprintf(&text, `
Go on with it:
  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get mysql,pods,services
  kubectl cnmsql status demo
  kubectl exec -it demo-1 -c mysql -- mysql --socket /run/cnmsql/mysql.sock -u root -p   # password: Secret %s
  %s forward 127.0.0.1:3306 demo-rw.default:3306      # then any MySQL client; account: Secret demo-app
End it:
  make demo-down
`, d.env.Kubeconfig, filepath.Join(d.root, "bin"), "demo-root", d.lab.Script)
	d.say.text(text.String())
}
