#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask topo`: this machine, another one from a file, and the limits.

load helpers

fixture=$BATS_TEST_DIRNAME/fixtures/two-nodes.xml

@test "the object has its shape" {
	run -0 --separate-stderr "$ktask" topo --json
	[ -z "$stderr" ]
	is_true 'keys == ["caches","limits","machine","nodes","threads"]'
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
	! grep -E '.{101}' <<<"$(grep -v '^[> ] ' <<<"$output")"
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
