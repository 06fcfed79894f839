package inside

import (
	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// etcd is the address of etcd inside the root's namespace.
const etcd = "127.0.0.1:2379"

func etcdFlags(d state.Dir) []string {
	const client, peer = "http://" + etcd, "http://127.0.0.1:2380"
	return []string{
		"--data-dir=" + d.Path("etcd"), "--log-level=warn",
		"--unsafe-no-fsync", // a lab's data dies with it
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer, "--auto-compaction-retention=1h",
	}
}

func apiserverFlags(d state.Dir) []string {
	return []string{
		"--advertise-address=" + config.ControlPlaneIP, "--secure-port=6443", "--etcd-servers=http://" + etcd,
		"--service-cluster-ip-range=" + config.ServiceCIDR, "--authorization-mode=Node,RBAC",
		"--client-ca-file=" + d.PKI("ca.crt"), "--tls-cert-file=" + d.PKI("apiserver.crt"), "--tls-private-key-file=" + d.PKI("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc." + config.ClusterDomain,
		"--service-account-key-file=" + d.PKI("sa.pub"), "--service-account-signing-key-file=" + d.PKI("sa.key"),
		"--kubelet-client-certificate=" + d.PKI("kubelet-client.crt"), "--kubelet-client-key=" + d.PKI("kubelet-client.key"),
		"--kubelet-certificate-authority=" + d.PKI("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + d.PKI("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + d.PKI("front-proxy-client.crt"), "--proxy-client-key-file=" + d.PKI("front-proxy-client.key"),
		"--enable-aggregator-routing=true", // webhooks are called at the pods' addresses
		"--allow-privileged=true", "--profiling=false",
		// A pod on a lost node is evicted 10 s after the node is found lost.
		"--default-not-ready-toleration-seconds=10", "--default-unreachable-toleration-seconds=10",
	}
}

func controllerFlags(d state.Dir) []string {
	kc := d.Path("kcm.kubeconfig")
	return []string{
		"--kubeconfig=" + kc, "--authentication-kubeconfig=" + kc, "--authorization-kubeconfig=" + kc,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false", "--allocate-node-cidrs=false",
		"--use-service-account-credentials=false", // with true the first service account comes 5 s later
		"--service-account-private-key-file=" + d.PKI("sa.key"), "--root-ca-file=" + d.PKI("ca.crt"),
		"--cluster-signing-cert-file=" + d.PKI("ca.crt"), "--cluster-signing-key-file=" + d.PKI("ca.key"),
		// Kubelets renew their leases every 2 s, so a node is found lost after 16 s of silence.
		"--node-monitor-period=2s", "--node-monitor-grace-period=16s",
	}
}

func schedulerFlags(d state.Dir) []string {
	kc := d.Path("scheduler.kubeconfig")
	return []string{
		"--kubeconfig=" + kc, "--authentication-kubeconfig=" + kc, "--authorization-kubeconfig=" + kc,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false",
	}
}
