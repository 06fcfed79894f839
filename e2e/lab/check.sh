#!/bin/bash
# check.sh [cluster|nodes|leftovers]... proves the lab by use; without an
# argument, all three in this order. Each line says PASS or FAIL.
#
#   cluster    brings a lab of three nodes up and uses what pods use
#   nodes      cuts, heals, kills and starts nodes of that lab
#   leftovers  down, then up and down with one node, then a crash: nothing stays
#
# It takes about five minutes and needs the machine's one lab for itself.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
passed=0 failed=0 tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

k() { ./lab kubectl "$@"; }
in_client() { k exec client -- "$@"; }

# ok NAME COMMAND...: one check. A failure shows the end of the command's output.
ok() {
  local name=$1 t=$EPOCHREALTIME; shift
  if "$@" >"$tmp/out" 2>&1; then
    passed=$((passed + 1)); printf 'PASS %5.1f s  %s\n' "$(bc <<<"$EPOCHREALTIME - $t")" "$name"
  else
    failed=$((failed + 1)); printf 'FAIL %5.1f s  %s\n' "$(bc <<<"$EPOCHREALTIME - $t")" "$name"
    tail -8 "$tmp/out" | sed 's/^/       /'
  fi
}

# within SECONDS COMMAND...: waits until the command succeeds.
within() {
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}

not() { ! "$@"; }
has() { local want=$1; shift; "$@" | grep -q -- "$want"; }
is() { local want=$1; shift; [ "$("$@")" = "$want" ]; }
condition() { k get "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}"; }
field() { k get "$1" -o "jsonpath=$2"; }
ready_endpoints() { k get endpointslice -l "kubernetes.io/service-name=$1" -o 'jsonpath={.items[*].endpoints[*].conditions.ready}' | tr ' ' '\n' | grep -c true; }
node_of() { field "pod/$1" '{.spec.nodeName}'; }

webhook_has_authority() { has . field mutatingwebhookconfiguration/webhook '{.webhooks[0].clientConfig.caBundle}'; }
mutated() {
  k delete configmap mutated --ignore-not-found
  k create -f - <<<'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mutated","labels":{"mutate":"yes"}},"data":{"a":"b"}}' &&
    is yes field configmap/mutated '{.data.mutated}'
}
keeps_its_data() {
  k exec db-0 -- /testapp write /data/f persisted && k delete pod db-0 --wait=true &&
    within 30 k wait --for=condition=Ready pod/db-0 --timeout=60s && has persisted k exec db-0 -- /testapp cat /data/f
}
every_pod_reaches_itself() {
  local p i
  for p in $(k get pod -l app=web -o name); do for i in 1 2 3 4; do k exec "$p" -- /testapp get http://web || return 1; done; done
}
forwarded() { # through a port of this machine
  ./lab forward 127.0.0.1:18080 "$1" >"$tmp/forward" 2>&1 & local pid=$! rc
  within 5 grep -q forwarding "$tmp/forward"; has "$2" curl -s -m 5 http://127.0.0.1:18080; rc=$?
  kill $pid; wait $pid; return $rc
}
loaded_image_runs() {
  local bin; bin=$(readlink -f "${LAB_DIR:-/var/tmp/cnmsql-lab}/bin")
  ./lab image --user 1000 --label a=b "$tmp/extra.tar" lab.local/extra:7 "/testapp serve" "/testapp=$bin/testapp" && ./lab load "$tmp/extra.tar" &&
    k run extra --image=lab.local/extra:7 --image-pull-policy=Never && k wait --for=condition=Ready pod/extra --timeout=30s
}
plain_client() { KUBECONFIG=$(./lab kubeconfig) "${LAB_DIR:-/var/tmp/cnmsql-lab}/bin/k8s" kubectl get nodes; }

cluster() {
  ok "up with three nodes" ./lab up --nodes 3
  ok "a second up is refused" has "up already" bash -c './lab up 2>&1 || true'
  ok "a client of this machine uses the kubeconfig" plain_client
  k apply -f check/app.yaml >/dev/null
  ok "Deployment with probes is ready" k rollout status deployment web --timeout=90s
  ok "StatefulSet with volumes is ready" k rollout status statefulset db --timeout=120s
  ok "volumes are bound" is 3 bash -c "./lab kubectl get pvc -o jsonpath='{.items[*].status.phase}' | tr ' ' '\n' | grep -c Bound"
  ok "client is ready" k wait --for=condition=Ready pod/client --timeout=30s
  ok "MySQL's image runs as its user" k wait --for=condition=Ready pod/mysql --timeout=90s
  ok "exec: MySQL answers" has '9\.7' k exec mysql -- mysql -uroot -S/data/s -e 'select version()'
  ok "exec: a Service by name" has hello in_client testapp get http://web.default.svc.cluster.local
  ok "exec: a headless name has three addresses" within 10 is 3 bash -c './lab kubectl exec client -- nslookup db.default.svc.cluster.local | grep -c "^Address.*10.244"'
  ok "exec: a pod's own name" has 'hello from db-1' in_client testapp get http://db-1.db:8080
  ok "exec: the apiserver through its Service" in_client testapp tls kubernetes.default:443
  ok "exec: a name outside does not exist" not in_client testapp resolve example.org
  ok "exec: standard input arrives" has hi bash -c 'echo hi | ./lab kubectl exec -i client -- cat'
  ok "logs" has serving k logs deploy/web
  ok "a pod reaches itself through its Service" every_pod_reaches_itself
  ok "forward to a Service by name" forwarded web.default:80 hello
  ok "forward to a Service's address" forwarded "$(field svc/web '{.spec.clusterIP}'):80" hello
  ok "forward to a pod by name" forwarded db-2.db.default:8080 'hello from db-2'
  ok "load an image into every node" loaded_image_runs
  ok "a volume outlives its pod" keeps_its_data
  local p; p=$(k get pod -l app=web -o 'jsonpath={.items[0].metadata.name}')
  k exec "$p" -- /testapp get http://127.0.0.1:8080/unready
  ok "a pod that is not ready leaves the endpoints" within 20 is 1 ready_endpoints web
  k exec "$p" -- /testapp get http://127.0.0.1:8080/ready
  ok "and comes back" within 20 is 2 ready_endpoints web
  k exec "$p" -- /testapp get http://127.0.0.1:8080/unlive
  ok "a container that is not live is restarted" within 20 is 1 field "pod/$p" '{.status.containerStatuses[0].restartCount}'
  ok "cert-manager issues the webhook's certificate" k wait --for=condition=Ready certificate/webhook --timeout=30s
  ok "cert-manager injects its authority" within 20 webhook_has_authority
  ok "webhook is ready" k wait --for=condition=Ready pod/webhook --timeout=60s
  ok "webhook is called through its Service" within 10 mutated
}

nodes() {
  local n ip other api=https://172.30.0.1:6443/readyz
  n=$(node_of db-1) ip=$(field pod/db-1 '{.status.podIP}') other=$(node_of db-0)
  ok "pods on different nodes reach each other" has db-1 k exec db-0 -- /testapp get "http://$ip:8080"
  ok "cut $n from its peers" ./lab cut "$n" --from peers
  ok "$other does not reach its pod" not ./lab exec "$other" curl -s -m 3 "http://$ip:8080"
  ok "$n reaches the apiserver" ./lab exec "$n" curl -sk -m 3 "$api"
  ok "heal $n" ./lab heal "$n"
  ok "$other reaches its pod" within 10 ./lab exec "$other" curl -s -m 3 -o /dev/null "http://$ip:8080"
  ok "cut $n from the apiserver" ./lab cut "$n" --from api
  ok "$n does not reach the apiserver" not ./lab exec "$n" curl -sk -m 3 "$api"
  ok "$other reaches its pod" ./lab exec "$other" curl -s -m 3 -o /dev/null "http://$ip:8080"
  ok "heal $n" ./lab heal "$n"
  ok "cut $n" ./lab cut "$n"
  ok "$n is found lost" within 60 is Unknown condition "node/$n" Ready
  ok "its pod is out of the endpoints" within 30 is 2 ready_endpoints db
  ok "its container runs on" has 'testapp.serve' ./lab exec "$n" ps -ef
  ok "its pod is marked for deletion" within 60 has T field pod/db-1 '{.metadata.deletionTimestamp}'
  ok "status says so" has 'cut off' ./lab status
  ok "heal $n" ./lab heal "$n"
  ok "$n is Ready" within 60 is True condition "node/$n" Ready
  ok "its pod is made anew and Ready" within 90 is 3 ready_endpoints db
  k exec db-1 -- /testapp write /data/g kept
  ok "kill $n" ./lab kill "$n"
  ok "a killed node cannot be killed again" has 'not running' bash -c "./lab kill $n 2>&1 || true"
  ok "$n is found lost" within 60 is Unknown condition "node/$n" Ready
  ok "start $n" ./lab start "$n"
  ok "$n is Ready" within 90 is True condition "node/$n" Ready
  ok "its pod is Ready" within 90 is 3 ready_endpoints db
  ok "its volume still has its data" within 20 has kept k exec db-1 -- /testapp cat /data/g
  ok "its loaded images are there" has lab.local/extra:7 ./lab exec "$n" ctr -n k8s.io images ls -q
}

# trace prints what a lab could leave on the machine.
trace() {
  lsns -n -o TYPE,NS -t net -t pid | sort -u | wc -l
  grep -c . /proc/self/mountinfo
  find /sys/fs/cgroup -maxdepth 2 -name 'cnmsql-lab*'
  cat /proc/sys/{vm/overcommit_memory,vm/panic_on_oom,kernel/panic,kernel/panic_on_oops}
  pgrep -a -f 'cnmsql-lab|init-root|init-node|init-forwarder' | grep -v -e check.sh -e pgrep
  ls -d "${LAB_DIR:-/var/tmp/cnmsql-lab}" 2>/dev/null
  ip -o link | wc -l
}
as_before() { diff "$tmp/before" <(trace); }
nothing_left() { within 10 as_before; }
crash() { # the end of the root is the end of all, a moment later
  kill -9 "$(cut -d' ' -f1 "${LAB_DIR:-/var/tmp/cnmsql-lab}/root.pid")" && within 10 not ./lab status 2>/dev/null
}

leftovers() {
  ./lab down >/dev/null
  trace >"$tmp/before"
  ok "up with one node" ./lab up
  ok "down" ./lab down --logs "$tmp/logs"
  ok "its logs were kept" test -s "$tmp/logs/n1/kubelet.log" -a -s "$tmp/logs/cp/kube-apiserver.log"
  ok "nothing is left" nothing_left
  ok "down again is no error" ./lab down
  ok "up without cert-manager" ./lab up --without-cert-manager
  ok "the lab crashes" crash
  ok "status says that it is not up" has 'not up' bash -c './lab status 2>&1 || true'
  ok "down after the crash" ./lab down
  ok "nothing is left" nothing_left
  ok "up" ./lab up --without-cert-manager
  crash >/dev/null
  ok "up after a crash clears and starts" ./lab up --without-cert-manager
  ok "down" ./lab down
  ok "nothing is left" nothing_left
}

if [ $# = 0 ]; then
  set -- cluster nodes leftovers
  if ./lab status >/dev/null 2>&1; then echo "check.sh: a lab is up; lab down ends it" >&2; exit 2; fi
fi
for part in "$@"; do
  case $part in
    cluster | nodes | leftovers) $part ;;
    *) echo "usage: check.sh [cluster|nodes|leftovers]..." >&2; exit 2 ;;
  esac
done
echo "$passed passed, $failed failed, $SECONDS s"
[ $failed = 0 ]
