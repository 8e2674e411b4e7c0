#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Where the kernel promises no more memory than there is, the stack of a thread counts:
# a program that has its memory touched ahead elsewhere gets no thread, and calls fail
# where they fail without the shim.

. same.sh

echo 2 >/proc/sys/vm/overcommit_memory
export KTASK_RUN_OPS=ahead
said=$(LD_PRELOAD=$KTASK_BUILD/libktask-preload.so ahead-cases threads 2>&1)
[ "$said" = "1 threads
ok" ]
verdict $? "no thread"
said=$(LD_PRELOAD=$KTASK_BUILD/libktask-preload.so ahead-told-cases maps-alone 2>&1)
[ "$said" = ok ]
verdict $? "no stack of a thread that has ended"
for seed in 1 2; do
	same "random calls, seed $seed" random-cases $seed 30 contents
done
echo 0 >/proc/sys/vm/overcommit_memory
finish
