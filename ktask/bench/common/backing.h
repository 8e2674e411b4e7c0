/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The same free memory for everybody.
 */
#ifndef BENCH_BACKING_H
#define BENCH_BACKING_H

#include <stddef.h>

/*
 * Takes so much memory, in pages of the kind that the advice asks for, and
 * gives it back.  In a virtual machine free memory may have gone back to the
 * host, and whoever takes it first waits for the host, four times as long as
 * populating takes.  The kind matters: small and huge pages come from
 * different free blocks.
 */
void backing_renew(size_t len, int thp_advice);

/* Private memory of small pages, of which none is present; MAP_FAILED and errno. */
char *backing_map_absent(size_t len);

#endif /* BENCH_BACKING_H */
