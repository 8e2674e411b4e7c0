#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A pool of huge pages that is this test's alone: large enough, too small, empty.

. same.sh

pool=/sys/kernel/mm/hugepages/hugepages-2048kB

make_pool() { # PAGES
	echo "$1" >$pool/nr_hugepages
	[ "$(cat $pool/free_hugepages)" = "$1" ]
	verdict $? "a pool of $1 pages"
}

make_pool 40
same 'huge pages' huge-cases
takes fallocate
takes mmap
for seed in 1 2; do
	same "random calls, seed $seed" random-cases $seed 30 account huge
done
make_pool 5
same 'too few huge pages' huge-cases
make_pool 0
same 'no huge pages' huge-cases
finish
