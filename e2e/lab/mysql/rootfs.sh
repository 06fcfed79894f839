#!/bin/bash
# rootfs.sh OUT makes OUT/rootfs, a small root filesystem with MySQL, and
# OUT/version, the server's own version.
#
# Only Debian's unstable suite has MySQL. Its packages are unpacked, never
# configured: no maintainer script runs, and what mysqld does not need is left
# out. A static busybox gives a shell. The mirror is the one that this machine's
# own apt uses. Nothing else of the machine goes into the result.
set -euo pipefail

SUITE=sid
PROGRAMS="mysql mysqldump mysqlbinlog mysqladmin"
PLUGINS="semisync_source semisync_replica mysql_clone group_replication auth_socket mysql_native_password
  component_log_sink_json component_validate_password component_keyring_file
  component_replication_applier_metrics component_group_replication_elect_prefers_most_updated"
APPLETS="sh ash awk basename cat chmod chown cp cut date dd df dirname du echo env expr false find free grep gunzip gzip
  head hostname id ip kill ln ls mkdir mktemp mv nc netstat nslookup od pgrep pidof ping printf ps pwd readlink rm rmdir
  sed seq sha256sum sleep sort stat sync tail tar tee test timeout top touch tr true uname uniq uptime usleep vi wc
  wget which whoami xargs"

# mirror prints the URI from which this machine's apt takes Debian itself.
mirror() {
  apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "Debian" && $3 == "main" { print $1; exit }'
}

# unpack DIR fills DIR with the packages' files, all of them.
unpack() {
  local uri; uri=$(mirror)
  [ -n "$uri" ] || { echo "rootfs.sh: apt knows no Debian mirror here; run apt-get update" >&2; exit 1; }
  # A mirror's copy of unstable may be older than its Valid-Until: its signature is checked, its age is not.
  mmdebstrap --quiet --mode=root --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=mysql-server-core,mysql-client-core,busybox-static "$SUITE" "$1" \
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $SUITE main"
}

# version DIR prints the version that the server in DIR says it has, such as 9.7.4-2.
version() {
  local lib=$1/usr/lib/x86_64-linux-gnu v
  v=$("$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$1/usr/sbin/mysqld" --no-defaults --version |
    sed -n 's/.* Ver \([^ ]*\) .*/\1/p')
  [ -n "$v" ] || { echo "rootfs.sh: mysqld does not say its version" >&2; exit 1; }
  echo "$v"
}

# libraries DIR FILE... prints the shared libraries under DIR that the files load.
libraries() {
  local lib=$1/usr/lib/x86_64-linux-gnu; shift
  local f
  for f in "$@"; do
    "$lib/ld-linux-x86-64.so.2" --library-path "$lib" --list "$f" | grep -o "$lib/[^ ]*"
  done | sort -u
}

# trim FROM TO copies what a server needs.
trim() {
  local from=$1 to=$2 d f
  mkdir -p "$to"/usr/{sbin,bin,lib/x86_64-linux-gnu,lib64,lib/mysql/plugin,share/mysql} \
    "$to"/{etc,tmp,dev,proc,sys,run,data,var/lib/mysql}
  chmod 1777 "$to/tmp"
  for d in lib lib64 bin sbin; do ln -s "usr/$d" "$to/$d"; done
  cp -a "$from/usr/sbin/mysqld" "$to/usr/sbin/"
  for f in $PROGRAMS; do cp -a "$from/usr/bin/$f" "$to/usr/bin/"; done
  for f in $PLUGINS; do cp -a "$from/usr/lib/mysql/plugin/$f.so" "$to/usr/lib/mysql/plugin/"; done
  cp -a "$from"/usr/share/mysql/{english,charsets,dictionary.txt} "$to/usr/share/mysql/"
  libraries "$from" "$to"/usr/sbin/* "$to"/usr/bin/* "$to"/usr/lib/mysql/plugin/*.so | while read -r f; do
    cp -aL "$f" "$to/usr/lib/x86_64-linux-gnu/"
  done
  d=usr/lib/x86_64-linux-gnu
  cp -aL "$from/$d/ld-linux-x86-64.so.2" "$to/usr/lib64/"
  cp -aL "$from/$d"/{libnss_files.so.2,libnss_dns.so.2,libresolv.so.2} "$to/$d/"
  cp -aL "$from/usr/bin/busybox" "$to/usr/bin/busybox"
  for f in $APPLETS; do ln -s busybox "$to/usr/bin/$f"; done
}

# accounts DIR writes the few files of /etc that libc reads.
accounts() {
  printf 'root:x:0:0::/:/bin/sh\nmysql:x:999:999::/var/lib/mysql:/bin/false\n' >"$1/etc/passwd"
  printf 'root:x:0:\nmysql:x:999:\n' >"$1/etc/group"
  printf '127.0.0.1 localhost\n' >"$1/etc/hosts"
  printf 'hosts: files dns\npasswd: files\ngroup: files\n' >"$1/etc/nsswitch.conf"
}

out=$1
mkdir -p "$out"
all=$(mktemp -d "$out/unpacked.XXXXXX")
trap 'rm -rf "$all"' EXIT
unpack "$all"
trim "$all" "$out/rootfs"
accounts "$out/rootfs"
version "$out/rootfs" >"$out/version"
