#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Where the kernel makes huge pages without advice a touch makes 2 MiB: memory is made ahead
# of these as well, within the same bounds.  The memory is aligned to 2 MiB, so that what a
# program sees behind a block of its touches is not the rest of a huge page.

. same.sh

sizes=/sys/kernel/mm/transparent_hugepage/enabled
export KTASK_RUN_OPS=ahead KTASK_OVERLOAD=ignore
unset KTASK_RUN_MIN

run_case() { # CASE...
	: >/tmp/report
	said=$(LD_PRELOAD=$KTASK_BUILD/libktask-preload.so \
		KTASK_RUN_REPORT=/tmp/report ahead-cases "$@" 2>&1)
}

# Helpers on a busy machine may get no CPU for longer than a case waits.
had_no_cpu() {
	case $said in
	"nothing was made ahead"*) grep -q 'no helper got a CPU' /tmp/report ;;
	*) false ;;
	esac
}

ahead() { # CASE...
	for try in 1 2 3; do
		run_case "$@"
		had_no_cpu || break
	done
	if had_no_cpu; then
		nr=$((nr + 1))
		echo "ok $nr - $* # SKIP no helper got a CPU in $try tries"
		return
	fi
	[ "$said" = ok ]
	verdict $? "$*"
	grep -q '^ktask: ahead: .* [1-9][0-9.]* [KMG]iB made ahead' /tmp/report
	verdict $? "$*: the report says so"
	while read -r line; do
		echo "# $line"
	done </tmp/report
	[ "$said" = ok ] || echo "$said" | while read -r line; do echo "# $line"; done
}

huge_pages() { # so far, made by faults or for helpers
	grep '^thp_fault_alloc ' /proc/vmstat
}

read -r before <$sizes
echo always >$sizes
grep -q '\[always\]' $sizes
verdict $? "huge pages without advice"
so_far=$(huge_pages)
ahead helped aligned
ahead wastes aligned
[ "$(huge_pages)" != "$so_far" ]
verdict $? "the pages are huge"
before=${before#*\[}
echo "${before%\]*}" >$sizes
finish
