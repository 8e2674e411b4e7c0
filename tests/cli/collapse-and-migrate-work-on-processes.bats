#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktask collapse and migrate: the memory of a running process changes its pages,
# not its contents.

load helpers

# A process with 64 MiB of random bytes, which on a signal says whether they
# are what they were.
setup() {
	mkfifo "$BATS_TEST_TMPDIR/ready" "$BATS_TEST_TMPDIR/done"
	perl -e 'my $part = pack("L*", map { $_ * 2654435761 & 0xffffffff }
			0 .. 0xffff);
		my $x = "";
		$x .= $part ^ pack("L", $_) x 0x10000 for 0 .. 255;
		my $sum = unpack("%32L*", $x);
		$SIG{USR1} = sub { my $now = unpack("%32L*", $x);
			open(my $done, ">", $ARGV[1]) or die;
			print $done $sum == $now ? "same\n" : "changed\n" };
		open(my $ready, ">", $ARGV[0]) or die; print $ready "\n";
		close $ready; sleep 60 for 1 .. 5' \
		"$BATS_TEST_TMPDIR/ready" "$BATS_TEST_TMPDIR/done" 3>&- &
	pid=$!
	read -r <"$BATS_TEST_TMPDIR/ready"
}

teardown() {
	kill "$pid" 2>/dev/null || true
}

contents_are_the_same() {
	local said
	kill -USR1 "$pid"
	read -r said <"$BATS_TEST_TMPDIR/done"
	[ "$said" = same ]
}

# Not every kernel, and not everybody, may.
refused() {
	[[ $stderr == *"Operation not permitted"* ||
		$stderr == *"Function not implemented"* ||
		$stderr == *"Permission denied"* ||
		$stderr == *"No such file"* ||
		$stderr == *"no huge page to be had"* ||
		$stderr == *"too fragmented"* ]]
}

@test "small pages become huge" {
	run --separate-stderr "$ktask" collapse --json "$pid"
	echo "$stderr"
	! refused || skip "not here: $stderr"
	[ "$status" -eq 0 ]
	is_true ".pid == $pid and (.fragmented | not) and .threads <= 1"
	is_true '.private_bytes > 64000000'
	is_true '.huge_bytes >= 32000000 or .refused_ranges > 0'
	contents_are_the_same
	# Nothing is left to be done.
	run -0 "$ktask" collapse "$pid"
	[[ $output == "process $pid: "*" in huge pages, before "* ]]
	contents_are_the_same
}

@test "a range of them" {
	run --separate-stderr "$ktask" collapse --json "$pid" 1000-2000
	! refused || skip "not here: $stderr"
	[ "$status" -eq 0 ]
	is_true '.huge_bytes == .huge_bytes_before and .seconds == 0'
}

@test "memory is moved to where it may be" {
	[ -e "/proc/$pid/numa_maps" ] || skip "a kernel without nodes"
	run --separate-stderr "$ktask" migrate --json --to 0-63 "$pid"
	! refused || skip "not here: $stderr"
	echo "$stderr"
	[ "$status" -eq 0 ]
	is_true '[.nodes[].bytes] | add > 64000000'
	contents_are_the_same
	run -0 "$ktask" migrate --to 0 "$pid"
	[[ ${lines[0]} == "process $pid: "* ]]
	[[ $output == *"node 0: "*", before "* ]]
	contents_are_the_same
}

@test "a node that is not there" {
	[ -e "/proc/$pid/numa_maps" ] || skip "a kernel without nodes"
	[ ! -e /sys/devices/system/node/node63 ] || skip "64 nodes"
	run -1 --separate-stderr "$ktask" migrate --to 63 "$pid"
	! refused || skip "not here: $stderr"
	[[ $stderr == "ktask: migrating process $pid at "*": a node of --to is not there, or has no memory (see 'ktask topo')" ]]
	contents_are_the_same
}

@test "a process that is not there" {
	says 1 "looking at process 4194304: No such process" \
		"$ktask" collapse 4194304
	says 1 "looking at process 4194304: No such process" \
		"$ktask" migrate --to 0 4194304
}
