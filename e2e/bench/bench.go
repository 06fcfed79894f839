package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/operator/e2e/framework"
)

// namespace is where both sides live. It is made anew for each run of the program.
const namespace = "bench"

// readyWithin is how long a side may take until all is well again.
const readyWithin = 4 * time.Minute

// bench is one run of the program. The result goes to out, what is done meanwhile to progress.
type bench struct {
	options
	e             *framework.Environment
	archive       string
	out, progress io.Writer
	begin         time.Time
	// group is that of both sides that have one.
	group *group
}

// side is one of the systems that are compared.
type side struct {
	name string
	db   *framework.Database
	// service is the Service that leads to the primary; empty where there is none. sticky tells that a client may get stuck through it with a
	// former primary, which lets it in to read.
	service   string
	sticky    bool
	instances []string
	primary   func(ctx context.Context) (string, error)
	// settle waits until there is a primary and all others follow it.
	settle func(ctx context.Context) error
	// prepare, if set, sets the side up for a run.
	prepare func(ctx context.Context) error
	// ways are what can be done to the primary.
	ways map[string]way
	// observe tells a timeline, until ctx ends, what this side shows of itself.
	observe func(ctx context.Context, t *timeline) error
}

// run measures every way in turns of the sides.
func (b *bench) run(ctx context.Context) error {
	b.begin = time.Now()
	sides, err := b.setUp(ctx)
	if err != nil {
		return err
	}
	table, err := openTable(b.results)
	if err != nil {
		return err
	}
	err = b.takeTurns(ctx, sides, table)
	table.print(b.out)
	if err != nil || b.keep {
		return err
	}
	return b.clean(ctx)
}

func (b *bench) takeTurns(ctx context.Context, sides []*side, table *table) error {
	for _, way := range b.ways {
		slowest := map[string]result{}
		for n := range b.runs {
			for _, s := range sides {
				if s.ways[way].do == nil {
					continue
				}
				r, err := b.measure(ctx, s, way)
				if err != nil {
					return fmt.Errorf("%s, %s, run %d: %w", s.name, way, n+1, err)
				}
				if err := table.add(way, s.name, r); err != nil {
					return err
				}
				b.say("%-10s %-10s run %d: service %s, direct %s", way, s.name, n+1, serviceFigure(r), seconds(r.direct))
				if r.direct > slowest[s.name].direct {
					slowest[s.name] = r
				}
			}
		}
		for _, s := range sides {
			if r := slowest[s.name]; r.trace != nil {
				r.trace.print(b.out, fmt.Sprintf("%s, %s: writes stood still for %s through the Service, %s directly", way, s.name, serviceFigure(r), seconds(r.direct)), r.since)
			}
		}
	}
	return nil
}

func (b *bench) setUp(ctx context.Context) ([]*side, error) {
	if err := b.freshNamespace(ctx); err != nil {
		return nil, err
	}
	var sides []*side
	for _, make := range []struct {
		name string
		side func(context.Context) (*side, error)
	}{{"ours", b.ours}, {"scripted", b.scripted}, {"gr", b.groupFast}, {"gr-default", b.groupByDefault}} {
		if !slices.Contains(b.sides, make.name) {
			continue
		}
		b.say("setting up: %s", make.name)
		s, err := make.side(ctx)
		if err != nil {
			return nil, fmt.Errorf("setting up %s: %w", make.name, err)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

func (b *bench) freshNamespace(ctx context.Context) error {
	if !b.keep {
		return b.e.FreshNamespace(ctx, namespace, nil)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := b.e.Client.Create(ctx, ns); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (b *bench) clean(ctx context.Context) error { return b.e.DeleteNamespace(ctx, namespace) }

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.begin).Seconds(), fmt.Sprintf(format, args...))
}

// serviceFigure is a dash where there is no Service.
func serviceFigure(r result) string {
	if r.service == 0 {
		return "-"
	}
	return seconds(r.service)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
