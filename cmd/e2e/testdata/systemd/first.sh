#!/bin/sh
# Starts systemd as the first process of what it takes for a machine: processes, mounts, network
# and names are its own, and gone with it.
#
#   first.sh outside NAME DIR    NAME is of its control groups
#
# DIR has the programs in bin/, units in units/, hookfabric.conf, and hookfabric/, which is put
# where the units look for their configuration.
set -eu

outside() {
	for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
		[ -e "$group/cgroup.procs" ] || continue
		mkdir -p "$group/$1"
		# That of processors takes none before it was given some, and is not needed.
		echo $$ >"$group/$1/cgroup.procs" 2>/dev/null || true
	done
	exec unshare --fork --kill-child --pid --mount --net --uts --ipc --cgroup "$0" inside "$1" "$2"
}

# groups shows only what is below the groups of this machine.
groups() {
	for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
		[ ! -d "$group/$1" ] || mount --bind "$group/$1" "$group"
	done
}

inside() {
	mount --make-rprivate /
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	groups "$1"
	shift
	ip link set lo up
	cp -r /etc "$1/etc"
	mount --bind "$1/etc" /etc
	cp -r "$1/hookfabric" /etc/
	mount -t tmpfs tmpfs /var/lib
	mount -t tmpfs -o mode=755 tmpfs /usr/local/bin
	cp "$1"/bin/* /usr/local/bin/
	systemd-sysusers "$1/hookfabric.conf"
	export container=test SYSTEMD_UNIT_PATH="$1/units" SYSTEMD_GENERATOR_PATH=/nowhere SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/nowhere
	exec "$SYSTEMD" --system --unit=basic.target --log-target=console --default-standard-output=inherit --default-standard-error=inherit
}

"$@"
