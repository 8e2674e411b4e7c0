#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# OpenJDK touches its whole heap before it starts, with each collector that it
# has and with its own threads for that, and fills and empties it.

load software.bash

HEAP_MIB=192

setup_file() {
	command -v javac >/dev/null ||
		skip "no javac: make deps NEED=software"
	export CLASSES=$BATS_FILE_TMPDIR
	javac -d "$CLASSES" "$BATS_TEST_DIRNAME/Heap.java"
}

# Perf data would be a file in /tmp that is named after the process.
heap() {
	software java -XX:+AlwaysPreTouch -Xms${HEAP_MIB}m -Xmx${HEAP_MIB}m \
		-XX:-UsePerfData -cp "$CLASSES" "$@" Heap "$HEAP_MIB"
}

# has COLLECTOR: whether this JVM was built with it
has() {
	java "-XX:+Use$1" -version >/dev/null 2>&1 || skip "no $1"
}

@test "the serial collector" {
	has SerialGC
	same heap -XX:+UseSerialGC
}

@test "the parallel collector" {
	has ParallelGC
	same heap -XX:+UseParallelGC -XX:ParallelGCThreads=2
}

@test "G1, one thread that touches and two" {
	has G1GC
	same heap -XX:+UseG1GC -XX:ParallelGCThreads=1
	same heap -XX:+UseG1GC -XX:ParallelGCThreads=2
}

@test "G1 with transparent huge pages" {
	has G1GC
	same heap -XX:+UseG1GC -XX:+UseTransparentHugePages
}

@test "G1 with its heap prefaulted" {
	has G1GC
	RUN_OPTIONS=(--prefault=wait)
	same heap -XX:+UseG1GC
	[ "$(taken prefault bytes)" -ge $((HEAP_MIB << 20)) ]
}

@test "G1 and the serial collector with helpers ahead of them" {
	has G1GC
	RUN_OPTIONS=(--prefault)
	same heap -XX:+UseG1GC
	[ "$(taken prefault call)" -ge 1 ]
	same heap -XX:+UseSerialGC -XX:+UseTransparentHugePages
}

@test "ZGC, whose heap is a file in memory" {
	has ZGC
	same heap -XX:+UseZGC
}

@test "ZGC with huge pages, which a file provides" {
	has ZGC
	huge_pages $((HEAP_MIB / 2 + 400))
	same heap -XX:+UseZGC -XX:+UseLargePages
}

@test "the parallel collector with huge pages" {
	has ParallelGC
	huge_pages $((HEAP_MIB / 2 + 400))
	same heap -XX:+UseParallelGC -XX:+UseLargePages
}

@test "stacks of threads that are touched" {
	java -XX:+UnlockDiagnosticVMOptions \
		-XX:+AlwaysPreTouchStacks -version >/dev/null 2>&1 ||
		skip "no AlwaysPreTouchStacks"
	same heap -XX:+UnlockDiagnosticVMOptions -XX:+AlwaysPreTouchStacks
}
