#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask topo`: this machine, another one from a file, and the limits.

load helpers

fixture=$BATS_TEST_DIRNAME/fixtures/two-nodes.xml

@test "the object has its shape" {
	run -0 --separate-stderr "$ktask" topo --json
	[ -z "$stderr" ]
	is_true 'keys == ["caches","engines","limits","machine","nodes","threads"]'
	is_true '.machine | .cpus >= 1 and .nodes >= 1 and .this_system
		and .memory_bytes > 0 and (.kernel | length > 0)'
	is_true '.nodes | length >= 1 and all(.[]; .node >= 0
		and (.cpus | type == "string") and .memory_bytes >= 0)'
	is_true '(.nodes | length) as $n |
		all(.nodes[]; .distances | length == $n)'
	is_true 'all(.caches[]; .count >= 1 and .cpus_each >= 1
		and .size_bytes > 0 and (.name | startswith("L")))'
	is_true '.limits | length >= 1 and all(.[]; (.name | length > 0)
		and .threads >= 1 and (.why | length > 0))'
}

@test "who does large jobs is told, and why" {
	run -0 "$ktask" topo --json
	is_true '.engines == [
		{"operation": "populate", "engine": "user", "why": "the default"},
		{"operation": "lock", "engine": "user", "why": "the default"}]'
	KTASK_ENGINE=user run -0 "$ktask" topo
	grep -qE '^  populate +user +KTASK_ENGINE=user$' <<<"$output"
	[ ! -c /dev/ktask ] || skip "the module is loaded"
	KTASK_ENGINE=kernel run -0 "$ktask" topo
	grep -qE '^  populate +user +/dev/ktask: No such file' <<<"$output"
}

@test "a job gets the least of the limits" {
	run -0 "$ktask" topo --json
	is_true '.threads == ([.limits[].threads] | min) and .threads >= 1'
}

@test "CPUs are those that the kernel has" {
	run -0 "$ktask" topo --json
	is_true '.machine.cpus == '"$(getconf _NPROCESSORS_ONLN)"
}

@test "affinity limits" {
	local cpu
	cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
	run -0 taskset -c "$cpu" "$ktask" topo --json
	is_true '.threads == 1'
	is_true '.limits[] | select(.name == "affinity") | .threads == 1'
}

@test "KTASK_MAX_THREADS limits, and is named" {
	KTASK_MAX_THREADS=1 run -0 "$ktask" topo
	[[ $output == *"at most 1 thread, the caller included"* ]]
	grep -qE '^> env +1 .*KTASK_MAX_THREADS=1' <<<"$output"
}

@test "the text names node, cache and limit" {
	run -0 "$ktask" topo
	grep -qE '^  node  CPUs +memory  distances$' <<<"$output"
	grep -qE '^  limit +threads  why$' <<<"$output"
	grep -qE '^[> ] cpus +[0-9]+ ' <<<"$output"
	! grep -E '.{101}' <<<"$(grep -v '^[> ] ' <<<"$output")" || false
}

@test "a machine of two nodes from a file" {
	export HWLOC_XMLFILE=$fixture
	run -0 "$ktask" topo --json
	is_true '.machine | .nodes == 2 and .packages == 2 and .cores == 8
		and .cpus == 16 and .memory_bytes == 206158430208
		and (.this_system | not)'
	is_true '[.nodes[].cpus] == ["0-3,8-11", "4-7,12-15"]'
	is_true '[.nodes[].distances] == [[10, 21], [21, 10]]'
	is_true '.caches[0] == {"name": "L3", "size_bytes": 33554432,
		"line_bytes": 64, "count": 2, "cpus_each": 8}'
	run -0 "$ktask" topo
	[[ $output == *"not of this one"* ]]
	grep -qE '^ +1  4-7,12-15 +128 GiB +21 +10$' <<<"$output"
	grep -qE '^2 packages, 8 cores, 16 CPUs \(2 threads per core\)$' \
		<<<"$output"
}

@test "a file that hwloc cannot read is told" {
	HWLOC_XMLFILE=/nosuch.xml says 1 "topo: reading the topology: No such" \
		"$ktask" topo
	echo '<topology' >"$BATS_TEST_TMPDIR/bad.xml"
	HWLOC_XMLFILE=$BATS_TEST_TMPDIR/bad.xml run "$ktask" topo --json
	[ "$status" -eq 1 ]
	[[ $output == *"ktask: topo: reading the topology: "* ]]
}

# on COMMANDS: what topo says on a machine that they change, seen by it alone
on() {
	unshare --mount --propagation private true 2>/dev/null ||
		skip "needs a mount namespace of its own"
	run -0 unshare --mount --propagation private sh -ec "$1"'
		exec "$0" topo --json' "$ktask"
}

limit_is() {
	is_true ".limits[] | select(.name == \"$1\")
		| .threads == $2 and (.why | test(\"$3\"))"
}

battery='
	[ -d /sys/class/power_supply ] || exit 77
	mount -t tmpfs none /sys/class/power_supply
	cd /sys/class/power_supply
	mkdir BAT0 AC
	echo Battery >BAT0/type
	echo Discharging >BAT0/status
	echo Mains >AC/type
	echo 0 >AC/online
	cd /'

@test "on its battery a machine gets no helpers, and says so" {
	[ -d /sys/class/power_supply ] || skip "no class of power supplies"
	on "$battery"
	limit_is energy 1 "^the machine runs on its battery"
	is_true '.threads == 1'
	on "$battery; echo 1 >/sys/class/power_supply/AC/online"
	limit_is energy 65536 "auto: nothing says that energy is to be saved"
}

@test "the administrator's knob overrides the battery" {
	[ -d /sys/class/power_supply ] || skip "no class of power supplies"
	on "$battery
		mount -t tmpfs -o mode=755 none /etc
		echo 'energy = always' >/etc/ktask.conf"
	limit_is energy 65536 "^always"
	limit_is config 65536 "energy always"
	on "mount -t tmpfs -o mode=755 none /etc
		echo 'energy = never' >/etc/ktask.conf"
	limit_is energy 1 "^never: no helpers, to save energy"
	KTASK_ENERGY=never on :
	limit_is energy 1 "^never"
}

@test "a file of the administrator's that is not believed is told" {
	local etc='mount -t tmpfs -o mode=755 none /etc
		echo "max_threads = 1" >/etc/ktask.conf'
	on "$etc"
	limit_is config 1 "max_threads 1"
	on "$etc; chmod 666 /etc/ktask.conf"
	limit_is config 65536 "not used: writable by others"
	on "$etc; chown 12345 /etc/ktask.conf"
	limit_is config 65536 "not used: not owned by root"
	on "$etc; mv /etc/ktask.conf /etc/x; ln -s x /etc/ktask.conf"
	limit_is config 65536 "not used: a symbolic link"
	on "$etc; rm /etc/ktask.conf; mkfifo /etc/ktask.conf"
	limit_is config 65536 "not used: not a regular file"
	on "$etc; truncate -s 1G /etc/ktask.conf"
	limit_is config 65536 "not used: too long"
}

@test "whether priority can be lent, and why not" {
	[ "$(id -u)" -eq 0 ] || skip "only root can lose the right"
	command -v setpriv >/dev/null || skip "no setpriv"
	run -0 "$ktask" topo --json
	limit_is priority 65536 "lent the caller's priority"
	run -0 setpriv --bounding-set -sys_nice --inh-caps -sys_nice \
		"$ktask" topo --json
	is_true '.limits[] | select(.name == "priority")
		| .why | test("no right to raise .*CAP_SYS_NICE")'
}

@test "a group whose name is no UTF-8 limits, and is named" {
	local cpu=/sys/fs/cgroup/cpu group
	[ -w "$cpu/tasks" ] || skip "no control groups of version 1 to write to"
	group=$cpu/ktask-$$-$'\xff'
	mkdir "$group" || skip "no group can be made"
	echo 50000 >"$group/cpu.cfs_quota_us"
	run sh -c 'echo $$ >"$1/tasks" && exec "$2" topo --json' sh "$group" "$ktask"
	for _ in {1..1200}; do
		rmdir "$group" && break
		sleep 0.05
	done
	[ "$status" -eq 0 ]
	is_true '.limits[] | select(.name == "cgroup-quota")
		| .threads == 1 and (.why | test("-[?]"))'
}

@test "a group's name cannot write on the terminal" {
	local cpu=/sys/fs/cgroup/cpu group
	[ -w "$cpu/tasks" ] || skip "no control groups of version 1 to write to"
	group=$cpu/k$$-$'\e[2J\xc2\x9b\xc3\xa9\xff'
	mkdir "$group" || skip "no group can be made"
	echo 50000 >"$group/cpu.cfs_quota_us"
	run sh -c 'echo $$ >"$1/tasks" && exec "$2" topo' sh "$group" "$ktask"
	for _ in {1..1200}; do
		rmdir "$group" && break
		sleep 0.05
	done
	[ "$status" -eq 0 ]
	grep -qF -- "k$$-?[2J??"$'\xc3\xa9?' <<<"$output"
	! grep -q $'\033' <<<"$output" || false
}

@test "limits that cannot be read are not called none" {
	unshare -m true 2>/dev/null || skip "no mount namespaces"
	run -0 unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
		"$ktask" topo --json
	for limit in quota pids memory; do
		is_true '.limits[] | select(.name == "cgroup-'$limit'")
			| .threads == 65536 and (.why | test("could not be read: /proc"))'
	done
	# Known is the group, not what it may.
	run -0 unshare -m sh -c 'umount -R /sys/fs/cgroup && exec "$@"' sh \
		"$ktask" topo --json
	is_true '.limits[] | select(.name == "cgroup-quota")
		| .why | test("could not be read: the group.s files")'
}
