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

// Names of the other side.
const (
	scriptName      = "script"
	scriptService   = "script-rw"
	scriptLabel     = "app"
	scriptRoleLabel = "script-role"
	rolePrimary     = "primary"
	roleReplica     = "replica"
)

// Paths in its Pods.
const (
	scriptData   = "/data"
	scriptConfig = "/config"
)

// serve starts the server again and again, so that a killed one is back at once, as in ours: the kubelet
// would wait longer before each start. It is also what a server expects that is to restart after CLONE. Nobody
// is locked out: that is a part of ours, which opens a server when it knows its role.
const serve = `trap 'exit 0' TERM
while :; do mysqld --defaults-file=` + scriptConfig + `/$(hostname).cnf --offline-mode=OFF & wait $!; done`

// initialise makes the accounts, too: without a transaction, so that three servers begin alike.
const initialise = `[ -d ` + scriptData + `/mysql/mysql ] || mysqld --no-defaults --initialize-insecure --datadir=` + scriptData +
	`/mysql --secure-file-priv=NULL --innodb-redo-log-capacity=32M --init-file=` + scriptConfig + `/init.sql`

// accounts are those of the application, of replication, and of the script.
func accounts(password string) string {
	q := flavor.Quote(password)
	return strings.Join([]string{
		"CREATE DATABASE app;",
		"CREATE USER app@'%' IDENTIFIED BY " + q + ";",
		"GRANT ALL ON app.* TO app@'%';",
		"CREATE USER repl@'%' IDENTIFIED BY " + q + ";",
		"GRANT REPLICATION SLAVE ON *.* TO repl@'%';",
		"CREATE USER script@'%' IDENTIFIED BY " + q + ";",
		"GRANT ALL ON *.* TO script@'%' WITH GRANT OPTION;",
	}, "\n") + "\n"
}

// optionFile has the settings that our servers have.
func optionFile(n int, timeoutMillis int64) (string, error) {
	server, err := flavor.ForImage(framework.ServerImage)
	if err != nil {
		return "", err
	}
	return mycnf.Render(mycnf.Input{
		Server: server, InstanceName: scriptInstance(n), ServerID: uint32(n), ReportHost: host(scriptInstance(n)), Port: 3306,
		DataDir: scriptData + "/mysql", BinlogDir: scriptData + "/binlog", TmpDir: "/tmp",
		SocketPath: scriptData + "/mysql.sock", PidFile: scriptData + "/mysql.pid",
		SemiSync:   mycnf.SemiSync{Enabled: true, TimeoutMillis: timeoutMillis, WaitForReplicaCount: 1},
		Parameters: framework.SmallServer(),
	})
}

func scriptInstance(n int) string { return fmt.Sprintf("%s-%d", scriptName, n) }

// host is an instance's name in DNS.
func host(instance string) string { return instance + "." + namespace + ".svc" }

// scriptObjects are everything of the other side.
func scriptObjects(password string) ([]client.Object, error) {
	c := framework.SmallCluster(client.ObjectKey{Namespace: namespace, Name: clusterName}, instances)
	c.Default()
	files := map[string]string{"init.sql": accounts(password), "password": password}
	var pods []client.Object
	for n := 1; n <= instances; n++ {
		text, err := optionFile(n, c.Spec.MySQL.SemiSync.TimeoutMillis)
		if err != nil {
			return nil, err
		}
		name := scriptInstance(n)
		files[name+".cnf"] = text
		pods = append(pods, scriptPod(name), service(name, corev1.ClusterIPNone, map[string]string{"instance": name}))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: scriptName}, StringData: files}
	rw := service(scriptService, "", map[string]string{scriptLabel: scriptName, scriptRoleLabel: rolePrimary})
	return append([]client.Object{secret, rw}, pods...), nil
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

// scriptPod has no probe: the script alone says where the Service leads.
func scriptPod(name string) *corev1.Pod {
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: scriptData}, {Name: "config", MountPath: scriptConfig}}
	shell := func(container, command string) corev1.Container {
		return corev1.Container{
			Name: container, Image: framework.ServerImage, Command: []string{"sh", "-c", command}, VolumeMounts: mounts,
			Env: []corev1.EnvVar{{Name: "MYSQLD_PARENT_PID", Value: "1"}},
		}
	}
	spread := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{scriptLabel: scriptName}},
	}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{scriptLabel: scriptName, "instance": name}},
		Spec: corev1.PodSpec{
			Hostname: name, EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(999)), RunAsGroup: new(int64(999)), FSGroup: new(int64(999))},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{spread},
			}},
			InitContainers: []corev1.Container{shell("initialise", "mkdir -p "+scriptData+"/binlog && { "+initialise+"; }")},
			Containers:     []corev1.Container{shell("mysql", serve)},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: scriptName}}},
			},
		},
	}
}
