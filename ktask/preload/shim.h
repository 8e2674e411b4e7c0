/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: what each of the files below offers to the others, most of it contracts */
/*
 * What the parts of the preload shim know of one another.
 *
 *	mmap_calls.c       mmap, munmap: the libc entry points, and which
 *	                   of their calls we take
 *	madvise_calls.c    madvise
 *	mlock_calls.c      mlock, mlock2, mlockall, munlockall
 *	locked_neighbours.c  locked memory becomes one mapping with what lies beside it
 *	fallocate_calls.c  fallocate, posix_fallocate
 *	counted_calls.c    calls that are left to the kernel, and only counted
 *	policy_calls.c     calls on memory policy, which are left to the kernel
 *	heap_calls.c       brk, sbrk: only to know of what they add
 *	thread_calls.c     pthread_create: a moment to look at memory
 *	register_calls.c   ioctl and io_uring_register: registering memory with a
 *	                   device
 *	library_calls.c    the same by liburing and libibverbs
 *	guarded_calls.c    unshare, setns, setrlimit, prctl, syscall: calls that notice us
 *	exit.c             _exit, quick_exit; the end of the process
 *	main_thread.c      the end of the main thread, where the process goes on
 *	exec.c             execve and its family: another kind of end
 *	spawn.c            posix_spawn: a child that is another program at once
 *
 *	ahead/             makes memory present ahead of the program's touches
 *	prefault.c         makes whole mappings present, when they are made
 *	prefaulted_pages.c what was made present, and what of it was touched
 *	run_operation.c    does a call that was taken as a ktask operation
 *	exit_discard.c     gives memory back as the last step of a process
 *	hold_signals.c     holds signals back meanwhile
 *	settings.c         copies of the environment and of the program's name
 *	shim_config.c      what they ask for, and whether we may be used at all
 *	seccomp_filter.c   do system call filters let the library work?
 *	seccomp_bpf.c      what a filter says of one system call
 *	counts.c           what was done, and what was not
 *	report.c           the same in words, on request
 *	report_ahead.c     the line on what was made ahead
 *	process_record.c   the same for whoever watches, should a signal end us
 *	count_present.c    how much of a range is present
 *	plain_calls.c      the plain calls
 *	next_functions.c   the functions that the shim's own stand before
 *
 * Not here: how anything is split or populated; that is libktask, linked in.
 *
 * Locking: none.  What is static here any thread may write, by an atomic store.
 */
#ifndef PRELOAD_SHIM_H
#define PRELOAD_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "util/memory_advice.h"

enum shim_call {
	SHIM_MMAP,
	SHIM_MADVISE,
	SHIM_MLOCK,
	SHIM_MUNMAP,
	SHIM_FALLOCATE,
	SHIM_EXIT,
	SHIM_REGISTER,
	SHIM_DEFAULT_CALLS,
	/* the following must be requested */
	SHIM_PREFAULT = SHIM_DEFAULT_CALLS,
	SHIM_AHEAD,
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
	LEFT_REGISTER,
	LEFT_REGISTER_PRESENT,
	LEFT_EXIT_THREADS,
	LEFT_EXIT_WATCHED,
	LEFT_EXIT_HANDLERS,
	LEFT_EXIT_BUSY,
	SHIM_NR_LEFT
};

/* Why a large call is left to the kernel though its kind is taken; report.c has words. */
enum shim_why {
	WHY_OPS,
	WHY_EARLY,
	WHY_ALLOCATOR,
	WHY_CHILD,
	WHY_FILTER,
	WHY_WATCHED,
	WHY_UNASKED,
	WHY_MAPPING,
	WHY_REFUSED,
	WHY_MEMORY,
	WHY_UNTOUCHED,
	WHY_POLICY,
	WHY_AHEAD_HELPERS,
	WHY_AHEAD_LIMITS,
	WHY_AHEAD_POLICY,
	WHY_AHEAD_LOCKED,
	WHY_AHEAD_KERNEL,
	WHY_AHEAD_MEMORY,
	WHY_AHEAD_TABLE,
	WHY_AHEAD_MAIN,
	WHY_AHEAD_PROC,
	WHY_CONFIG,
	SHIM_NR_WHY
};

/* The names in KTASK_RUN_OPS and in the report. */
extern const char *const shim_call_names[SHIM_NR_CALLS];

/* plain_calls.c: return and errno as the libc functions of that name */
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset);
int real_munmap(void *addr, size_t len);
void *real_mremap(void *old, size_t old_len, size_t new_len, int flags,
		  void *addr);
int real_madvise(void *addr, size_t len, int advice);
int real_mlock(const void *addr, size_t len);
int real_mlock2(const void *addr, size_t len, unsigned flags);
int real_mlockall(int flags);
/* A cancellation point, as libc's function is. */
int real_fallocate(int fd, int mode, int64_t offset, int64_t len);
int real_posix_fallocate(int fd, int64_t offset, int64_t len);
/* Less than a second; unlike libc's function, not a cancellation point. */
void real_sleep(long ns);
int real_munlock(const void *addr, size_t len);
void *real_shmat(int id, const void *addr, int flags);
int real_shmdt(const void *addr);
ssize_t real_process_madvise(int pidfd, const struct iovec *ranges, size_t nr,
			     int advice, unsigned flags);
void real_exit_group(int status);
/* Does the kernel know the advice?  Calls it on an empty range. */
bool real_knows_advice(int advice);

/* settings.c: copies that the program cannot change */
void shim_settings_copy(void);
const char *shim_program_name(void);

/* The smallest size that is taken; small calls pay only for this check. */
extern size_t shim_min_bytes;
/* counts.c: the largest call below that size */
extern _Atomic size_t shim_largest_small;

static inline bool shim_is_large(size_t len)
{
	if (len >= shim_min_bytes)
		return true;
	/* If two threads store at once the smaller may win: only a report needs it. */
	if (len >
	    atomic_load_explicit(&shim_largest_small, memory_order_relaxed))
		atomic_store_explicit(&shim_largest_small, len,
				      memory_order_relaxed);
	return false;
}

/*
 * shim_config.c: may the shim take a call of this kind and size now?  Call this before
 * anything else: it makes no system call for which a filter could kill.
 * @from: where the call comes from
 */
bool shim_wants(enum shim_call call, size_t len, const void *from);
/* Call this last: with --dry-run it reports the call and returns false. */
bool shim_takes(enum shim_call call, size_t len);
/*
 * The same for a range that is unmapped or discarded.  Programs give back address space
 * of which they touched little, so only present bytes are reported.
 */
bool shim_wants_release(enum shim_call call, const void *addr, size_t len,
			const void *from);
bool shim_takes_release(enum shim_call call, const void *addr, size_t len);
/* Is this --dry-run? */
bool shim_is_dry(void);
/* Does the option --ops name this kind of call, rather than all? */
bool shim_named(enum shim_call call);
const char *shim_report_target(void);
/* Is that address in an allocator other than the C library's, or in the C library or the
 * loader? */
bool shim_is_allocator(const void *from);
bool shim_is_system(const void *from);
/* Is the library ready, and is this the process that it belongs to? */
bool shim_is_ours(void);
/* The id of that process; 0: not ready. */
pid_t shim_owner(void);
/* Somebody handles faults of this process: from now on nothing is taken. */
void shim_memory_watched(void);
bool shim_memory_is_watched(void);

#define SHIM_WANTS(call, len)  \
	(shim_is_large(len) && \
	 shim_wants(call, len, __builtin_return_address(0)))
#define SHIM_WANTS_RELEASE(call, addr, len) \
	(shim_is_large(len) &&              \
	 shim_wants_release(call, addr, len, __builtin_return_address(0)))

/* Count a large call that the kernel does alone. */
#define SHIM_LEFT(what, len)                   \
	do {                                   \
		if ((len) >= shim_min_bytes)   \
			shim_leave(what, len); \
	} while (0)
void shim_leave(enum shim_left what, size_t len);
/* Count a large call that is not taken; makes no system call. */
void shim_decline(enum shim_why why, size_t len);
/* Will there be a report? */
bool shim_tells(void);
/*
 * register_calls.c: memory is about to be registered by ioctl(), by io_uring_register(),
 * or by a function that pins this range.
 * @from: as for shim_wants(); NULL: a call that no allocator makes
 */
void shim_register_request(const long *args);
void shim_register_uring(unsigned code, const void *arg, unsigned nr,
			 const void *from);
void shim_register_range(const void *addr, size_t len, bool writes,
			 const void *from);
/* policy_calls.c, mlock_calls.c: a system call on memory policy, or one that locks memory,
 * is about to be made. */
void shim_policy_call(long number, const long *args);
void shim_lock_call(long number, const long *args);

/*
 * run_operation.c.  Return: true if all is done; otherwise make the plain call, which
 * decides.  These functions preserve errno.
 */
bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags);
bool shim_discard(void *addr, size_t len, unsigned flags);
/* madvise_calls.c: does the advice discard?  @flags: set to the operation's */
bool shim_is_discard(int advice, unsigned *flags);
bool shim_lock(enum shim_call call, void *addr, size_t len);
/* locked_neighbours.c: before shim_lock(), of whole pages */
void shim_lock_beside(const void *base, size_t len);
bool shim_unmap(void *addr, size_t len);
/* Is the calling thread inside one of these? */
bool shim_busy(void);
void shim_set_busy(bool value);
/* Is any thread inside one of these? */
bool shim_working(void);
/* In a child of fork(), which has only the calling thread. */
void shim_forget_working(void);
/*
 * main_thread.c, to end the shim's threads with the main one.
 *
 * shim_main_init: by the main thread, when the shim is loaded
 * shim_main_has_ended: then a helper that idles shall end at once
 * shim_thread_ends: the calling thread is about to end without the C library
 * shim_main_forked: in the child of a fork, the calling thread is the main one
 */
void shim_main_init(void);
bool shim_main_has_ended(void);
/* The same, as the kernel sees it: it may have ended without the C library. */
bool shim_main_is_gone(void);
/*
 * shim_main_wait - sleep until shim_main_wake(), until the main thread is gone, or for @wait
 * @seen: @news must have that value, or this returns at once; change it before waking
 *
 * By one thread.
 */
void shim_main_wait(const _Atomic uint32_t *news, uint32_t seen,
		    const struct timespec *wait);
void shim_main_wake(void);
/* Is this the futex of the robust mutex that the main thread holds? */
bool shim_is_lifelong_futex(const void *addr);
void shim_thread_ends(void);
void shim_main_forked(void);
/* End the helpers, unless this thread is inside one of these. */
void shim_trim(void);
/* The most threads that the library allows a job now; allocates. */
unsigned shim_limit(void);
/* The same, but without limits that depend on what else runs at this moment. */
unsigned shim_lasting_limit(void);

/* Memory that --prefault makes. */
enum shim_made_kind {
	MADE_PRIVATE,
	MADE_SHARED, /* with other processes, or possibly */
	MADE_SEGMENT, /* of System V, which is shared as well */
};

/*
 * prefault.c, which does nothing without --prefault.
 *
 * @pool: the pages come from the reserved pool of huge pages, which has enough of them
 * shim_prefault_stop: [addr, addr + len) is about to be changed
 * @again: the change is only advice, so the job begins again
 * shim_prefault_stop_segment: the segment at @addr is about to be detached
 * shim_prefault_pending: may the page at @addr still be made?
 * shim_prefault_hurry: before a call that waits for the lock of the process's mappings:
 *	lend this thread's priority to helpers that hold it, if only until their call ends
 */
void shim_prefault(void *base, size_t len, bool pool, enum shim_made_kind kind,
		   const void *from);
void shim_prefault_mapping(void *base, size_t len, int prot, int flags, int fd,
			   int64_t offset, const void *from);
void shim_prefault_stop(const void *addr, size_t len, bool again);
void shim_prefault_stop_segment(const void *addr);
bool shim_prefault_pending(const void *addr);
void shim_prefault_hurry(void);
void shim_prefault_end(void);
void shim_prefault_forked(void);
/* Bytes of memory that are available; 0 if that is not known. */
size_t shim_available_bytes(void);
/*
 * ahead/, which does nothing if it is turned off.
 *
 * shim_ahead_block: an allocator has returned a block of at least shim_ahead_least_block
 * shim_ahead_mapping: there is a new private mapping of memory
 * shim_ahead_know: there is a new mapping, which shall not be watched
 * shim_ahead_moment: the calling thread holds no lock of an allocator
 * shim_ahead_stop: [addr, addr + len) is about to be changed.  Return: is it private, and
 *	was a part of it watched until now?
 * @join: make it a single mapping, which mremap() needs, by taking back the shim's advice
 * shim_ahead_replaces: a call is about to map at an address that the kernel chooses.
 *	Memory that was there may have been unmapped without the shim.  If true, call
 *	shim_ahead_replaced() with the result
 * shim_ahead_rejoin: mremap() refused [addr, addr + len), perhaps because the shim's
 *	advice made it several mappings.  Return: true if it is worth another try
 * shim_ahead_lift: is there advice against huge pages in [addr, addr + len) that only the
 *	shim has given?  Take it back, or with @lift false give it again
 * shim_ahead_mapped: there is a new mapping
 * @join: it is private memory without a page, at an address that the program chose.  If the
 *	shim has taken back advice beside it, join it with that memory
 * shim_ahead_adjoins: has the shim taken back advice in or beside [addr, addr + len)?
 * shim_ahead_unmapped, shim_ahead_moved: memory is gone, or elsewhere
 * @stays: the old mapping remains
 * shim_ahead_stop_block: a block is about to be freed
 * shim_ahead_remove: memory is about to be given back, or its faults are handled: nothing
 *	more is made of it in any process that shares it
 * shim_ahead_not_inherited: children will not have it (MADV_DONTFORK)
 * shim_ahead_shared: there is a new mapping of memory that is shared with children
 * shim_ahead_fork: the calling thread is about to fork
 * shim_ahead_advised: the program is about to advise huge pages, or none
 * shim_ahead_policy: the calling thread is about to have a memory policy of that mode.  If
 *	the kernel refuses, call shim_ahead_policy_refused()
 * shim_ahead_new_thread: it is about to make a thread, which will have the same policy
 * shim_ahead_lock_on_fault: a range is about to be locked, each page when it is touched
 * shim_ahead_lock_all: mlockall(@flags) is about to be called, or munlockall() if 0.  If the
 *	kernel refuses, call shim_ahead_lock_refused() with the result
 * shim_ahead_tell_now: count what is watched for a report; for any thread, also in a handler
 * shim_ahead_end: end the watcher and its jobs
 */
void shim_ahead_block(void *block, size_t len, const void *from);
void shim_ahead_mapping(void *base, size_t len, const void *from);
void shim_ahead_know(const void *base, size_t len);
void shim_ahead_moment(void);
void shim_ahead_remove(const void *addr, size_t len);
void shim_ahead_not_inherited(const void *addr, size_t len);
void shim_ahead_shared(void *base, size_t len, const void *from);
void shim_ahead_fork(void);
bool shim_ahead_stop(const void *addr, size_t len, bool join);
bool shim_ahead_replaces(void);
void shim_ahead_replaced(const void *addr, size_t len);
bool shim_ahead_rejoin(void *addr, size_t len);
bool shim_ahead_lift(void *addr, size_t len, bool lift);
void shim_ahead_mapped(void *base, size_t len, bool join);
bool shim_ahead_adjoins(const void *addr, size_t len);
void shim_ahead_unmapped(const void *addr, size_t len);
void shim_ahead_moved(const void *old, size_t old_len, const void *to,
		      size_t len, bool stays);
void shim_ahead_stop_block(const void *block, bool join);
void shim_ahead_advised(const void *addr, size_t len, bool huge);
void shim_ahead_policy(int mode);
void shim_ahead_policy_refused(void);
void shim_ahead_new_thread(void);
void shim_ahead_lock_on_fault(const void *addr, size_t len);
bool shim_ahead_lock_all(int flags);
void shim_ahead_lock_refused(bool before);
void shim_ahead_tell_now(void);
void shim_ahead_end(void);
void shim_ahead_forked(void);
bool shim_ahead_running(void);
/* The smallest mapping that is watched; SIZE_MAX: nothing is. */
extern size_t shim_ahead_min_bytes;
/* The smallest block that is reported; 0: any, because noted memory waits to be watched. */
extern _Atomic size_t shim_ahead_least_block;
/* Advise no huge pages. */
extern bool shim_ahead_small;
/* The number of entries in use, some of which the watcher has yet to free; and the
 * addresses between which all watched blocks of allocators lie. */
extern atomic_uint shim_ahead_watched;
extern _Atomic uintptr_t shim_ahead_lowest, shim_ahead_highest;

static inline bool shim_ahead_watches(void)
{
	return atomic_load_explicit(&shim_ahead_watched, memory_order_relaxed);
}

/* ahead/allocation_calls.c: the malloc() that the shim's own calls */
void *shim_allocator(void);

/*
 * prefaulted_pages.c
 *
 * shim_made_add: a range is about to be made.  Return: false if the table is full
 * shim_made_drop: [addr, addr + len) is about to be changed
 * shim_made_untouched: bytes that were made and contain only zeros
 * shim_made_undo: give back made pages that contain only zeros; if @minor, only unmap
 *	pages that are shared, so that they stay in their file
 */
bool shim_made_add(void *base, size_t len, enum shim_made_kind kind);
void shim_made_drop(const void *addr, size_t len);
void shim_made_drop_segment(const void *addr);
void shim_made_forked(void);
size_t shim_made_untouched(void);
void shim_made_undo(uintptr_t start, uintptr_t end, bool minor);
/* shim_config.c: --prefault; --prefault=wait */
extern bool shim_prefaults, shim_prefault_waits;

/* count_present.c: present bytes of a range if there will be a report, else @len */
size_t shim_present_bytes(const void *addr, size_t len);
/* The same; is each page known to be present, if there will be a report? */
bool shim_all_present(const void *addr, size_t len);

/* mlock_calls.c: is this process free of limits on locked memory?  A limit would also
 * count the stacks of helpers. */
bool shim_may_lock_all(void);

/*
 * hold_signals.c: hold back the signals for which the program has a handler.  During the
 * plain call they are held back as well, because it is not interrupted.
 */
struct shim_quiet {
	uint64_t mask[16]; /* a sigset_t */
};
bool shim_has_handler(int sig);
void shim_quiet_begin(struct shim_quiet *quiet);
void shim_quiet_end(const struct shim_quiet *quiet);
/*
 * Until the end of the block no handler runs and the thread cannot be cancelled.  The
 * cancellation state is restored first: a handler may leave as soon as it can run.
 */
#define shim_stay_quiet()                                         \
	struct shim_quiet quiet_before                            \
		__attribute__((cleanup(shim_quiet_end), unused)); \
	shim_quiet_begin(&quiet_before);                          \
	block_cancellation()

/* seccomp_filter.c: does no filter forbid what the library does? */
bool shim_filter_allows(void);
void shim_filter_init(bool inherited_ok);
/*
 * A filter is about to be set.  Return: true if the shim does nothing from now on because
 * of it.  If the kernel then refuses the filter, call shim_filter_refused().
 */
bool shim_filter_seen(bool strict, const void *program);
void shim_filter_refused(void);
/* Has a child of vfork() by this thread set a filter?  The caller may be that child. */
bool shim_filter_in_child(void);

/* Copy from an address that may be invalid.  Return: 0, or the kernel's -errno. */
int shim_copy_in(void *to, const void *from, size_t len);

/* seccomp_bpf.c: what @program (a struct sock_fprog) returns for one system call */
struct seccomp_data;
uint32_t shim_bpf_run(const void *program, const struct seccomp_data *data);

/*
 * exit.c: the program's last handlers have run, or there are none.  May end the
 * process with @status, or return to let the caller do that.
 * @in_order: called by exit(), which also flushes stdio; false: by _exit()
 */
void shim_at_end(int status, bool in_order);
/* The process is about to wait for the end of helpers that are in chunks. */
void shim_raise_working(void);
/* The process made another one that shares its memory. */
void shim_memory_shared(void);

/* exit_discard.c */
struct shim_last {
	size_t bytes; /* that were in the ranges */
	unsigned threads;
	unsigned long
		others_percent; /* what others did, of what the caller did */
};
/*
 * Give back the private memory of the process, by @nr_threads threads.  Afterwards
 * nothing in large mappings may be used, except the caller's stack and static data of
 * this library.  Return: false if nothing was done.
 * @lend_nice: helpers may be lowered, because they can be raised to this nice value;
 *	NULL: they may not
 */
bool shim_last_discard(unsigned nr_threads, const int *lend_nice,
		       struct shim_last *last);

/*
 * process_record.c: what is left of a process that a signal ends, for the watcher
 * of `ktask run --report`.  Without a watcher these do nothing.
 */
struct run_record;
/* @where: the memory of the records, NULL for none */
void shim_record_init(const char *where);
void shim_record_taken(size_t bytes);
void shim_record_left(size_t bytes);
/* The process has reported. */
void shim_record_told(void);
/* The process lives on, and will report again. */
void shim_record_again(void);
/* The report cannot be written.  Return: true if the watcher writes it, or @error. */
bool shim_record_untold(int error);
/* Before posix_spawn(), and after it with the child's id, 0 for none. */
struct run_record *shim_record_spawn(void);
void shim_record_spawned(struct run_record *record, pid_t child);
/* Around fork(): before, and after it in the parent and in the child. */
void shim_record_fork(void);
void shim_record_parent(void);
void shim_record_child(void);
/* The thread's last fork() made no child. */
void shim_record_fork_failed(void);
/* unshare() or setns() was called: children have ids of another namespace. */
void shim_record_leave_namespace(void);
/* The process, or a child of vfork(), executes @name; @told: its line is written. */
struct run_record *shim_record_exec(const char *name, char *const envp[],
				    bool told);
void shim_record_exec_failed(struct run_record *record);

/* counts.c: a call that was taken */
struct shim_work {
	size_t bytes; /* of memory that was present, or made present */
	uint64_t wall_ns, cpu_ns;
	unsigned threads;
	bool undivided; /* it was done as one chunk */
	bool present; /* all of the memory was, before */
	bool done; /* and not left to the plain call after all */
};

void shim_count(enum shim_call call, const struct shim_work *work);

/* A mapping that was watched for its frontiers, in bytes. */
struct shim_watched {
	size_t bytes;
	size_t first; /* that may be made before a touch */
	size_t touched; /* in order */
	size_t scattered; /* present otherwise, when last counted */
	size_t made, wasted;
	size_t advised; /* huge pages for the program to make */
	unsigned moving; /* frontiers */
	bool short_of_memory;
	bool unhelped; /* no helper got a CPU */
};

void shim_count_watched(const struct shim_watched *watched);
/* Memory was made ahead, which took so much CPU time. */
void shim_count_ahead(size_t bytes, uint64_t cpu_ns);

bool shim_counted(void);

/* next_functions.c: in the order of the names there */
enum shim_next {
	NEXT_MALLOC,
	NEXT_CALLOC,
	NEXT_REALLOC,
	NEXT_ALIGNED_ALLOC,
	NEXT_MEMALIGN,
	NEXT_FREE,
	NEXT_POSIX_MEMALIGN,
	NEXT_VALLOC,
	NEXT_PVALLOC,
	NEXT_PTHREAD_CREATE,
	NEXT_EXECVE,
	NEXT_EXECV,
	NEXT_EXECVP,
	NEXT_EXECVPE,
	NEXT_FEXECVE,
	NEXT_EXECVEAT,
	NEXT_POSIX_SPAWN,
	NEXT_POSIX_SPAWNP,
	NEXT_FORK,
	NEXT_CLONE,
	NEXT_QUICK_EXIT,
	NEXT_SBRK,
	NEXT_BRK,
	SHIM_NR_NEXT
};

/* Of the next object in the loader's order; NULL: none has it. */
void *shim_next_function(enum shim_next which);

/* report.c */
void shim_say_would(enum shim_call call, size_t len);
void shim_say_left(enum shim_left what, size_t len);
void shim_report_init(bool dry);
/* Forget what was counted so far; later calls are counted and reported anew. */
void shim_report_again(void);
/* The process lives on, but cannot report later, for the reason @then. */
void shim_report_now(const char *then);
/* Process @pid is or becomes @name, which cannot report itself, for the reason
 * @why.  Changes nothing that a child of vfork() shares with its parent. */
void shim_report_obstacle(const char *name, pid_t pid, const char *why);

/* exec.c: why the shim can take over nothing in @program (a path, or a name to be
 * looked up in PATH); NULL: it can, or there will be no report */
const char *shim_exec_obstacle(const char *program, char *const envp[]);
/* Find out for the report whether a job may have helpers at all; allocates. */
void shim_report_limit(void);
/* Report all that was counted, once.  @more: shim_report_last() may follow. */
void shim_report(bool more);
/* Report the end of the process; uses no allocated memory. */
void shim_report_last(void);

#endif /* PRELOAD_SHIM_H */
