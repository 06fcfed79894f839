package build

import (
	"fmt"
	"strings"
)

// part is a Go module under components/ and the programs made from it.
type part struct {
	name     string
	packages []string // of Debian, needed to build it
	cgo      bool
	programs []program
}

// program is one go build.
type program struct {
	out, pkg string
	tags     string
	ldflags  string
}

// Versions stamped into the programs. They follow the requirements in the
// modules' go.mod, which a test compares.
const (
	kubernetesVersion  = "1.36.3"
	containerdVersion  = "2.3.7"
	runcVersion        = "1.4.4"
	certManagerVersion = "1.21.2"
)

const (
	stripped   = "-s -w"
	k8sVersion = "k8s.io/component-base/version"
	containerd = "github.com/containerd/containerd/v2"
	plugins    = "github.com/containernetworking/plugins/plugins"
)

// parts are in the order in which a build from nothing is soonest useful.
var parts = []part{
	{name: "apps", programs: []program{
		{out: "pause", pkg: "./pause", ldflags: stripped},
		{out: "testapp", pkg: "./testapp", ldflags: stripped},
	}},
	{name: "runtime", programs: []program{
		{out: "containerd", pkg: containerd + "/cmd/containerd", ldflags: stripped + " -X " + containerd + "/version.Version=" + containerdVersion},
		{out: "containerd-shim-runc-v2", pkg: containerd + "/cmd/containerd-shim-runc-v2", ldflags: stripped + " -X " + containerd + "/version.Version=" + containerdVersion},
		{out: "ctr", pkg: containerd + "/cmd/ctr", ldflags: stripped + " -X " + containerd + "/version.Version=" + containerdVersion},
		{out: "cni/bridge", pkg: plugins + "/main/bridge", ldflags: stripped},
		{out: "cni/loopback", pkg: plugins + "/main/loopback", ldflags: stripped},
		{out: "cni/host-local", pkg: plugins + "/ipam/host-local", ldflags: stripped},
		{out: "cni/portmap", pkg: plugins + "/meta/portmap", ldflags: stripped},
		{out: "coredns", pkg: "./cmd/coredns", ldflags: stripped},
		{out: "local-path-provisioner", pkg: "github.com/rancher/local-path-provisioner", ldflags: stripped},
	}},
	{name: "runc", cgo: true, packages: []string{"gcc", "libc6-dev", "libseccomp-dev"}, programs: []program{
		{out: "runc", pkg: "github.com/opencontainers/runc", tags: "seccomp netgo osusergo", ldflags: stripped + ` -extldflags "-static" -X main.version=` + runcVersion},
	}},
	{name: "kubernetes", programs: []program{
		{out: "k8s", pkg: ".", ldflags: fmt.Sprintf("%[1]s -X %[2]s.gitVersion=v%[3]s -X %[2]s.gitMajor=1 -X %[2]s.gitMinor=36 -X %[2]s.gitTreeState=clean -X %[2]s.buildDate=1970-01-01T00:00:00Z", stripped, k8sVersion, kubernetesVersion)},
	}},
	{name: "certmanager", programs: []program{
		{out: "cert-manager", pkg: ".", ldflags: stripped + " -X github.com/cert-manager/cert-manager/pkg/util.AppVersion=v" + certManagerVersion},
	}},
}

// args are the arguments of go for one program.
func (p program) args(dir string) []string {
	a := []string{"build", "-o", dir + "/" + p.out, "-ldflags", p.ldflags}
	if p.tags != "" {
		a = append(a, "-tags", p.tags)
	}
	return append(a, p.pkg)
}

// env are the variables that decide what go makes. Two compilers at once are
// what a small machine bears.
func (p part) env() []string {
	cgo := "0"
	if p.cgo {
		cgo = "1"
	}
	return []string{"CGO_ENABLED=" + cgo, "GOFLAGS=-trimpath -p=2 -buildvcs=false", "GOWORK=off"}
}

// text is the recipe as a key sees it.
func (p part) text() string {
	lines := append([]string{p.name}, p.env()...)
	for _, g := range p.programs {
		lines = append(lines, strings.Join(g.args(""), " "))
	}
	return strings.Join(lines, "\n")
}
