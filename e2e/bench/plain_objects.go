package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mycnf"
)

// kind is what makes one set of plain servers different from another.
type kind struct {
	// name is that of all its objects, with numbers behind it for the instances.
	name string
	// options are the server's further ones, on its command line.
	options func(n int) []string
	// privileges are further ones of the account for replication.
	privileges string
	// grace is how long a server that is asked to stop may take, in seconds; 0 kills it.
	grace int64
}

func (k kind) instance(n int) string { return fmt.Sprintf("%s-%d", k.name, n) }

// Names of plain objects.
const (
	plainLabel  = "app"
	roleLabel   = "script-role"
	rolePrimary = "primary"
	roleReplica = "replica"
	adminUser   = "script"
)

// Paths in the Pods.
const (
	plainData   = "/data"
	plainConfig = "/config"
)

// serve starts the server again and again, so that a killed one is back at once, as in ours: the kubelet
// would wait longer before each start. It is also what a server expects that is to restart after CLONE. Nobody
// is locked out: that is a part of ours, which opens a server when it knows its role.
const serve = `trap 'kill -TERM $p; wait $p; exit 0' TERM
while :; do mysqld --defaults-file=` + plainConfig + `/$(hostname).cnf --offline-mode=OFF %s & p=$!; wait $p; done`

// initialise makes the accounts, too: without a transaction, so that three servers begin alike.
const initialise = `[ -d ` + plainData + `/mysql/mysql ] || mysqld --no-defaults --initialize-insecure --datadir=` + plainData +
	`/mysql --secure-file-priv=NULL --innodb-redo-log-capacity=32M --init-file=` + plainConfig + `/init.sql`

// accounts are those of the application, of replication, and of this program.
func accounts(k kind, password string) string {
	q := flavor.Quote(password)
	return strings.Join([]string{
		"CREATE DATABASE app;",
		"CREATE USER app@'%' IDENTIFIED BY " + q + ";",
		"GRANT ALL ON app.* TO app@'%';",
		"CREATE USER repl@'%' IDENTIFIED BY " + q + ";",
		"GRANT REPLICATION SLAVE" + k.privileges + " ON *.* TO repl@'%';",
		"CREATE USER " + adminUser + "@'%' IDENTIFIED BY " + q + ";",
		"GRANT ALL ON *.* TO " + adminUser + "@'%' WITH GRANT OPTION;",
	}, "\n") + "\n"
}

// optionFile has the settings that our servers have.
func optionFile(k kind, n int, timeoutMillis int64) (string, error) {
	server, err := flavor.ForImage(framework.ServerImage)
	if err != nil {
		return "", err
	}
	return mycnf.Render(mycnf.Input{
		Server: server, InstanceName: k.instance(n), ServerID: uint32(n), ReportHost: host(k.instance(n)), Port: 3306,
		DataDir: plainData + "/mysql", BinlogDir: plainData + "/binlog", TmpDir: "/tmp",
		SocketPath: plainData + "/mysql.sock", PidFile: plainData + "/mysql.pid",
		SemiSync:   mycnf.SemiSync{Enabled: true, TimeoutMillis: timeoutMillis, WaitForReplicaCount: 1},
		Parameters: framework.SmallServer(),
	})
}

// host is an instance's name in DNS.
func host(instance string) string { return instance + "." + namespace + ".svc" }

// plainObjects are everything that servers of a kind need.
func plainObjects(k kind, password string) ([]client.Object, error) {
	c := framework.SmallCluster(client.ObjectKey{Namespace: namespace, Name: clusterName}, instances)
	c.Default()
	files := map[string]string{"init.sql": accounts(k, password), "password": password}
	var pods []client.Object
	for n := 1; n <= instances; n++ {
		text, err := optionFile(k, n, c.Spec.MySQL.SemiSync.TimeoutMillis)
		if err != nil {
			return nil, err
		}
		name := k.instance(n)
		files[name+".cnf"] = text
		pods = append(pods, plainPod(k, n), service(name, corev1.ClusterIPNone, map[string]string{"instance": name}))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: k.name}, StringData: files}
	return append([]client.Object{secret}, pods...), nil
}

func service(name, address string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: address, Selector: selector, PublishNotReadyAddresses: address != "",
			Ports: []corev1.ServicePort{{Name: "mysql", Port: 3306, TargetPort: intstr.FromInt32(3306)}},
		},
	}
}

// plainPod has no probe: a script, or the servers themselves, say who is primary. It stays on a node that is lost.
func plainPod(k kind, n int) *corev1.Pod {
	name := k.instance(n)
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: plainData}, {Name: "config", MountPath: plainConfig}}
	shell := func(container, command string) corev1.Container {
		return corev1.Container{
			Name: container, Image: framework.ServerImage, Command: []string{"sh", "-c", command}, VolumeMounts: mounts,
			Env: []corev1.EnvVar{{Name: "MYSQLD_PARENT_PID", Value: "1"}},
		}
	}
	spread := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{plainLabel: k.name}},
	}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{plainLabel: k.name, "instance": name}},
		Spec: corev1.PodSpec{
			Hostname: name, EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(k.grace),
			Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(999)), RunAsGroup: new(int64(999)), FSGroup: new(int64(999))},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{spread},
			}},
			InitContainers: []corev1.Container{shell("initialise", "mkdir -p "+plainData+"/binlog && { "+initialise+"; }")},
			Containers:     []corev1.Container{shell("mysql", fmt.Sprintf(serve, strings.Join(k.options(n), " ")))},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: k.name}}},
			},
		},
	}
}
