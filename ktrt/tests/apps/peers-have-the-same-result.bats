#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# heat in other runtimes (ktrt/bench/apps/peers): the same bits, and checkpoints that
# heat goes on from.  Go's and Rust's are there where there is a compiler of them; Rust's
# needs crates.

load helpers

# same NAME: that peer, with blocks that do and do not fit, with checkpoints
same() {
	local peer=$KTEST_BUILD/bench/heat-$1 block how why
	why=$(tail -1 "$peer.why" 2>/dev/null) || why='make tests builds it'
	[ -x "$peer" ] || skip "not built: $why"
	wanted=$(sum_of "$heat" "${small_heat[@]}" --sequential)
	for block in 300 64 31; do
		for how in '--workers 1' '--workers 2 --every 5' \
			'--workers 5 --every 24 --buffered'; do
			echo "$peer, block $block, $how"
			rm -f heat.*
			# shellcheck disable=SC2086
			got=$(sum_of "$peer" "${small_heat[@]}" \
				--block $block $how)
			[ "$got" = "$wanted" ]
			[[ $how == *every* ]] || continue
			! compgen -G 'heat.*.part*' || false
			run -0 "$heat" "${small_heat[@]}" --block $block \
				--restart --iterations 25 --verify
			last=${how#*every }
			[[ $output == *", $((1 + 24 % ${last%% *})) sweeps"* ]]
			[[ $output == *"verified: "* ]]
		done
	done
}

@test "OpenMP tasks of gcc" {
	same libgomp
}

@test "OpenMP tasks of clang" {
	same libomp
}

@test "oneTBB's flow graph" {
	same tbb
}

@test "Go" {
	same go
}

@test "Rust, by rayon" {
	same rust
}

@test "what cannot be written is an error" {
	for name in libgomp libomp tbb go rust; do
		peer=$KTEST_BUILD/bench/heat-$name
		[ -x "$peer" ] || continue
		echo "$peer"
		run -1 "$peer" "${small_heat[@]}" --every 5 --dir /nowhere
	done
}
