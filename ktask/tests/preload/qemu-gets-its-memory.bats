#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A real QEMU with 256 MiB of preallocated memory, in the ways it has for that.
# The machine is never started; QEMU answers one question and quits.

load shim.bash

MEMORY_BYTES=268435456

setup_file() {
	command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64"
}

qemu() {
	unset KTASK_RUN_MIN
	run shimmed timeout 300 qemu-system-x86_64 -machine pc,accel=tcg -m 256 \
		-display none -nodefaults -S -qmp stdio "$@" <<-'EOF'
		{"execute": "qmp_capabilities"}
		{"execute": "query-status"}
		{"execute": "quit"}
	EOF
	echo "$output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
	[[ "$output" == *'"status": "prelaunch"'* ]]
}

@test "-mem-prealloc is taken in one call" {
	qemu -mem-prealloc
	[ "$(taken madvise call)" = 1 ]
	[ "$(taken madvise bytes)" = "$MEMORY_BYTES" ]
	[ "$(taken madvise "left to the kernel")" = "" ]
}

@test "QEMU's own preallocation threads are taken one by one" {
	qemu -machine memory-backend=m -object \
		memory-backend-ram,id=m,size=256M,prealloc=on,prealloc-threads=2
	[ "$(taken madvise call)" = 2 ]
	[ "$(taken madvise bytes)" = "$MEMORY_BYTES" ]
}

@test "shared memory of a memory file is taken" {
	qemu -machine memory-backend=m -object \
		memory-backend-memfd,id=m,size=256M,prealloc=on,share=on
	[ "$(taken madvise bytes)" = "$MEMORY_BYTES" ]
}

@test "inside QEMU's system call filter" {
	[[ "$(qemu-system-x86_64 -help)" == *-sandbox* ]] || skip "no -sandbox"
	qemu -mem-prealloc -sandbox \
		on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
	[ "$(taken madvise bytes)" = "$MEMORY_BYTES" ]
}

@test "memory that cannot be had is refused as without the shim" {
	arguments=(-machine pc,accel=tcg,memory-backend=m -m 256 -display none
		-nodefaults -S -object
		"memory-backend-file,id=m,size=256M,prealloc=on,mem-path=/proc")
	run plain qemu-system-x86_64 "${arguments[@]}"
	expected=$status:$output
	[ "$status" -ne 0 ]
	run shimmed qemu-system-x86_64 "${arguments[@]}"
	[ "$status:$output" = "$expected" ]
}
