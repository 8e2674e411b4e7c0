/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The same free memory for everybody.
 */
#ifndef BENCH_BACKING_H
#define BENCH_BACKING_H

#include <stddef.h>

/*
 * Takes so much memory and gives it back.  In a virtual machine free memory
 * may have gone back to the host, and whoever takes it first then waits for
 * the host: 4 KiB pages varied by half without this, and by a few per cent
 * with it.
 */
void backing_renew(size_t len);

#endif /* BENCH_BACKING_H */
