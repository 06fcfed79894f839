package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runtimePackages are the Debian packages whose programs a running lab calls.
var runtimePackages = []string{"iproute2", "nftables", "util-linux"}

// mysqlPackages are needed to make the MySQL root filesystem.
var mysqlPackages = []string{"mmdebstrap", "debian-archive-keyring"}

// install installs those of the Debian packages that are missing, and says which.
func install(ctx context.Context, say func(string, ...any), names ...string) error {
	lack, err := missing(ctx, names)
	if err != nil || len(lack) == 0 {
		return err
	}
	say("installing Debian packages: %s", strings.Join(lack, " "))
	if lists, _ := filepath.Glob("/var/lib/apt/lists/*_Packages*"); len(lists) == 0 {
		if err := apt(ctx, "update"); err != nil {
			return err
		}
	}
	return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, lack...)...)
}

// missing are the packages that are not installed.
func missing(ctx context.Context, names []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, names...)...).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // it exits 1 when it does not know one of them
		return nil, fmt.Errorf("ask for Debian packages: %w; the lab is made for Debian", err)
	}
	return notInstalled(names, string(out)), nil
}

// notInstalled are the names without a line "NAME installed".
func notInstalled(names []string, list string) []string {
	have := map[string]bool{}
	for line := range strings.Lines(list) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " installed"); ok {
			have[name] = true
		}
	}
	var out []string
	for _, n := range names {
		if !have[n] {
			out = append(out, n)
		}
	}
	return out
}

func apt(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
	}
	return nil
}
