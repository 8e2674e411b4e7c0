#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# mbind, move_pages, migrate_pages and what is made under a policy, on the nodes
# that a guest has.

. same.sh

# Where that is slow the kernel marks pages for balancing meanwhile, which move_pages
# then calls absent (Linux 6.0 to 6.5).
balancing=/proc/sys/kernel/numa_balancing
was=$(cat $balancing 2>/dev/null)
[ -z "$was" ] || echo 0 >$balancing

export KTASK_RUN_OPS=mmap,madvise,mlock,munmap,fallocate,mbind
same 'policies' policy-cases
takes mbind
export KTASK_RUN_OPS=prefault
same 'policies of what is prefaulted' policy-cases
[ -z "$was" ] || echo "$was" >$balancing
finish
