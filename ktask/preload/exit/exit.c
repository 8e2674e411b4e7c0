/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The end of the process: first its memory is given back in parallel, if nobody can
 * notice.  That is the case when
 *
 *  - nothing of the program will run any more: all handlers and destructors of exit()
 *    have run.  The shim's handler was registered before the program began, so it runs
 *    last.  It flushes the streams of stdio, which exit() would do next;
 *  - no other thread runs, and no process shares the memory;
 *  - nobody traces the process, since a tracer might read its memory;
 *  - nobody handles its faults (userfaultfd): the handler would be told of each range
 *    that is given back, and would be waited for;
 *  - no robust mutex is held but the shim's: the kernel reads the list of them from that
 *    memory.
 *
 * A signal handler may call _exit(), and the library must not run in a handler.  So
 * _exit() is taken only in a program without handlers.
 *
 * Behaves badly: a process that reads this one's memory from outside
 * (process_vm_readv) finds zeroes for the last milliseconds.  A library whose
 * constructor called on_exit() before ours is not called back.
 *
 * Locking: there is no lock.  memory_shared is atomic; any thread sets it, for ever.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"
#include "user/job_waits.h"
#include "util/capability.h"
#include "util/clock.h"
#include "util/directory_names.h"
#include "util/file.h"
#include "util/raw_syscalls.h"
#include "util/running_threads.h"
#include "util/sched_attr.h"
#include "util/scoped.h"

/* The least memory that must be present, in units of shim_min_bytes.  With less, a thread
 * costs as much as it saves. */
#define LEAST_PRESENT 4

static atomic_bool memory_shared;

void shim_memory_shared(void)
{
	atomic_store(&memory_shared, true);
}

static bool has_handlers(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (shim_has_handler(sig))
			return true;
	return false;
}

#ifdef SHIM_RAW

struct state {
	uint64_t tracer, threads, present_kib;
};

/* A field that cannot be read counts as an obstacle. */
static bool read_state(struct state *state)
{
	struct file_lines lines;
	const char *line;

	*state = (struct state){ .tracer = 1 };
	if (!file_lines_open(&lines, "/proc/self/status"))
		return false;
	while ((line = file_lines_next(&lines))) {
		line_value(line, "TracerPid", &state->tracer);
		line_value(line, "Threads", &state->threads);
		line_value(line, "VmRSS", &state->present_kib);
	}
	file_lines_end(&lines);
	return true;
}

/* A single system call sorts out programs that never had much memory. */
static bool was_large(void)
{
	struct rusage usage;

	return !getrusage(RUSAGE_SELF, &usage) &&
	       (size_t)usage.ru_maxrss / LEAST_PRESENT >= shim_min_bytes / 1024;
}

static bool holds_robust_mutex(void)
{
	struct robust_list_head *head = NULL;
	struct robust_list *entry;
	size_t len;

	if (syscall(SYS_get_robust_list, 0, &head, &len))
		return true;
	if (!head)
		return false;
	/* The last one comes first, and the shim's came before all others. */
	entry = head->list.next;
	if (shim_is_lifelong_futex((char *)entry + head->futex_offset))
		entry = entry->next;
	return entry != &head->list || head->list_op_pending;
}

/* Search all descriptors: a userfaultfd may come from a device or another process. */
static bool has_userfaultfd(void)
{
	static const char name[] = "anon_inode:[userfaultfd]";
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = !fds;

	while (!found && (entry = readdir(fds))) {
		char path[32], target[sizeof(name)];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%.10s",
			 entry->d_name);
		len = readlink(path, target, sizeof(target));
		found = len == sizeof(name) - 1 &&
			!memcmp(target, name, sizeof(name) - 1);
	}
	if (fds)
		closedir(fds);
	return found;
}

/* May raise threads that are SCHED_IDLE.  @nice: set to the caller's nice value. */
static bool may_raise(int *nice)
{
	struct sched_attr_v0 attr;

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
	    attr.policy != SCHED_OTHER)
		return false;
	*nice = attr.nice;
	return has_capability(CAP_SYS_NICE);
}

static bool may_lend(void)
{
	int nice;

	return may_raise(&nice);
}

/*
 * Threads must not compete with other programs, as in the library.  So if they cannot be
 * SCHED_IDLE (!@lend), only as many are made as CPUs idle.  SCHED_IDLE threads do not
 * compete, but on an overloaded machine the process would end only after they got a CPU.
 * On such a machine memory is given back only if the option `--ops exit` names it, for
 * tests.
 */
static unsigned nr_threads(bool lend)
{
	struct machine_load load;
	unsigned most, allowed;
	bool named = shim_named(SHIM_EXIT);

	if (!machine_load_read(&load) ||
	    (load.running > load.nr_cpus && !named))
		return 1;
	allowed = shim_limit();
	most = lend || named ? load.nr_cpus : load.nr_cpus - load.running + 1;
	most = most < 8 ? most : 8;
	return allowed < most ? allowed : most;
}

/* Helpers are found by their name.  A program's own threads of that name come to no
 * harm. */
static bool is_helper(const char *tid)
{
	char path[48], name[16];

	snprintf(path, sizeof(path), "/proc/self/task/%.10s/comm", tid);
	return file_text(path, name, sizeof(name)) > 0 &&
	       !strcmp(name, "ktask\n");
}

static void raise_thread(const char *name, int nice)
{
	struct sched_attr_v0 attr = { .size = sizeof(attr),
				      .policy = SCHED_OTHER,
				      .nice = nice };
	long tid = strtol(name, NULL, 10);

	if (tid > 0 && is_helper(name))
		syscall(SYS_sched_setattr, tid, &attr, 0);
}

/*
 * Helpers at work are SCHED_IDLE and take long to end on a busy machine.  The process
 * waits for them, so they get its own nice value.
 */
static void raise_helpers(int nice)
{
	struct directory_names tids;
	const char *tid;

	directory_names_begin(&tids, "/proc/self/task");
	while ((tid = directory_names_next(&tids)))
		raise_thread(tid, nice);
	directory_names_end(&tids);
}

/* Another thread may be inside a call that is taken. */
void shim_raise_working(void)
{
	keep_errno();
	int nice;

	if (!shim_working() && !shim_ahead_running())
		return;
	/* execve() is no point of cancellation. */
	block_cancellation();
	if (!shim_filter_in_child() && shim_filter_allows() && shim_is_ours() &&
	    may_raise(&nice)) {
		job_keep_raised(true);
		raise_helpers(nice);
	}
}

static bool may_be_taken(bool in_order, size_t *bytes)
{
	struct state state;

	if (!was_large() || !shim_wants(SHIM_EXIT, SIZE_MAX, NULL) ||
	    !read_state(&state) || !state.present_kib)
		return false;
	*bytes = (size_t)state.present_kib * 1024;
	if (*bytes / LEAST_PRESENT < shim_min_bytes)
		return false;
	if (state.tracer || atomic_load(&memory_shared) ||
	    holds_robust_mutex()) {
		shim_leave(LEFT_EXIT_WATCHED, *bytes);
		return false;
	}
	if (!in_order && has_handlers()) {
		shim_leave(LEFT_EXIT_HANDLERS, *bytes);
		return false;
	}
	/* From here on memory may be allocated. */
	if (has_userfaultfd()) {
		shim_leave(LEFT_EXIT_WATCHED, *bytes);
		return false;
	}
	if (nr_threads(may_lend()) < 2) {
		shim_leave(LEFT_EXIT_BUSY, *bytes);
		return false;
	}
	if (state.threads == 1)
		return true;
	shim_trim();
	if (read_state(&state) && state.threads == 1)
		return true;
	shim_leave(LEFT_EXIT_THREADS, *bytes);
	return false;
}

static void block_signals(void)
{
	static const unsigned long all = ~0ul;
	const long args[6] = { SIG_SETMASK, (long)&all, 0, sizeof(all) };

	raw_syscall(SYS_rt_sigprocmask, args);
}

/* From here on only what exit_discard.c allows, and counters of this library. */
static void discard_at_end(int status, unsigned threads, const int *lend_nice,
			   size_t present)
{
	struct shim_last last = { 0 };
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), wall_ns;

	block_signals();
	if (!shim_last_discard(threads, lend_nice, &last))
		return;
	wall_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	shim_count(
		SHIM_EXIT,
		&(struct shim_work){
			.bytes = last.bytes < present ? last.bytes : present,
			.wall_ns = wall_ns,
			.cpu_ns = wall_ns + wall_ns / 100 * last.others_percent,
			.threads = last.threads,
			.done = true,
		});
	shim_report_last();
	for (;;)
		real_exit_group(status);
}

static void take_exit(int status, bool in_order)
{
	size_t bytes = 0;
	unsigned threads;
	bool lend;
	int nice;

	if (!may_be_taken(in_order, &bytes) || !shim_takes(SHIM_EXIT, bytes))
		return;
	lend = may_raise(&nice);
	threads = nr_threads(lend);
	if (threads < 2) {
		shim_leave(LEFT_EXIT_BUSY, bytes);
		return;
	}
	/* exit() does that next; doing it twice does no harm. */
	if (in_order)
		fcloseall();
	shim_report(true);
	discard_at_end(status, threads, lend ? &nice : NULL, bytes);
}

#else

static void take_exit(int status, bool in_order)
{
}

void shim_raise_working(void)
{
}

#endif

/* A child of a bare clone() or of _Fork() has what its parent counted, and the parent's
 * record.  By _exit() a child of vfork() ends, which is not told. */
static void report_unknown_child(void)
{
	if (shim_tells() && shim_owner() && !shim_filter_in_child() &&
	    shim_filter_allows() && !shim_is_ours())
		shim_report_obstacle(shim_program_name(), getpid(),
				     "it is a child by clone() or _Fork(), of "
				     "which the library is not told");
}

void shim_at_end(int status, bool in_order)
{
	/* A child of vfork() must not call exit(). */
	if (!in_order && shim_filter_in_child())
		return;
	block_cancellation();
	if (in_order)
		report_unknown_child();
	if (shim_filter_allows() && shim_is_ours() && !shim_busy()) {
		shim_raise_working();
		/* _exit() may come from a handler that interrupted the allocator. */
		if (shim_prefaults && (in_order || !has_handlers()))
			shim_prefault_end();
		if (in_order || !has_handlers())
			shim_ahead_end();
		if (in_order)
			shim_report_limit();
		take_exit(status, in_order);
		shim_report(false);
	}
}

static void on_last_handler(int status, void *unused)
{
	shim_at_end(status, true);
}

/* quick_exit() tells its handlers no status. */
static int quick_status;

static void on_last_quick_handler(void)
{
	shim_at_end(quick_status, false);
}

static void (*next_quick_exit)(int status);
static int (*next_clone)(int (*func)(void *), void *stack, int flags, void *arg,
			 ...);

/* Other libraries' constructors may come first, and call. */
static void find_next(void)
{
	next_quick_exit = (void (*)(int))shim_next_function(NEXT_QUICK_EXIT);
	next_clone = (int (*)(int (*)(void *), void *, int, void *,
			      ...))shim_next_function(NEXT_CLONE);
}

/* Before any of the program's, so that these run behind all of them. */
static void __attribute__((constructor)) exit_init(void)
{
	find_next();
	on_exit(on_last_handler, NULL);
	at_quick_exit(on_last_quick_handler);
}

KTASK_API void quick_exit(int status)
{
	quick_status = status;
	if (!next_quick_exit)
		find_next();
	if (next_quick_exit)
		next_quick_exit(status);
	_exit(status);
}

static void __attribute__((noreturn)) exit_group(int status)
{
	shim_at_end(status, false);
	for (;;)
		real_exit_group(status);
}

KTASK_API void _exit(int status)
{
	exit_group(status);
}

KTASK_API void _Exit(int status)
{
	exit_group(status);
}

/* Processes that share memory and are no threads: libc knows none. */
KTASK_API int clone(int (*func)(void *), void *stack, int flags, void *arg, ...)
{
	void *rest[3];
	va_list list;

	va_start(list, arg);
	for (int i = 0; i < 3; i++)
		rest[i] = va_arg(list, void *);
	va_end(list);
	if (flags & CLONE_VM && !(flags & (CLONE_THREAD | CLONE_VFORK)))
		shim_memory_shared();
	if (!next_clone)
		find_next();
	if (next_clone)
		return next_clone(func, stack, flags, arg, rest[0], rest[1],
				  rest[2]);
	errno = ENOSYS;
	return -1;
}
