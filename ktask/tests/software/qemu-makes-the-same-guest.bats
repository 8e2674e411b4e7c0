#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# QEMU preallocates a guest's memory in each of the ways that it has.  The guest
# is never started; what its monitor tells of it and what its memory holds is
# compared.  What the shim takes of it: ktask/tests/preload/qemu-gets-its-memory.

load software.bash

BYTES=134217728

setup_file() {
	command -v qemu-system-x86_64 >/dev/null ||
		skip "no qemu-system-x86_64: make deps NEED=demo"
}

# Events carry the time of day.
guest() {
	software timeout 60 "${before[@]}" qemu-system-x86_64 -nodefaults \
		-display none -S -accel tcg,tb-size=32 -m 128 -qmp stdio "$@" \
		<<-EOF | sed 's/"timestamp": {[^}]*}//'
		{"execute": "qmp_capabilities"}
		{"execute": "query-memory-size-summary"}
		{"execute": "human-monitor-command",
		 "arguments": {"command-line": "info memdev"}}
		{"execute": "pmemsave", "arguments": {"val": 0,
		 "size": $BYTES, "filename": "$BATS_TEST_TMPDIR/memory"}}
		{"execute": "quit"}
	EOF
	sha256sum <"$BATS_TEST_TMPDIR/memory"
	rm "$BATS_TEST_TMPDIR/memory"
}

guest_same() {
	same guest "$@"
	grep -q SHUTDOWN "$BATS_TEST_TMPDIR/plain"
	[ "$(taken madvise bytes)" -ge "$BYTES" ]
}

backend() {
	guest_same -machine pc,memory-backend=m -object "$1,id=m,size=128M"
}

@test "-mem-prealloc" {
	guest_same -machine pc -mem-prealloc
}

@test "memory that is locked as well" {
	[ "$(id -u)" = 0 ] || skip "locking takes root"
	same guest -machine pc -mem-prealloc -overcommit mem-lock=on
	[ "$(taken mlock call)" -ge 1 ]
}

@test "a memory file" {
	backend memory-backend-memfd,share=on,prealloc=on
}

@test "a memory file of huge pages" {
	huge_pages 64
	backend memory-backend-memfd,share=on,prealloc=on,hugetlb=on
}

@test "a file on tmpfs" {
	backend "memory-backend-file,share=on,prealloc=on,mem-path=/dev/shm"
}

@test "a file on hugetlbfs" {
	huge_pages 64
	mkdir "$BATS_TEST_TMPDIR/huge"
	before=(unshare --mount --propagation private sh -c
		"mount -t hugetlbfs none $BATS_TEST_TMPDIR/huge && exec \"\$@\"" sh)
	"${before[@]}" true 2>/dev/null || skip "cannot mount hugetlbfs"
	backend "memory-backend-file,prealloc=on,mem-path=$BATS_TEST_TMPDIR/huge"
}

@test "a pool of huge pages that is too small" {
	huge_pages 16
	same guest_refused
	grep -q 'status 1' "$BATS_TEST_TMPDIR/plain"
}

guest_refused() {
	local status=0

	software timeout 60 qemu-system-x86_64 -nodefaults -display none -S \
		-accel tcg -m 128 -machine pc,memory-backend=m -object \
		memory-backend-memfd,id=m,size=128M,hugetlb=on,prealloc=on \
		|| status=$?
	echo "status $status"
}
