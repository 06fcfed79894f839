package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "cnmsql.co/operator/"

// goPackage is what go list tells of a package that matters here.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// pure are the packages that hold values and functions of values. What they import of other modules they may
// import for its types; see forbiddenInPure.
var pure = []string{
	"api/v1alpha1", "instance/gtid", "instance/flavor", "instance/mycnf", "instance/protocol", "instance/role", "instance/lease",
	"controllers/topology/core", "controllers/topology/facts", "controllers/objects", "webhooks/validate", "plugin/view",
}

// forbiddenInPure are packages through which time, chance or the world outside would come in.
var forbiddenInPure = []string{
	"context", "os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "sync", "database/sql", "log", "log/slog",
	"github.com/go-logr/logr", "sigs.k8s.io/controller-runtime", "k8s.io/client-go",
}

// borders say which of our own packages a package never reaches, directly or through others.
var borders = []struct{ from, never []string }{
	{[]string{"api"}, []string{"controllers", "instance", "plugin", "webhooks", "cmd"}},
	{[]string{"instance/gtid", "instance/flavor"}, []string{"api", "controllers", "plugin", "webhooks", "cmd"}},
	{[]string{"instance"}, []string{"controllers", "plugin", "webhooks", "cmd"}},
	{[]string{"controllers"}, []string{"instance/agent", "instance/mysql", "instance/mysqld", "instance/provision", "instance/server", "instance/manager", "plugin", "cmd"}},
	{[]string{"webhooks"}, []string{"instance/agent", "instance/mysql", "instance/mysqld", "instance/provision", "instance/server", "instance/manager", "plugin", "cmd"}},
	{[]string{"plugin"}, []string{"instance/agent", "instance/mysql", "instance/mysqld", "instance/provision", "instance/server", "instance/manager", "cmd"}},
}

func TestPurePackagesImportNoClockNoChanceAndNoWorld(t *testing.T) {
	packages := list(t)
	for _, name := range pure {
		p, ok := packages[module+name]
		if !ok {
			t.Errorf("there is no package %s", name)
			continue
		}
		for _, i := range p.Imports {
			if slices.ContainsFunc(forbiddenInPure, func(f string) bool { return i == f || strings.Contains(f, ".") && within(i, f) }) {
				t.Errorf("the pure package %s imports %s", name, i)
			}
		}
	}
}

func TestGTIDKnowsOnlyTheStandardLibrary(t *testing.T) {
	for _, d := range list(t)[module+"instance/gtid"].Deps {
		if first, _, _ := strings.Cut(d, "/"); strings.Contains(first, ".") && !strings.HasPrefix(d, module) {
			t.Errorf("instance/gtid depends on %s", d)
		}
	}
}

func TestDecisionsDependOnNoClient(t *testing.T) {
	for _, d := range list(t)[module+"controllers/topology/core"].Deps {
		for _, never := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"} {
			if within(d, never) {
				t.Errorf("controllers/topology/core depends on %s", d)
			}
		}
	}
}

func TestBordersBetweenOurPackagesAreKept(t *testing.T) {
	for path, p := range list(t) {
		ours := strings.TrimPrefix(path, module)
		for _, b := range borders {
			if !slices.ContainsFunc(b.from, func(f string) bool { return within(ours, f) }) {
				continue
			}
			for _, d := range p.Deps {
				reached, is := strings.CutPrefix(d, module)
				if is && slices.ContainsFunc(b.never, func(n string) bool { return within(reached, n) }) {
					t.Errorf("%s reaches %s", ours, reached)
				}
			}
		}
	}
}

// The plugin decides by the operator's rules without being an operator.
func TestThePluginReachesThePurePartsOfTheOperatorAlone(t *testing.T) {
	reached := 0
	for path, p := range list(t) {
		if !within(strings.TrimPrefix(path, module), "plugin") {
			continue
		}
		for _, d := range p.Deps {
			if ours, is := strings.CutPrefix(d, module); is && within(ours, "controllers") {
				reached++
				if !slices.Contains(pure, ours) {
					t.Errorf("%s reaches %s", path, ours)
				}
			}
		}
	}
	if reached == 0 {
		t.Error("it reaches nothing of it: does this test still look at anything?")
	}
}

func TestNoPackageHasANameThatSaysNothing(t *testing.T) {
	for path := range list(t) {
		switch name := path[strings.LastIndex(path, "/")+1:]; name {
		case "utils", "util", "common", "helpers", "helper", "types", "base", "misc":
			t.Errorf("the package %s is named %s", path, name)
		}
	}
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// lookAtSources lets go test know that the result depends on them: it remembers what a test looked at itself,
// not what go list reads.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list is every package of the module by its path.
func list(t *testing.T) map[string]goPackage {
	t.Helper()
	lookAtSources(t)
	c := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	c.Dir = ".."
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, errs.String())
	}
	packages := map[string]goPackage{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}
