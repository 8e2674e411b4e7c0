/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the preload shim know of one another.
 *
 *	map.c     mmap, munmap                 the libc entry points, and which
 *	prefault.c  mmap of what would be touched
 *	advise.c  madvise                      of their calls we take
 *	lock.c    mlock, mlock2, mlockall
 *	file.c    fallocate, posix_fallocate
 *	life.c    unshare, setns, prctl, syscall: calls that would notice us
 *
 *	work.c    a call that was taken, done as a ktask operation
 *	quiet.c   signals meanwhile
 *	config.c  environment, and whether this process may use the library
 *	filter.c  system call filters: do they let the library work?
 *	bpf.c     what a filter says of one system call
 *	report.c  what was done, or would be, on request
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
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum shim_call {
	SHIM_MMAP,
	SHIM_MADVISE,
	SHIM_MLOCK,
	SHIM_MUNMAP,
	SHIM_FALLOCATE,
	SHIM_PREFAULT, /* mmap of what would be touched; only on request */
	SHIM_NR_CALLS
};

/* The names in KTASK_RUN_OPS and in the report. */
extern const char *const shim_call_names[SHIM_NR_CALLS];

/* real.c: return and errno as the libc functions of that name */
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset);
int real_munmap(void *addr, size_t len);
int real_madvise(void *addr, size_t len, int advice);
int real_mlock(const void *addr, size_t len);
int real_mlock2(const void *addr, size_t len, unsigned flags);
int real_mlockall(int flags);
/* As libc's, a cancellation point. */
int real_fallocate(int fd, int mode, int64_t offset, int64_t len);
int real_posix_fallocate(int fd, int64_t offset, int64_t len);
/* The kernel has the advice: an empty range does nothing. */
bool real_knows_advice(int advice);

/* The least that is taken; the one check that small calls pay for. */
extern size_t shim_min_bytes;

/*
 * config.c: may a call of this kind and size be ours, here and now?  To be
 * asked before anything else is: it makes no system call that a filter could
 * kill for.
 * @from: where the call comes from
 */
bool shim_wants(enum shim_call call, size_t len, const void *from);
/* To be asked last: with --dry-run it says so, and the answer is no. */
bool shim_takes(enum shim_call call, size_t len);
const char *shim_report_target(void);
/* The process that the library belongs to, and the library is ready. */
bool shim_is_ours(void);

#define SHIM_WANTS(call, len)       \
	((len) >= shim_min_bytes && \
	 shim_wants(call, len, __builtin_return_address(0)))

/*
 * work.c: true when all is done; otherwise the plain call is still to be made,
 * and decides.  All leave errno alone.
 */
bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags);
bool shim_discard(void *addr, size_t len, unsigned flags);
bool shim_lock(enum shim_call call, void *addr, size_t len);
bool shim_unmap(void *addr, size_t len);
/* Is the calling thread inside one of these? */
bool shim_busy(void);

/*
 * quiet.c: hold back the signals for which the program has a handler, as the
 * plain call does by not returning before its end.
 */
struct shim_quiet {
	uint64_t mask[16]; /* a sigset_t */
};
void shim_quiet_begin(struct shim_quiet *quiet);
void shim_quiet_end(const struct shim_quiet *quiet);

/*
 * prefault.c: is a mapping to be made present that nobody asked to populate?
 * By what it is, and by what the machine has.
 */
bool prefault_wanted(int prot, int flags);
bool prefault_possible(size_t len, int flags);

/* filter.c: no filter forbids what the library does */
bool shim_filter_allows(void);
void shim_filter_init(bool inherited_ok);
/*
 * A filter is about to be set.  Return: true when the shim steps aside because
 * of it; shim_filter_refused() when the kernel then did not take it.
 */
bool shim_filter_seen(bool strict, const void *program);
void shim_filter_refused(void);

/* bpf.c: what @program (a struct sock_fprog) returns for one system call */
struct seccomp_data;
uint32_t shim_bpf_run(const void *program, const struct seccomp_data *data);

/* report.c */
void shim_count(enum shim_call call, size_t len, uint64_t wall_ns,
		uint64_t cpu_ns, unsigned threads, bool done);
void shim_say_would(enum shim_call call, size_t len);
void shim_report_init(bool dry);
void shim_report_forked(void);

#endif /* PRELOAD_SHIM_H */
