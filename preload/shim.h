/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the preload shim know of one another.
 *
 *	calls.c   the libc entry points, and which of their calls we take
 *	work.c    a call that was taken, done as a ktask operation
 *	config.c  environment, and whether this process may use the library
 *	report.c  what was done, on request, at exit
 *	real.c    the plain calls
 *
 * Not here: how anything is split or populated; that is libktask, linked in.
 */
#ifndef PRELOAD_SHIM_H
#define PRELOAD_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum shim_call { SHIM_MMAP, SHIM_MADVISE, SHIM_MLOCK, SHIM_NR_CALLS };

/* The names in KTASK_RUN_OPS and in the report. */
extern const char *const shim_call_names[SHIM_NR_CALLS];

/* real.c: return and errno as the libc functions of that name */
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset);
int real_madvise(void *addr, size_t len, int advice);
int real_mlock(const void *addr, size_t len);
int real_mlock2(const void *addr, size_t len, unsigned flags);

/* config.c: is a call of this kind and size ours, here and now? */
bool shim_wants(enum shim_call call, size_t len);
const char *shim_report_target(void);

/*
 * work.c: true when all is done; otherwise the plain call is still to be made,
 * and decides.  Both leave errno alone.
 */
bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags);
bool shim_lock(void *addr, size_t len);
/* Is the calling thread inside one of these two? */
bool shim_busy(void);

/* report.c */
void shim_count(enum shim_call call, size_t len, uint64_t ns, unsigned threads,
		bool done);
void shim_report_init(void);
void shim_report_forked(void);

#endif /* PRELOAD_SHIM_H */
