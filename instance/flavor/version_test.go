package flavor_test

import (
	"errors"
	"strings"
	"testing"

	"cnmsql.co/operator/instance/flavor"
)

func TestVersionsAreReadFromWhatServersSay(t *testing.T) {
	for _, c := range []struct {
		text    string
		flavor  flavor.Flavor
		version string
	}{
		{"8.0.36", flavor.MySQL, "8.0.36"},
		{"8.4.3-3", flavor.MySQL, "8.4.3"},
		{"8.4.3-3-log\n", flavor.MySQL, "8.4.3"},
		{"9.7.4-2", flavor.MySQL, "9.7.4"},
		{"8.0.35-0ubuntu0.22.04.1", flavor.MySQL, "8.0.35"},
		{"mysqld  Ver 8.4.3-3 for Linux on x86_64 (Percona Server (GPL), Release 3, Revision abc)", flavor.MySQL, "8.4.3"},
		{"/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", flavor.MySQL, "9.7.4"},
		{"/usr/sbin/mysqld  Ver 8.0.36 for Linux on aarch64 (MySQL Community Server - GPL)", flavor.MySQL, "8.0.36"},
		{"5.7.44-log", flavor.MySQL, "5.7.44"},
		{"10.11.6-MariaDB-0+deb12u1-log", flavor.MariaDB, "10.11.6"},
		{"5.5.5-10.11.6-MariaDB", flavor.MariaDB, "10.11.6"},
		{"mariadbd  Ver 11.8.9-MariaDB-ubu2404 for debian-linux-gnu on x86_64", flavor.MariaDB, "11.8.9"},
		{"mysqld  Ver 10.11.6-MariaDB for Linux on x86_64 (MariaDB Server)", flavor.MariaDB, "10.11.6"},
	} {
		f, v, err := flavor.Parse(c.text)
		if err != nil || f != c.flavor || v.String() != c.version {
			t.Errorf("Parse(%q) = %v %v, %v; want %v %v", c.text, f, v, err, c.flavor, c.version)
		}
	}
}

func TestTextWithoutAVersionIsAnError(t *testing.T) {
	for _, text := range []string{"", "mysqld", "8", "8.0", "8.0.", "8..1", "8.0.mysql_aurora.3.04.0", "8.0.11-TiDB-v7.5.0", "1.2.3.4", "99999999.0.0", "Ver "} {
		if f, v, err := flavor.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v %v, want an error", text, f, v)
		}
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	order := []flavor.Version{{5, 7, 44}, {8, 0, 4}, {8, 0, 26}, {8, 0, 100}, {8, 1, 0}, {8, 4, 3}, {9, 0, 0}, {10, 0, 0}}
	for i, a := range order {
		for j, b := range order {
			if got := a.AtLeast(b.Major, b.Minor, b.Patch); got != (i >= j) {
				t.Errorf("%v at least %v: %v", a, b, got)
			}
		}
	}
}

func TestUnsupportedServersAreRefusedWithAReason(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"8.0.25", "MySQL 8.0.25 is not supported: use 8.0.26 or newer"},
		{"5.7.44-log", "8.0.26 or newer"},
		{"10.11.6-MariaDB", "MariaDB 10.11.6 is not supported yet"},
	} {
		s, err := flavor.Detect(c.text)
		if !errors.Is(err, flavor.ErrNotSupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Detect(%q): error %v does not say %q", c.text, err, c.says)
		}
		if s != (flavor.Server{}) {
			t.Errorf("Detect(%q) returns a server beside the error", c.text)
		}
	}
	if _, err := flavor.For("oracle", flavor.Version{Major: 23}); !errors.Is(err, flavor.ErrNotSupported) {
		t.Errorf("an unknown flavor gives %v", err)
	}
	if _, err := flavor.Detect("what"); err == nil || errors.Is(err, flavor.ErrNotSupported) {
		t.Errorf("text without a version gives %v", err)
	}
}

func TestImagesTellTheirVersion(t *testing.T) {
	for _, c := range []struct{ image, version string }{
		{"mysql:9.7", "9.7"},
		{"mysql:8", "8"},
		{"mysql:8.0", "8.0"},
		{"docker.io/library/mysql:8.4.3-oraclelinux9", "8.4.3"},
		{"percona/percona-server:8.4.3-3", "8.4.3"},
		{"percona/percona-server:8.0.26", "8.0.26"},
		{"registry.example:5000/mirror/percona-server:8.0.36-28.1@sha256:" + strings.Repeat("0", 64), "8.0.36"},
		{"container-registry.oracle.com/mysql/community-server:8.4", "8.4"},
	} {
		s, err := flavor.ForImage(c.image)
		if err != nil || s.Version.String() != c.version {
			t.Errorf("ForImage(%q) = %v, %v; want %s", c.image, s.Version, err, c.version)
		}
	}
	for _, image := range []string{
		"", "mysql", "mysql:latest", "mysql:lts", "team/db:5.7", "registry.example:5000/mysql", "mysql-custom:1.2.3", "mysql@sha256:" + strings.Repeat("0", 64),
	} {
		if s, err := flavor.ForImage(image); !errors.Is(err, flavor.ErrUnknownVersion) {
			t.Errorf("ForImage(%q) = %v, %v; want an unknown version", image, s.Version, err)
		}
	}
	for _, image := range []string{"mysql:5.7", "mysql:8.0.25", "mysql:5", "mariadb:11.4", "mariadb:latest", "mariadb"} {
		if _, err := flavor.ForImage(image); !errors.Is(err, flavor.ErrNotSupported) {
			t.Errorf("ForImage(%q): %v; want not supported", image, err)
		}
	}
}
