#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Task Bench's assertions on what each task reads hold in all configurations, by tasks
# that are made each time and by graphs made once.  Its sources are not here, and neither
# PyPI nor Debian has a package of them, so nothing fetches them: clone
# github.com/StanfordLegion/task-bench, and `make check TASK_BENCH=DIR` builds its core.

. "${BATS_TEST_FILENAME%/*}/../../../tests/support/environment.bash"

@test "all patterns and kernels" {
	local build=${KTASK_BUILD:-build}

	[ -x "$build/bench/task-bench-ktrt" ] ||
		skip "not built: make check TASK_BENCH=DIR does that"
	perl "$BATS_TEST_DIRNAME/../../bench/task-bench/validate.pl" --only validate \
		"$build/bench/task-bench-ktrt"
}
