package build

import (
	"fmt"
	"path/filepath"
	"strings"

	"cnmsql.co/operator/e2e/lab/internal/image"
)

// sources are the directories that images are made from.
type sources struct {
	bin          string
	mysqlRoot    string
	mysqlVersion string
}

// tools are the commands of the busybox image.
var tools = []string{
	"sh", "cat", "chmod", "date", "echo", "env", "false", "id", "ip", "ls", "mkdir", "nc", "nslookup", "ping", "ps", "rm",
	"sleep", "test", "touch", "true", "wget",
}

// images are the archives that every node imports, by file name. The nodes
// import them in the order of the names; those that the lab needs to become
// ready come first.
func images(s sources) map[string]image.Spec {
	program := func(tag, name string) image.Spec {
		return image.Spec{
			Tags: []string{"lab.local/" + tag}, Entrypoint: []string{"/" + name},
			Files: []image.File{{Dest: "/" + name, Source: filepath.Join(s.bin, name)}},
		}
	}
	busybox := image.Spec{
		Tags: []string{"lab.local/busybox:1"}, Entrypoint: []string{"/bin/sh"},
		Files: []image.File{
			{Dest: "/bin/busybox", Source: filepath.Join(s.mysqlRoot, "usr/bin/busybox")},
			{Dest: "/bin/testapp", Source: filepath.Join(s.bin, "testapp")},
		},
	}
	certManager := program("cert-manager:1", "cert-manager")
	certManager.User = "1000:1000" // its pods must not run as root
	for _, t := range tools {
		busybox.Files = append(busybox.Files, image.File{Dest: "/bin/" + t, Link: "busybox"})
	}
	return map[string]image.Spec{
		"0-pause.tar":        program("pause:1", "pause"),
		"1-coredns.tar":      program("coredns:1", "coredns"),
		"1-local-path.tar":   program("local-path-provisioner:1", "local-path-provisioner"),
		"1-cert-manager.tar": certManager,
		"2-testapp.tar":      program("testapp:1", "testapp"),
		"2-busybox.tar":      busybox,
		"3-mysql.tar": {
			// Also under the name of the published image, so that manifests for any cluster run here.
			Tags:   []string{"lab.local/mysql:" + s.mysqlVersion, "lab.local/mysql:" + series(s.mysqlVersion), "mysql:" + series(s.mysqlVersion)},
			Cmd:    []string{"/usr/sbin/mysqld"},
			User:   "999:999",
			Labels: map[string]string{"org.opencontainers.image.version": s.mysqlVersion},
			Files:  []image.File{{Dest: "/", Source: s.mysqlRoot}},
		},
	}
}

// series is the release series of a version: 9.7 of 9.7.4-2.
func series(version string) string {
	f := strings.SplitN(version, ".", 3)
	if len(f) < 3 {
		return version
	}
	return f[0] + "." + f[1]
}

// imagesText is the recipe of the images as a key sees it.
func imagesText(mysqlVersion string) string {
	return fmt.Sprintf("%+v", images(sources{mysqlVersion: mysqlVersion})) // maps print in the order of their keys
}
