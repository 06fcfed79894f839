package config

import (
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"strings"
	"time"
)

//go:embed files
var templates embed.FS

// Places are the directories that configuration files speak of. All are
// absolute.
type Places struct {
	// State is the lab's state directory.
	State string
	// Bin holds the programs.
	Bin string
	// RestartDelay is the longest that a kubelet waits before it starts a container that keeps ending. Zero
	// is Kubernetes' own 5 minutes.
	RestartDelay time.Duration
	// ProxySync is the least time between two changes that a kube-proxy makes to its node. Zero is Kubernetes' own
	// second.
	ProxySync time.Duration
}

// What Kubernetes does by itself.
const (
	kubernetesRestartDelay = 5 * time.Minute
	kubernetesProxySync    = time.Second
)

// Files are the configuration files of a node by the name that they have in
// the node's directory.
func Files(p Places, n Node) (map[string][]byte, error) {
	values := map[string]string{
		"BIN":        p.Bin,
		"STATE":      p.State,
		"NODEDIR":    p.State + "/" + n.Name(),
		"NODE":       n.Name(),
		"CGROUP":     n.Cgroup(),
		"PODCIDR":    n.PodCIDR(),
		"ALLPODS":    PodCIDR,
		"DNSIP":      DNSIP,
		"DNSDOMAIN":  ClusterDomain,
		"PAUSEIMAGE": "lab.local/pause:1",

		"RESTARTDELAY": cmp.Or(p.RestartDelay, kubernetesRestartDelay).String(),
		"PROXYSYNC":    cmp.Or(p.ProxySync, kubernetesProxySync).String(),
	}
	out := map[string][]byte{}
	for _, name := range []string{"containerd.toml", "10-lab.conflist", "kubelet.yaml", "proxy.yaml", "resolv.conf"} {
		b, err := templates.ReadFile("files/" + name)
		if err != nil {
			return nil, fmt.Errorf("read the template of %s: %w", name, err)
		}
		text, err := expand(string(b), values)
		if err != nil {
			return nil, fmt.Errorf("expand %s: %w", name, err)
		}
		out[name] = []byte(text)
	}
	return out, nil
}

var placeholder = regexp.MustCompile(`@[A-Z]+@`)

// expand replaces each @NAME@ by its value. A name without a value is an error:
// a program would take it for a path.
func expand(text string, values map[string]string) (string, error) {
	var unknown []string
	text = placeholder.ReplaceAllStringFunc(text, func(s string) string {
		v, ok := values[strings.Trim(s, "@")]
		if !ok {
			unknown = append(unknown, s)
		}
		return v
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("no value for %s", strings.Join(unknown, ", "))
	}
	return text, nil
}
