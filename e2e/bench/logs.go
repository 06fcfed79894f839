package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// logs follows the logs of Pods, each once in its life.
type logs struct {
	t    *timeline
	kube kubernetes.Interface
	mu   sync.Mutex
	open map[types.UID]bool
}

// followLogs tells of what the instance managers, also of Pods yet to come, and the operator say.
func (b *bench) followLogs(ctx context.Context, key client.ObjectKey, t *timeline) error {
	kube, err := kubernetes.NewForConfig(b.e.Config)
	if err != nil {
		return fmt.Errorf("connecting for logs: %w", err)
	}
	l := &logs{t: t, kube: kube, open: map[types.UID]bool{}}
	operators := &corev1.PodList{}
	if err := b.e.Client.List(ctx, operators, client.InNamespace(framework.OperatorNamespace)); err != nil {
		return fmt.Errorf("listing the operator's Pods: %w", err)
	}
	for i := range operators.Items {
		l.follow(ctx, &operators.Items[i], "operator", func(line map[string]any) bool { return line["msg"] == "decided" })
	}
	return b.follow(ctx, &corev1.PodList{}, func(e watch.Event) {
		if p, ok := e.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
			l.follow(ctx, p, "log "+p.Name, func(line map[string]any) bool { return line["logger"] != "mysqld" })
		}
	}, client.MatchingLabels{api.LabelCluster: key.Name})
}

func (l *logs) follow(ctx context.Context, p *corev1.Pod, who string, wanted func(map[string]any) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[p.UID] {
		return
	}
	l.open[p.UID] = true
	since := metav1.NewTime(l.t.begin)
	stream, err := l.kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
		Container: p.Spec.Containers[0].Name, Follow: true, SinceTime: &since,
	}).Stream(ctx)
	if err != nil {
		l.t.add(who, "its log cannot be read: %v", err)
		return
	}
	go l.read(stream, who, wanted)
}

func (l *logs) read(stream io.ReadCloser, who string, wanted func(map[string]any) bool) {
	defer func() { _ = stream.Close() }()
	scanner := bufio.NewScanner(stream)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := map[string]any{}
		if json.Unmarshal(scanner.Bytes(), &line) != nil || !wanted(line) {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["ts"])); err == nil {
			l.t.addAt(at, who, "%s", sentence(line))
		}
	}
}

// sentence is a log line's message with its fields, less those that say where it comes from.
func sentence(line map[string]any) string {
	var b strings.Builder
	if logger, ok := line["logger"]; ok && logger != "role" {
		fmt.Fprintf(&b, "[%v] ", logger)
	}
	fmt.Fprint(&b, line["msg"])
	for _, field := range slices.Sorted(maps.Keys(line)) {
		switch field {
		case "msg", "ts", "level", "logger", "caller", "controller", "controllerGroup", "controllerKind", "Cluster", "namespace", "name", "reconcileID":
		default:
			fmt.Fprintf(&b, "; %s %v", field, line[field])
		}
	}
	return b.String()
}
