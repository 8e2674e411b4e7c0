#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Whatever happens while a checkpoint is written, the one before it is there;
# what comes back from the disk changed is refused.

load helpers

# verified COMMAND...: it ends well, and its result is the sequential one
verified() {
	run -0 "$@" --verify
	[[ $output == *"verified: "* ]]
}

# refused TEXT COMMAND...: exit status 1, one line with TEXT, no result
refused() {
	local text=$1
	shift
	run -1 --separate-stderr "$@"
	echo "out '$output', err '$stderr'"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == *"$text"* ]]
}

@test "heat goes on from its last checkpoint" {
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 7
	run -0 --separate-stderr "$heat" "${small_heat[@]}" --block 40 \
		--restart --verify
	echo "$output"
	# Of 24 sweeps, 21 are in the checkpoint.
	[[ $output == *", 3 sweeps"* ]]
}

@test "heat killed at random moments goes on" {
	plate=(--rows 200 --cols 200 --block 40)
	how=--behind
	for delay in 0 0.01 0.02 0.05 0.1 0.2; do
		[ $how = --behind ] && how=--json || how=--behind
		"$heat" "${plate[@]}" --every 2 --iterations 1000000 $how &
		pid=$!
		for _ in {1..300}; do
			[ -e heat.0.0 ] && break
			sleep 0.1
		done
		sleep $delay
		kill -9 $pid
		wait $pid || true
		# Too few sweeps: it says what there is instead.
		run "$heat" "${plate[@]}" --restart --iterations 1
		echo "after $delay s: $output"
		at=0
		[[ $output =~ of\ sweep\ ([0-9]+), ]] && at=${BASH_REMATCH[1]}
		verified "$heat" "${plate[@]}" --restart \
			--iterations $((at + 2))
		[[ $output == *", 2 sweeps"* ]]
	done
	[ "$at" -gt 0 ]
}

@test "a full disk is an error, and the old checkpoint is whole" {
	[ "$(id -u)" -eq 0 ] || skip "only root may mount a small disk"
	unshare -m true || skip "no mount namespaces"
	run -0 unshare -m bash -c '
		set -e
		mkdir -p small
		mount -t tmpfs -o size=2m none small
		args=(--rows 201 --cols 157 --block 40 --dir small)
		"$1" "${args[@]}" --iterations 10 --every 10 >/dev/null
		for how in "" --behind; do
			head -c 4m /dev/zero >small/filler 2>/dev/null || :
			if "$1" "${args[@]}" --restart --iterations 30 \
				--every 10 $how >out 2>err; then
				exit 1
			fi
			cat err >&2
			[ ! -s out ]
			grep -q "No space left on device" err
			! grep -v "No space left on device" err || false
			! ls small/*part* 2>/dev/null || false
			rm small/filler
			"$1" "${args[@]}" --restart --iterations 12 --verify |
				tee last
			grep -q ", 2 sweeps" last
			grep -q "verified: " last
		done
	' full "$heat"
}

# shim NAME CALL: $1.so and $1-64.so of the C on standard input, in which
# the word CALL stands for the function, REAL for what it covers; $preload names
# both
shim() {
	local text
	text=$(sed "s/REAL/$2/")
	sed "s/CALL/$2/" <<<"$text" >"$1.c"
	sed "s/CALL/${2}64/" <<<"$text" >"$1-64.c"
	cc -shared -fPIC -o "$1.so" "$1.c" -ldl
	cc -shared -fPIC -o "$1-64.so" "$1-64.c" -ldl
	preload="$PWD/$1.so $PWD/$1-64.so"
}

# writes_fail CALL WHAT NR: $preload lets those by CALL, which writes NR of WHAT,
# from number $FAIL_AT on fail
writes_fail() {
	local what="const $2 *what, $3 nr_what"
	shim "full-$1" "$1" <<-END
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <stdlib.h>
		#include <sys/uio.h>
		#include <unistd.h>
		static int nr;
		ssize_t CALL(int fd, $what, off_t at)
		{
			ssize_t (*real)(int fd, $what, off_t at) =
				dlsym(RTLD_NEXT, "REAL");

			if (__sync_add_and_fetch(&nr, 1) >=
			    atoi(getenv("FAIL_AT"))) {
				errno = ENOSPC;
				return -1;
			}
			return real(fd, what, nr_what, at);
		}
	END
}

@test "whichever write fails, the old checkpoint is whole" {
	writes_fail pwrite void size_t
	plate=("${small_heat[@]}" --block 40 --every 10)
	run -0 "$heat" "${plate[@]}" --iterations 10
	# 24 blocks, the table of checksums, the header.
	for at in 1 2 13 24 25 26; do
		for how in --json --behind; do
			echo "write $at, $how"
			LD_PRELOAD=$preload FAIL_AT=$at refused \
				"No space left on device" "$heat" \
				"${plate[@]}" --restart --iterations 20 $how
			! compgen -G 'heat.*.part*' || false
			verified "$heat" "${plate[@]}" --restart \
				--every 0 --iterations 12
			[[ $output == *", 2 sweeps"* ]]
		done
	done
	FAIL_AT=27 LD_PRELOAD=$preload verified "$heat" "${plate[@]}" \
		--restart --iterations 20
}

@test "a directory that cannot be written to is an error" {
	refused "creating /nowhere/heat.0.part0: No such file" \
		"$heat" "${small_heat[@]}" --every 3 --dir /nowhere
	refused "creating /nowhere/fwi.0: No such file" \
		"$fwi" "${small_fwi[@]}" --every 3 --dir /nowhere
}

@test "a checkpoint with a changed bit is refused" {
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 24
	size=$(stat -c %s heat.0.0)
	for at in 4096 9000 $((size - 5000)); do
		cp heat.0.0 kept
		printf '\x5a' | dd of=heat.0.0 bs=1 seek=$at conv=notrunc \
			status=none
		if cmp -s kept heat.0.0; then
			printf '\xa5' | dd of=heat.0.0 bs=1 seek=$at \
				conv=notrunc status=none
		fi
		echo "byte $at of $size"
		refused "reading the checkpoint of sweep 24" \
			"$heat" "${small_heat[@]}" --block 40 --restart
		mv kept heat.0.0
	done
	verified "$heat" "${small_heat[@]}" --block 40 --restart
}

@test "a truncated one is refused, and rubbish is none" {
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 24
	truncate -s -4096 heat.0.0
	refused "No data available" \
		"$heat" "${small_heat[@]}" --block 40 --restart
	head -c 100000 /dev/urandom >heat.0.0
	run -0 "$heat" "${small_heat[@]}" --block 40 --restart --verify
	[[ $output == *", 24 sweeps"* ]]
}

@test "one that cannot be looked at is not written over" {
	mkdir heat.0.1
	refused "reading ./heat.0.1: Is a directory" \
		"$heat" "${small_heat[@]}" --every 8 --restart
	[ ! -e heat.0.0 ]
}

@test "a checkpoint of another plate is none" {
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 24
	run -0 "$heat" "${small_heat[@]}" --block 41 --restart --verify
	[[ $output == *", 24 sweeps"* ]]
}

@test "checkpoints of a run before are not mistaken for this one's" {
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 8
	run -0 "$heat" "${small_heat[@]}" --block 40 --every 5 --iterations 5
	run -0 "$heat" "${small_heat[@]}" --block 40 --restart --verify
	[[ $output == *", 19 sweeps"* ]]
}

@test "fwi refuses a snapshot that comes back changed" {
	shim flip pread <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <unistd.h>
		ssize_t CALL(int fd, void *buf, size_t bytes, off_t at)
		{
			ssize_t (*real)(int, void *, size_t, off_t) =
				dlsym(RTLD_NEXT, "pread");
			ssize_t done = real(fd, buf, bytes, at);

			if (done > 5000 && at)
				((char *)buf)[5000] ^= 1;
			return done;
		}
	END
	LD_PRELOAD=$preload refused "reading ./fwi.0: " \
		"$fwi" "${small_fwi[@]}" --every 3
}

@test "fwi tells of the first read that fails" {
	shim unread pread <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <unistd.h>
		ssize_t CALL(int fd, void *buf, size_t bytes, off_t at)
		{
			ssize_t (*real)(int, void *, size_t, off_t) =
				dlsym(RTLD_NEXT, "REAL");

			errno = EIO;
			return at ? -1 : real(fd, buf, bytes, at);
		}
	END
	for how in --json --behind; do
		LD_PRELOAD=$preload refused \
			"reading ./fwi.0: Input/output error" \
			"$fwi" "${small_fwi[@]}" --every 3 $how
	done
}

@test "fwi tells of the first write that fails" {
	# 4 snapshots of 27 slices, each written from two places or from one.
	for how in --json --behind; do
		if [ $how = --behind ]; then
			writes_fail pwrite void size_t
		else
			writes_fail pwritev 'struct iovec' int
		fi
		for at in 1 30 108; do
			LD_PRELOAD=$preload FAIL_AT=$at refused \
				"writing ./fwi.0: No space left on device" \
				"$fwi" "${small_fwi[@]}" --every 3 $how
		done
	done
}

@test "fwi's snapshots are whole where each write is cut short" {
	shim short pwritev <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdlib.h>
		#include <sys/uio.h>
		#include <unistd.h>
		/* At most so much of the first part. */
		ssize_t CALL(int fd, const struct iovec *parts, int nr, off_t at)
		{
			ssize_t (*real)(int, const void *, size_t, off_t) =
				dlsym(RTLD_NEXT, "pwrite");
			size_t bytes = parts->iov_len, most = atoi(getenv("MOST"));

			return real(fd, parts->iov_base,
				    bytes < most ? bytes : most, at);
		}
	END
	for most in 4096 12288 1000000; do
		MOST=$most LD_PRELOAD=$preload verified "$fwi" \
			"${small_fwi[@]}" --every 3
	done
}

# ended_by_a_kill NAME COMMAND...: one of three ranks of it is killed
ended_by_a_kill() {
	local name=$1 mpirun parents pids=() status=0
	shift
	ranks 3 "$@" >out 2>err &
	mpirun=$!
	for _ in {1..600}; do
		# ranks() is timeout, then mpirun, then the ranks.
		parents=$(pgrep -d, -P "$(pgrep -d, -P $mpirun || echo 0)" ||
			echo 0)
		mapfile -t pids < <(pgrep -x "$name" -P "$mpirun,$parents" || :)
		[ ${#pids[@]} -eq 3 ] && break
		sleep 0.1
	done
	echo "ranks: ${pids[*]}"
	[ ${#pids[@]} -eq 3 ]
	sleep 0.5
	kill -9 "${pids[1]}"
	wait $mpirun || status=$?
	cat err
	[ $status -ne 0 ]
	[ $status -ne 124 ] # not by the time limit
	grep -q "signal 9" err
	# mpirun has told them to end, and does not wait.
	for _ in {1..600}; do
		kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.1
	done
	for pid in "${pids[@]}"; do
		! kill -0 "$pid" 2>/dev/null || false
	done
}

@test "the ranks end when one of them is killed" {
	need_mpi
	ended_by_a_kill heat "$heat" --rows 600 --cols 600 --block 50 \
		--workers 1 --iterations 1000000
	ended_by_a_kill fwi "$fwi" -x 60 -y 60 -z 60 --workers 1 \
		--steps 1000000 --every 250000 --events
}
