package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cnmsql.co/operator/e2e/lab/dial"
)

// Container is a kind of containers on a node, found without asking the API server.
type Container struct {
	Node, Namespace, Name string
	// Pod may be empty: containers of that name in any Pod of the namespace.
	Pod string
}

// Process is one of the processes in an instance's container.
type Process string

// Processes. First is the one that the container was started with: the instance manager, the operator.
const (
	First    Process = "first"
	Watchdog Process = "watchdog"
	Server   Process = "mysqld"
)

// findTasks sets tasks to "ID PID" lines of the containers that run; $1 is the namespace, $2 the container's name, $3 the Pod or nothing.
const findTasks = `f="labels.\"io.kubernetes.pod.namespace\"==$1,labels.\"io.kubernetes.container.name\"==$2"
[ -z "$3" ] || f="$f,labels.\"io.kubernetes.pod.name\"==$3"
ids=$(ctr -n k8s.io containers ls -q "$f")
tasks=$(ctr -n k8s.io tasks ls | awk -v ids="$ids" 'BEGIN {n = split(ids, a); for (i = 1; i <= n; i++) known[a[i]] = 1} known[$1] && $3 != "STOPPED" {print $1, $2}')
`

// signalTasks sends the signal $4 to the process $5. The first process is killed or stopped from outside its PID
// namespace, where it is a process like any other.
const signalTasks = findTasks + `
[ -n "$tasks" ] || { echo "no such container runs" >&2; exit 1; }
sent=
while read -r id pid; do
  if [ "$5" = first ]; then kill "-$4" "$pid" && sent="$sent $pid"; continue; fi
  ns=$(readlink "/proc/$pid/ns/pid")
  for d in /proc/[0-9]*; do
    [ "$(readlink "$d/ns/pid")" = "$ns" ] || continue
    p=${d#/proc/} comm=$(cat "$d/comm") args=$(tr '\0' ' ' <"$d/cmdline")
    case "$5" in
    mysqld) [ "$comm" = mysqld ] || continue ;;
    watchdog) case "$args" in *" watchdog "*) ;; *) continue ;; esac ;;
    *) [ "$5" = all ] || continue ;;
    esac
    kill "-$4" "$p" && sent="$sent $p"
  done 2>/dev/null
done <<END
$tasks
END
[ -n "$sent" ] || { echo "no such process" >&2; exit 1; }
echo "process$sent"`

// Signal sends a signal to a process and tells to which. It needs nothing but the node.
func (l Lab) Signal(ctx context.Context, c Container, p Process, signal string) (string, error) {
	return l.script(ctx, c, signalTasks, signal, string(p))
}

// SignalAll sends a signal to every process of a container.
func (l Lab) SignalAll(ctx context.Context, c Container, signal string) (string, error) {
	return l.script(ctx, c, signalTasks, signal, "all")
}

// Task does one of "pause", "resume" and "kill --all --signal SIGKILL" to a container.
func (l Lab) Task(ctx context.Context, c Container, verb ...string) (string, error) {
	return l.script(ctx, c, findTasks+`[ -n "$tasks" ] || { echo "no such container runs" >&2; exit 1; }
shift 3
echo "$tasks" | while read -r id pid; do ctr -n k8s.io tasks "$@" "$id" || exit 1; echo "container with process $pid"; done`, verb...)
}

func (l Lab) script(ctx context.Context, c Container, script string, args ...string) (string, error) {
	all := append([]string{"sh", "-c", script, "sh", c.Namespace, c.Name, c.Pod}, args...)
	out, err := l.Exec(ctx, c.Node, all...)
	if err != nil {
		return "", fmt.Errorf("the container %s of %s on %s: %w", c.Name, c.Pod, c.Node, withoutScript(err, script))
	}
	return strings.Join(strings.Fields(out), " "), nil
}

// withoutScript is an error without the text of the script that it quotes.
func withoutScript(err error, script string) error {
	return errors.New(strings.ReplaceAll(err.Error(), script, "…"))
}

// Dir is the state directory of this machine's lab.
func (l Lab) Dir() string { return string(dial.Default()) }
