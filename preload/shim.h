/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the preload shim know of one another.
 *
 *	map.c     mmap, munmap                 the libc entry points, and which
 *	advise.c  madvise                      of their calls we take
 *	lock.c    mlock, mlock2, mlockall
 *	file.c    fallocate, posix_fallocate
 *	other.c   calls that are left to the kernel, and only counted
 *	policy.c  mbind, of libnuma
 *	life.c    unshare, setns, prctl, syscall: calls that would notice us
 *	exit.c    _exit, quick_exit; the end of the process
 *
 *	store.c   memset and memcpy, if wanted (of stores/)
 *	prefault.c  mappings made present ahead of the program, if wanted
 *	work.c    a call that was taken, done as a ktask operation
 *	last.c    giving memory back when nothing but the end is to come
 *	quiet.c   signals meanwhile
 *	config.c  environment, and whether this process may use the library
 *	filter.c  system call filters: do they let the library work?
 *	bpf.c     what a filter says of one system call
 *	report.c  what was done, or would be, on request
 *	room.c    how much memory there is
 *	proc.c    reading /proc and /sys
 *	real.c    the plain calls
 *	raw.h     system calls without libc
 *
 * Not here: how anything is split or populated; that is libktask, linked in.
 */
#ifndef PRELOAD_SHIM_H
#define PRELOAD_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

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
	SHIM_EXIT,
	SHIM_MBIND,
	SHIM_DEFAULT_CALLS,
	/* what has to be asked for */
	SHIM_PREFAULT = SHIM_DEFAULT_CALLS,
	SHIM_STORES,
	SHIM_NR_CALLS
};

/* Large calls that are left to the kernel: their names and the reasons are in
 * report.c. */
enum shim_left {
	LEFT_MUNLOCK,
	LEFT_COLLAPSE,
	LEFT_WILLNEED,
	LEFT_REMOVE,
	LEFT_PAGEOUT,
	LEFT_FALLOCATE,
	LEFT_SHMAT,
	LEFT_MBIND,
	LEFT_MOVE_PAGES,
	LEFT_PROCESS_MADVISE,
	LEFT_EXIT_THREADS,
	LEFT_EXIT_WATCHED,
	LEFT_EXIT_HANDLERS,
	LEFT_EXIT_BUSY,
	SHIM_NR_LEFT
};

/* The names in KTASK_RUN_OPS and in the report. */
extern const char *const shim_call_names[SHIM_NR_CALLS];

/* real.c: return and errno as the libc functions of that name */
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset);
int real_munmap(void *addr, size_t len);
void *real_mremap(void *old, size_t old_len, size_t new_len, int flags,
		  void *addr);
int real_madvise(void *addr, size_t len, int advice);
int real_mlock(const void *addr, size_t len);
int real_mlock2(const void *addr, size_t len, unsigned flags);
int real_mlockall(int flags);
/* As libc's, a cancellation point. */
int real_fallocate(int fd, int mode, int64_t offset, int64_t len);
int real_posix_fallocate(int fd, int64_t offset, int64_t len);
int real_munlock(const void *addr, size_t len);
void *real_shmat(int id, const void *addr, int flags);
int real_shmdt(const void *addr);
ssize_t real_process_madvise(int pidfd, const struct iovec *ranges, size_t nr,
			     int advice, unsigned flags);
void real_exit_group(int status);
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
/* Somebody named this kind of call, and not all. */
bool shim_named(enum shim_call call);
const char *shim_report_target(void);
/* The process that the library belongs to, and the library is ready. */
bool shim_is_ours(void);
/* Its number; 0: not ready. */
pid_t shim_owner(void);
/* Somebody handles faults of this process: nothing is taken any more. */
void shim_memory_watched(void);

#define SHIM_WANTS(call, len)       \
	((len) >= shim_min_bytes && \
	 shim_wants(call, len, __builtin_return_address(0)))

/* Count a large call that the kernel does alone. */
#define SHIM_LEFT(what, len)                   \
	do {                                   \
		if ((len) >= shim_min_bytes)   \
			shim_leave(what, len); \
	} while (0)
void shim_leave(enum shim_left what, size_t len);
/* Somebody wants to know what is left. */
bool shim_tells(void);
/* policy.c: a system call on memory policy is about to be made. */
void shim_policy_call(long number, const long *args);

/*
 * work.c: true when all is done; otherwise the plain call is still to be made,
 * and decides.  All leave errno alone.
 */
bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags);
bool shim_discard(void *addr, size_t len, unsigned flags);
bool shim_lock(enum shim_call call, void *addr, size_t len);
bool shim_unmap(void *addr, size_t len);
bool shim_migrate(void *addr, size_t len, const unsigned long *nodes,
		  size_t nr_nodes);
bool shim_fill(void *dst, int byte, size_t len);
bool shim_copy(void *dst, const void *src, size_t len);
/* Is the calling thread inside one of these? */
bool shim_busy(void);
void shim_set_busy(bool value);
/* Ends the helpers, unless inside one of these. */
void shim_trim(void);
/* Most threads that the library allows a job now. */
unsigned shim_limit(void);

/*
 * prefault.c, which does nothing unless it is wanted.
 *
 * @pool: of huge pages that are reserved, and so is room for them
 * shim_prefault_stop: [addr, addr + len) is about to be changed
 * @again: only in a way after which it may go on
 */
void shim_prefault(void *base, size_t len, bool pool, const void *from);
void shim_prefault_mapping(void *base, size_t len, int prot, int flags, int fd,
			   int64_t offset, const void *from);
void shim_prefault_stop(const void *addr, size_t len, bool again);
void shim_prefault_end(void);
void shim_prefault_forked(void);
/* config.c: it is wanted; the program shall wait for it. */
extern bool shim_prefaults, shim_prefault_waits;

/* store.c: the least that is taken, once that is wanted */
extern size_t shim_store_min;

/* room.c: bytes that may still be used */
size_t shim_room_bytes(void);

/* lock.c: no limit on locked memory counts for this process.  Where one does it
 * would count the stacks of the helpers as well. */
bool shim_may_lock_all(void);

/*
 * quiet.c: hold back the signals for which the program has a handler, as the
 * plain call does by not returning before its end.
 */
struct shim_quiet {
	uint64_t mask[16]; /* a sigset_t */
};
void shim_quiet_begin(struct shim_quiet *quiet);
void shim_quiet_end(const struct shim_quiet *quiet);

/* filter.c: no filter forbids what the library does */
bool shim_filter_allows(void);
void shim_filter_init(bool inherited_ok);
/*
 * A filter is about to be set.  Return: true when the shim steps aside because
 * of it; shim_filter_refused() when the kernel then did not take it.
 */
bool shim_filter_seen(bool strict, const void *program);
void shim_filter_refused(void);
/* A child of vfork() by this thread has set one, and may be what asks. */
bool shim_filter_in_child(void);

/* Of an address that may be wrong.  Return: 0, or -errno as the kernel's. */
int shim_copy_in(void *to, const void *from, size_t len);

/* bpf.c: what @program (a struct sock_fprog) returns for one system call */
struct seccomp_data;
uint32_t shim_bpf_run(const void *program, const struct seccomp_data *data);

/*
 * exit.c: the program's last handlers have run, or there are none.  May end the
 * process with @status, or return to let the caller do that.
 * @in_order: by exit(), which has stdio to close, and not by _exit()
 */
void shim_at_end(int status, bool in_order);
/* The process made another one that shares its memory. */
void shim_memory_shared(void);

/* last.c */
struct shim_last {
	size_t bytes; /* that were in the ranges */
	unsigned threads;
	unsigned long
		others_percent; /* what others did, of what the caller did */
};
/*
 * Give back the private memory of the process, @nr_threads at once.  Nothing
 * that lies in large mappings can be used afterwards, stack of the caller and
 * static data of this library excepted.  False: nothing was done.
 * @lend: helpers may be lowered, for they can be raised again
 */
bool shim_last_discard(unsigned nr_threads, bool lend, struct shim_last *last);

/* report.c */
void shim_count(enum shim_call call, size_t len, uint64_t wall_ns,
		uint64_t cpu_ns, unsigned threads, bool done);
void shim_say_would(enum shim_call call, size_t len);
void shim_report_init(bool dry);
void shim_report_forked(void);
/* All that was counted; once.  @more: shim_report_last() may follow. */
void shim_report(bool more);
/* The line on the end of the process, which may use no allocated memory. */
void shim_report_last(void);

/* proc.c */
/* The beginning of a file, as a string; false: nothing. */
bool shim_read_text(const char *path, char *text, size_t size);
/* @func for each line of /proc/self/maps, cut at 127 characters. */
void shim_each_mapping(void (*func)(const char *line, void *arg), void *arg);

#endif /* PRELOAD_SHIM_H */
