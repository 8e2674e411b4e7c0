# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For every .bats file here: where the applications are, and ranks of them.

bats_require_minimum_version 1.5.0

tree=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
# bats reads this several times, in processes that inherit from one another.
export KTEST_BUILD=${KTASK_BUILD:-${KTEST_BUILD:-$tree/build}}
heat=$KTEST_BUILD/heat
fwi=$KTEST_BUILD/fwi
. "${BASH_SOURCE[0]%/*}/../../../tests/support/environment.bash"
unset KTASK_BUILD
cd "$BATS_TEST_TMPDIR" || exit 1

# Small enough for a second, uneven enough for blocks and slices of all shapes.
small_heat=(--rows 201 --cols 157 --iterations 24)
small_fwi=(-x 20 -y 27 -z 23 --steps 12)

need_mpi() {
	command -v mpirun >/dev/null || skip "no mpirun"
	nm -D "$heat" | grep -q MPI_Init || skip "built without MPI"
}

# ranks N COMMAND...: on this machine only
ranks() {
	local nr=$1
	shift
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		timeout 100 mpirun --oversubscribe --bind-to none \
		--mca btl self,tcp --mca btl_tcp_if_include lo \
		--mca oob_tcp_if_include lo -np "$nr" "$@"
}

# sum_of COMMAND...: the checksum of its result
sum_of() {
	local told
	told=$("$@" --json) || {
		echo "failed: $*" >&2
		return 1
	}
	jq -re .sum <<<"$told"
}
