package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/chaos/judge"
	"cnmsql.co/operator/e2e/framework"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
)

// storedWithin is how long a replica may take until it has everything.
const storedWithin = 2 * time.Minute

// heldWithin is how long the primary may take until it has committed what a replica has acknowledged.
const heldWithin = 15 * time.Second

// findings are the figures of a check.
type findings struct {
	missing, invented int
	overlap           time.Duration
	stale             time.Duration
	generation        int64
}

// check compares what clients were told and what was recorded with what every server holds. Its error names every
// promise that was broken.
func (r *runner) check(ctx context.Context) (findings, error) {
	c, err := r.e.Cluster(ctx, r.key)
	if err != nil {
		return findings{}, err
	}
	f, err := r.judgeRecords()
	r.history.say(time.Now(), "check", fmt.Sprintf("the records are judged, generation %d", f.generation))
	for _, instance := range c.Status.InstanceNames {
		missing, invented, storedErr := r.stored(ctx, instance)
		f.missing, f.invented = max(f.missing, missing), max(f.invented, invented)
		err = errors.Join(err, storedErr)
	}
	return f, errors.Join(err, r.attached(ctx, c), r.labelled(ctx))
}

// judgeRecords asks package judge.
func (r *runner) judgeRecords() (f findings, err error) {
	changes, readings, hole := r.history.recorded()
	if hole != nil {
		return f, hole
	}
	terms := judge.Terms(changes)
	if len(terms) > 0 {
		f.generation = terms[len(terms)-1].Generation
	}
	clashes := judge.Writers(terms, readings, r.clients.written())
	f.overlap = judge.Overlap(clashes)
	if n := len(clashes); n > 0 {
		err = fmt.Errorf("two writers (%d writes, overlap of at least %s), the first at %s: %s", n, f.overlap, clashes[0].Write.Sent.UTC().Format("15:04:05.000"), clashes[0].Why)
	}
	broken := judge.Generations(changes)
	labels, stale := judge.Labels(changes)
	f.stale = stale
	for _, b := range append(broken, labels...) {
		err = errors.Join(err, errors.New(b))
	}
	return f, err
}

// stored looks for every acknowledged write on an instance, and for rows that nobody wrote.
func (r *runner) stored(ctx context.Context, instance string) (missing, invented int, err error) {
	db, err := r.db.Open(instance)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	for table, ledger := range map[string]*framework.Ledger{serviceTable: r.clients.service, directTable: r.clients.direct} {
		var lost, strange []int64
		read := false
		began := time.Now()
		waited := framework.Await(ctx, "all acknowledged writes on "+instance, storedWithin, func(ctx context.Context) (bool, string, error) {
			found, err := framework.Keys(ctx, db, table)
			if err != nil {
				return false, "", err
			}
			read, lost, strange = true, ledger.MissingBefore(found, began), ledger.Invented(found)
			return len(lost) == 0, fmt.Sprintf("%d of %d are missing", len(lost), ledger.Count()), nil
		})
		r.history.say(time.Now(), "check of "+instance, fmt.Sprintf("%s: %d missing, after %s", table, len(lost), seconds(time.Since(began))))
		switch {
		case !read:
			err = errors.Join(err, waited)
		case len(lost) > 0:
			err = errors.Join(err, fmt.Errorf("%d acknowledged writes to %s are missing on %s, the first of them key %d, acknowledged at %s",
				len(lost), table, instance, lost[0], ledger.When(lost[0]).UTC().Format("15:04:05.000")))
		}
		if len(strange) > 0 {
			err = errors.Join(err, fmt.Errorf("%d rows in %s on %s were written by nobody, the first of them key %d", len(strange), table, instance, strange[0]))
		}
		missing, invented = missing+len(lost), invented+len(strange)
	}
	return missing, invented, err
}

// attached asks the servers themselves: one takes writes, all others acknowledge its commits, and none holds a
// transaction that it does not come to hold. A replica may have one a moment earlier: the primary commits when it is told so.
func (r *runner) attached(ctx context.Context, c *api.Cluster) error {
	primary := c.Status.CurrentPrimary
	replicas := map[string]gtid.Set{}
	for _, instance := range without(c.Status.InstanceNames, primary) {
		set, err := r.ask(ctx, instance, false)
		if err != nil {
			return fmt.Errorf("%s: %w", instance, err)
		}
		replicas[instance] = set
	}
	return framework.Await(ctx, "servers that hold the same", heldWithin, func(ctx context.Context) (bool, string, error) {
		held, err := r.ask(ctx, primary, true)
		if err != nil {
			return false, "", fmt.Errorf("%s: %w", primary, err)
		}
		for instance, set := range replicas {
			if errant := set.Minus(held); !errant.IsEmpty() {
				return false, fmt.Sprintf("%s holds what the primary does not: %s", instance, errant), nil
			}
		}
		return true, "", nil
	})
}

// ask reads what a server has executed, and whether its role shows.
func (r *runner) ask(ctx context.Context, instance string, primary bool) (gtid.Set, error) {
	db, err := r.db.Open(instance)
	if err != nil {
		return gtid.Set{}, err
	}
	defer db.Close()
	var executed, ignored string
	var readOnly bool
	if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.super_read_only").Scan(&executed, &readOnly); err != nil {
		return gtid.Set{}, fmt.Errorf("asking for its transactions: %w", err)
	}
	if readOnly == primary {
		return gtid.Set{}, fmt.Errorf("super_read_only is %v", readOnly)
	}
	if primary {
		ackers := 0
		if err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'").Scan(&ignored, &ackers); err != nil {
			return gtid.Set{}, fmt.Errorf("asking who acknowledges: %w", err)
		}
		if ackers != instances-1 {
			return gtid.Set{}, fmt.Errorf("%d replicas are attached", ackers)
		}
	}
	all, err := gtid.Parse(executed)
	return all.WithoutSource(flavor.HeartbeatSource), err
}

// labelled looks at the Pods: the primary alone has the label.
func (r *runner) labelled(ctx context.Context) error {
	c, err := r.e.Cluster(ctx, r.key)
	if err != nil {
		return err
	}
	pods, err := r.e.Pods(ctx, r.key)
	if err != nil {
		return err
	}
	var with []string
	for _, p := range pods {
		if p.Labels[api.LabelRole] == api.RolePrimary {
			with = append(with, p.Name)
		}
	}
	if len(with) != 1 || with[0] != c.Status.CurrentPrimary {
		return fmt.Errorf("%s is the primary, and the label is on %q", c.Status.CurrentPrimary, strings.Join(with, ", "))
	}
	return nil
}

func without(list []string, name string) []string {
	var out []string
	for _, l := range list {
		if l != name {
			out = append(out, l)
		}
	}
	return out
}
