#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The units of umtd do what they are for: a process without rights is served as
# soon as it asks, by a umtd with two capabilities and no more, and again after
# that umtd was killed.  systemd runs in namespaces of its own, with these units
# only; nothing of it is left.

load helpers

setup() {
	[ -x "$KTEST_BUILD/umtd" ] || skip "built without eBPF"
	work=$BATS_TEST_TMPDIR
	cp "$KTEST_BUILD/umt" "$KTEST_BUILD/umtd" "$work"
	chmod 755 "$BATS_RUN_TMPDIR" "$work" "$work"/umt*
}

# units DIRECTORY SBINDIR: as `make install` puts them there
units() {
	mkdir -p "$1"
	sed "s|@SBINDIR@|$2|" "$tree/umt/packaging/umtd.service.in" \
		>"$1/umtd.service"
	cp "$tree/umt/packaging/umtd.socket" "$1"
}

@test "systemd understands every line of the units" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	units "$work/units" "$work"
	run systemd-analyze --man=no verify "$work/units/umtd.service" \
		"$work/units/umtd.socket"
	[[ $output != *"o such file or directory"* ]] || skip "$output"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output != *umtd* ]]
}

@test "a socket that systemd made is served" {
	need_bpf
	[ "$(id -u)" -eq 0 ] || skip "only root may run umtd"
	command -v systemd-socket-activate >/dev/null ||
		skip "no systemd-socket-activate"
	systemd-socket-activate --seqpacket --listen "$work/socket" \
		"$work/umtd" 2>"$work/log" &
	waiting=$!
	for _ in {1..600}; do
		[ ! -S "$work/socket" ] || break
		sleep 0.1
	done
	run -0 env UMT_SOCKET="$work/socket" "$work/umt" info --json
	kill "$waiting"
	is_true ".backend == \"bpf\" and .note == \"by umtd at $work/socket\""
}

@test "wrong usage is one line" {
	for line in "--nosuch:unknown option '--nosuch'" "-q:unknown option '-q'" \
		"-qh:unknown option '-q'" "-s:option '-s' needs a value" \
		"--help=3:option '--help=3' takes no value" \
		"--socket:option '--socket' needs a value" "x:unexpected argument 'x'"; do
		run -2 --separate-stderr timeout 60 "$work/umtd" "${line%%:*}"
		[ "$stderr" = "umtd: ${line#*:}" ]
	done
	run -2 --separate-stderr timeout 60 "$work/umtd" --socket=x -qh
	[ "$stderr" = "umtd: unknown option '-q'" ]
}

@test "a file that is no socket is not replaced by one" {
	echo precious >"$work/file"
	run -1 timeout 60 "$work/umtd" --socket "$work/file"
	[[ $output == "umtd: listening on $work/file: "* ]]
	[ "$(<"$work/file")" = precious ]
}

@test "a socket behind which nobody serves is not taken for umtd" {
	[ "$(id -u)" -eq 0 ] || skip "only root can give rights up"
	command -v systemd-socket-activate >/dev/null ||
		skip "no systemd-socket-activate"
	systemd-socket-activate --seqpacket --listen "$work/socket" \
		/bin/false 2>"$work/log" &
	waiting=$!
	for _ in {1..600}; do
		[ ! -S "$work/socket" ] || break
		sleep 0.1
	done
	chmod 666 "$work/socket"
	run -0 env UMT_SOCKET="$work/socket" setpriv --reuid 65534 \
		--clear-groups "$work/umt" info --json
	kill "$waiting" || true
	is_true '.backend != "bpf" and (.bpf.why | length) > 10'
}

# ---- systemd as the first process ----

# What has to be there for systemd; nothing of it does anything.
empty_targets() {
	local name
	for name in sysinit basic sockets shutdown exit; do
		printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' \
			"$name" >"$1/$name.target"
	done
}

# Asks as nobody, kills as root, asks again, and all ends.
asking_units() {
	cat >"$1/default.target" <<-EOF
		[Unit]
		Description=umtd is asked
		Requires=umtd.socket ask.service
		After=umtd.socket
	EOF
	cat >"$1/ask.service" <<-EOF
		[Unit]
		After=umtd.socket
		SuccessAction=exit-force
		FailureAction=exit-force
		[Service]
		Type=oneshot
		User=65534
		TimeoutStartSec=60
		ExecStart=/run/kt/umt info --json
		ExecStart=+/bin/sh /run/kt/kill
		ExecStart=/run/kt/umt info --json
		ExecStart=+/bin/sh /run/kt/look
		StandardOutput=append:/run/kt/out/answers
		StandardError=append:/run/kt/out/errors
	EOF
	cat >"$work/kill" <<-'EOF'
		umtd=$(pidof umtd)
		echo "$umtd" >/run/kt/out/first
		kill -9 "$umtd"
	EOF
	cat >"$work/look" <<-'EOF'
		umtd=$(pidof umtd)
		echo "$umtd" >/run/kt/out/second
		cat "/proc/$umtd/status" >/run/kt/out/status
	EOF
	cat >"$work/begin" <<-'EOF'
		set -e
		trap 'exit 77' EXIT
		mount --make-rprivate /
		mount -t tmpfs -o mode=755 tmpfs /run
		mkdir -m 755 /run/kt /run/kt/out
		mkdir /run/kt/none /run/kt/etc /run/kt/etc-work
		cp -r umt umtd kill look units /run/kt
		mount --bind out /run/kt/out
		mount -t tmpfs tmpfs /tmp
		mount -t tmpfs tmpfs /var/tmp
		mount -t overlay -o lowerdir=/etc,upperdir=/run/kt/etc \
			-o workdir=/run/kt/etc-work overlay /etc
		mount -t cgroup2 none /sys/fs/cgroup
		mount --bind /run/kt/out/console /dev/console
		cd /
		export container=ktask
		export SYSTEMD_UNIT_PATH=/run/kt/units
		export SYSTEMD_GENERATOR_PATH=/run/kt/none
		trap - EXIT
		exec "$1" --system --log-target=console --show-status=no \
			--default-standard-output=null --log-level=err
	EOF
}

# A group of its own, in which systemd makes those of its units.
make_group() {
	local top
	top=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -n "$top" ] || skip "no control groups of the second version"
	group=$top/ktask-systemd-$$
	mkdir "$group" 2>/dev/null || skip "no control group may be made"
}

teardown() {
	[ -z "${group:-}" ] || find "$group" -depth -type d -exec rmdir {} \;
}

@test "systemd starts umtd for whoever asks, and again when it was killed" {
	local systemd=/lib/systemd/systemd
	need_bpf
	[ "$(id -u)" -eq 0 ] || skip "only root has namespaces to give"
	[ -x "$systemd" ] || skip "no systemd"
	unshare --pid --fork --mount --cgroup --uts --ipc true 2>/dev/null ||
		skip "no namespaces"
	make_group
	mkdir -p "$work/out"
	touch "$work/out/console"
	units "$work/units" /run/kt
	empty_targets "$work/units"
	asking_units "$work/units"
	cd "$work"
	run timeout 90 bash -c "echo \$\$ >'$group/cgroup.procs' || exit 9
		exec unshare --pid --kill-child --fork --mount --mount-proc \
			--cgroup --uts --ipc sh begin '$systemd'" </dev/null
	echo "$output"
	[ "$status" -ne 77 ] || skip "a mount is refused here"
	cat out/* || true
	[ "$status" -eq 0 ]
	[ "$(wc -l <out/answers)" -eq 2 ]
	is_true '.backend == "bpf"
		and (.note | startswith("by umtd at /run/umtd.sock; "))' \
		<(head -n 1 out/answers)
	is_true '.backend == "bpf"
		and (.note | startswith("by umtd at /run/umtd.sock; "))' \
		<(tail -n 1 out/answers)
	[ "$(<out/first)" != "$(<out/second)" ]
	# CAP_PERFMON and CAP_BPF, and never more.
	grep -q $'^CapEff:\t000000c000000000$' out/status
	grep -q $'^CapBnd:\t000000c000000000$' out/status
	grep -q $'^NoNewPrivs:\t1$' out/status
	if grep -qE $'^Uid:\t0' out/status; then false; fi
}
