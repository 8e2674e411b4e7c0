#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The applications give the sequential program's result, bit by bit, however
# the work is divided.

load helpers

@test "heat: any size of block, any number of workers" {
	wanted=$(sum_of "$heat" "${small_heat[@]}" --sequential)
	for block in 1000 64 31; do
		for workers in 1 2 5; do
			got=$(sum_of "$heat" "${small_heat[@]}" \
				--block $block --workers $workers --verify)
			echo "block $block, workers $workers"
			[ "$got" = "$wanted" ]
		done
	done
}

@test "heat: another number of sweeps has another sum" {
	a=$(sum_of "$heat" "${small_heat[@]}" --block 50)
	b=$(sum_of "$heat" "${small_heat[@]}" --block 50 --iterations 25)
	[ "$a" != "$b" ]
}

@test "heat: with checkpoints, which are read back" {
	wanted=$(sum_of "$heat" "${small_heat[@]}" --sequential)
	for how in --json --buffered --no-umt --behind --pending=1 \
		'--behind --pending=5'; do
		got=$(sum_of "$heat" "${small_heat[@]}" --block 40 \
			--every 5 --verify $how)
		echo "$how"
		[ "$got" = "$wanted" ]
		[ -e heat.0.0 ]
		[ -e heat.0.1 ]
		! compgen -G 'heat.*.part*' || false
	done
}

@test "heat: any number of ranks" {
	need_mpi
	wanted=$(sum_of "$heat" "${small_heat[@]}" --sequential)
	for nr in 2 3; do
		for how in --json --events --behind; do
			got=$(sum_of ranks $nr "$heat" "${small_heat[@]}" \
				--block 40 --workers 1 --every 8 --verify $how)
			echo "$nr ranks, $how"
			[ "$got" = "$wanted" ]
		done
	done
}

@test "fwi: any number of workers" {
	wanted=$(sum_of "$fwi" "${small_fwi[@]}" --sequential --every 3)
	for workers in 1 2 5; do
		for how in --json --behind; do
			got=$(sum_of "$fwi" "${small_fwi[@]}" --every 3 \
				--workers $workers --verify $how)
			echo "workers $workers, $how"
			[ "$got" = "$wanted" ]
		done
	done
}

@test "fwi: snapshots change the image" {
	a=$(sum_of "$fwi" "${small_fwi[@]}" --every 3)
	b=$(sum_of "$fwi" "${small_fwi[@]}" --every 4)
	[ "$a" != "$b" ]
}

@test "fwi: any number of ranks" {
	need_mpi
	wanted=$(sum_of "$fwi" "${small_fwi[@]}" --sequential --every 3)
	for nr in 2 3 6; do
		for how in --json --events --buffered --behind; do
			got=$(sum_of ranks $nr "$fwi" "${small_fwi[@]}" \
				--workers 1 --every 3 --verify $how)
			echo "$nr ranks, $how"
			[ "$got" = "$wanted" ]
		done
	done
}
