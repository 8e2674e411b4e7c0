# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For all .bats files that are run without tests/run, which does the same: what the
# user exported must not change a verdict.  bats sources this; it has no tests of its
# own.  KTASK_BUILD, the directory of what was built, stays.

clear_settings() {
	local name

	for name in "${!KTASK_@}" "${!KTRT_@}" "${!UMT_@}"; do
		[[ $name == KTASK_BUILD || $name == KTASK_TEST_* ]] ||
			unset "$name"
	done
	unset HWLOC_XMLFILE LD_PRELOAD
}

clear_settings
