#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# --stores: memset and memcpy of large memory leave what they leave without it.

load shim.bash

stored() {
	run "$KTASK_BUILD/ktask" run --min 1M --report="$REPORT" "$@" -- \
		"$PROGRAMS/stores-cases"
	echo "$status $output"
	cat "$REPORT"
	[ "$status" = 0 ]
	[ "$output" = "$expected" ]
}

@test "the same bytes, and the same around them" {
	expected=$(plain "$PROGRAMS/stores-cases")
	[ "$(grep -c 'signal 11' <<<"$expected")" = 3 ]
	stored --stores
	[ "$(taken stores calls)" -ge 15 ]
}

@test "nothing is taken without the option, nor in a dry run" {
	expected=$(plain "$PROGRAMS/stores-cases")
	stored
	[ -z "$(taken stores calls)" ]
	run "$KTASK_BUILD/ktask" run --min 1M --stores --dry-run -- \
		"$PROGRAMS/stores-cases"
	[[ "$output" == *"would do stores of 8388608 bytes (stores-cases"* ]]
}

@test "alone the library changes nothing" {
	expected=$(plain "$PROGRAMS/stores-cases")
	run env LD_PRELOAD="$KTASK_BUILD/libktask-stores.so" \
		"$PROGRAMS/stores-cases"
	[ "$output" = "$expected" ]
}

@test "everyday programs run with it" {
	script='seq 100000 | sort -R --random-source=/bin/ls | md5sum; ls /usr | wc -l'
	[ "$("$KTASK_BUILD/ktask" run --stores --min 4K bash -c "$script")" = \
		"$(plain bash -c "$script")" ]
	run "$KTASK_BUILD/ktask" run --stores --min 4K python3 -c '
import hashlib, threading
sums = []
def work(n): sums.append(hashlib.sha1(bytearray(n) * 64).hexdigest())
ts = [threading.Thread(target=work, args=(1 << 20,)) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(len(sums), len(set(sums)))'
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "4 1" ]
}
