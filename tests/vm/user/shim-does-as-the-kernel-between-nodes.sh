#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# mbind, move_pages, migrate_pages and what is made under a policy, on the nodes
# that a guest has.

. same.sh

export KTASK_RUN_OPS=mmap,madvise,mlock,munmap,fallocate
same 'policies' policy-cases
export KTASK_RUN_OPS=prefault
same_again 'policies of what is prefaulted' policy-cases
export KTASK_RUN_OPS=ahead
same_again 'policies beside memory made ahead' policy-cases
export KTASK_OVERLOAD=ignore
same 'memory that is touched in order under a policy' policy-cases touched
finish
