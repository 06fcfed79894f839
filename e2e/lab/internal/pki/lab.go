package pki

import (
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
)

// Files are all keys, certificates and kubeconfigs of a lab with the given
// number of nodes, by their name in the state directory. Those under outside,
// an address of this machine, are for users outside the lab's network.
func Files(now time.Time, nodes int, outside string) (map[string][]byte, error) {
	a, err := NewAuthority(now)
	if err != nil {
		return nil, err
	}
	w := &writer{a: a, files: map[string][]byte{"pki/ca.crt": a.Cert, "pki/ca.key": a.Key}}
	w.pair("apiserver", Request{CommonName: "kube-apiserver", SANs: []string{
		config.ControlPlaneIP, config.APIServiceIP, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc." + config.ClusterDomain,
	}})
	w.pair("kubelet-client", Request{CommonName: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}})
	w.pair("front-proxy-client", Request{CommonName: "front-proxy-client"})
	admin := w.kubeconfig("admin", Request{CommonName: "lab-admin", Groups: []string{"system:masters"}})
	w.files["kubeconfig"] = a.Kubeconfig(outside, admin)
	w.kubeconfig("kcm", Request{CommonName: "system:kube-controller-manager", Groups: []string{"system:masters"}})
	w.kubeconfig("scheduler", Request{CommonName: "system:kube-scheduler"})
	w.kubeconfig("proxy", Request{CommonName: "system:kube-proxy"})
	for n := config.Node(1); int(n) <= nodes; n++ {
		who := Request{CommonName: "system:node:" + n.Name(), Groups: []string{"system:nodes"}}
		w.kubeconfig(n.Name()+"/kubelet", who)
		who.SANs = []string{n.Name(), n.IP()}
		w.pair("serving-"+n.Name(), who)
	}
	if sa, err := SigningKey(); err != nil {
		w.fail(err)
	} else {
		w.files["pki/sa.key"], w.files["pki/sa.pub"] = sa.Key, sa.Cert
	}
	return w.files, w.err
}

// writer collects files until the first error.
type writer struct {
	a     *Authority
	files map[string][]byte
	err   error
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) pair(name string, r Request) Pair {
	p, err := w.a.Issue(r)
	if err != nil {
		w.fail(err)
	}
	w.files["pki/"+name+".crt"], w.files["pki/"+name+".key"] = p.Cert, p.Key
	return p
}

// kubeconfig makes NAME.kubeconfig for use inside the lab.
func (w *writer) kubeconfig(name string, r Request) Pair {
	p, err := w.a.Issue(r)
	if err != nil {
		w.fail(err)
	}
	w.files[name+".kubeconfig"] = w.a.Kubeconfig(config.APIServer, p)
	if name == "admin" {
		w.files["pki/admin.crt"], w.files["pki/admin.key"] = p.Cert, p.Key
	}
	return p
}
