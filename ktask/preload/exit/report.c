/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report.  KTASK_RUN_REPORT=1 writes it to stderr; any other value is a file to
 * append to.  The first line of a process says what was taken over.  Then comes a line
 * for each kind of call that was, and one for each reason for which calls were not.
 * With KTASK_RUN_OPS=dry there is a line for each call that would be taken over, and the
 * report says what would have been.
 *
 * "Saved" is the CPU time of all threads less the time that passed.  That is an upper
 * limit, because threads slow each other down.
 *
 * A process reports when it ends or becomes another program, and before it sets a
 * system call filter that might keep it from reporting later.  For a process that a
 * signal ends, the watcher of `ktask run` writes a line from its record
 * (process_record.c).
 *
 * Locking: there is no lock.  Of several threads that end the process, the one that sets
 * was_reported first reports.  The rest is written when the shim is loaded, or by it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counts.h"
#include "util/file.h"
#include "util/report_line.h"
#include "util/scoped.h"

/* A process with this many times shim_min_bytes had much memory. */
#define PEAK_TIMES 4

static const struct {
	const char *name, *why;
} left_calls[SHIM_NR_LEFT] = {
	[LEFT_MUNLOCK] = { "munlock",
			   "it holds the lock of the address space" },
	[LEFT_COLLAPSE] = { "collapse",
			    "two threads are slower, for one another's lock" },
	[LEFT_WILLNEED] = { "willneed", "it only starts the reading" },
	[LEFT_REMOVE] = { "remove", "it holds the lock of the file" },
	[LEFT_PAGEOUT] = { "pageout", "two threads are slower" },
	[LEFT_FALLOCATE] = { "fallocate", "it holds the lock of the file" },
	[LEFT_SHMAT] = { "shmat", "it makes no page" },
	[LEFT_MBIND] = { "mbind", "two threads gain nothing where it moves" },
	[LEFT_MOVE_PAGES] = { "move_pages",
			      "two threads gain nothing, and it stops where a page stays" },
	[LEFT_PROCESS_MADVISE] = { "process_madvise",
				   "it is about another process, or no discard" },
	[LEFT_REGISTER] = { "register",
			    "not all of it is memory that may be made present" },
	[LEFT_REGISTER_PRESENT] = { "register", "it is present" },
	[LEFT_EXIT_THREADS] = { "exit", "other threads run" },
	[LEFT_EXIT_WATCHED] = { "exit", "others may look at the memory" },
	[LEFT_EXIT_HANDLERS] = { "exit", "a signal handler may have called" },
	[LEFT_EXIT_BUSY] = { "exit", "no other CPU is idle, or may be used" },
};

/* Behind "left N calls to the kernel:". */
static const char *const why_texts[SHIM_NR_WHY] = {
	[WHY_OPS] = "not named by --ops",
	[WHY_EARLY] = "made before the shim was ready",
	[WHY_ALLOCATOR] = "made by an allocator other than the C library's",
	[WHY_CHILD] = "made by a child that shares the memory (vfork)",
	[WHY_FILTER] =
		"behind a system call filter (seccomp) that does not let the library work",
	[WHY_WATCHED] = "the program handles page faults itself (userfaultfd)",
	[WHY_UNASKED] =
		"memory was mapped, its pages not asked for (--prefault makes them)",
	[WHY_MAPPING] = "mapped in a way that the shim does not take over",
	[WHY_REFUSED] = "it refused the mapping",
	[WHY_MEMORY] = "more than --prefault may take of the available memory",
	[WHY_UNTOUCHED] = "what --prefault made before is untouched",
	[WHY_AHEAD_HELPERS] =
		"nothing is made ahead with one CPU, or where no helper is allowed (ktask topo)",
	[WHY_AHEAD_LIMITS] =
		"nothing is made ahead with a limit on memory (ulimit -v, -d; overcommit 2) or processes (-u, pids.max)",
	[WHY_AHEAD_POLICY] =
		"nothing is made ahead with a memory policy or a real-time priority",
	[WHY_AHEAD_LOCKED] =
		"nothing is made ahead where each page is locked when it is touched",
	[WHY_AHEAD_MEMORY] =
		"nothing is made ahead where less memory is left than the mapping has, and 32 MiB",
	[WHY_AHEAD_TABLE] =
		"nothing is made ahead of more than 128 large mappings at once",
	[WHY_AHEAD_MAIN] =
		"nothing is made ahead once the main thread has ended",
	[WHY_AHEAD_PROC] = "nothing is made ahead where /proc cannot be read",
	[WHY_AHEAD_KERNEL] = "nothing is made ahead before Linux 5.14",
	[WHY_CONFIG] = "nothing is made ahead, by /etc/ktask.conf",
	[WHY_POLICY] =
		"the thread has a memory policy, which helpers do not follow",
};

/* Most threads of a job; 0: not known. */
static unsigned thread_limit;
static bool dry_run;
static atomic_flag was_reported = ATOMIC_FLAG_INIT;
/* Opened for the report, and kept for the line of shim_report_last(). */
static int report_fd = -1;

/* A second descriptor for stderr: many programs close theirs in atexit(). */
static int stderr_copy = -1;
static struct stat stderr_stat;

/* Also of a dry run, unless its report goes elsewhere. */
static bool to_stderr(void)
{
	return shim_report_target() ? !strcmp(shim_report_target(), "1")
				    : dry_run;
}

bool shim_tells(void)
{
	return dry_run || shim_report_target();
}

void shim_report_init(bool dry)
{
	keep_errno();

	dry_run = dry;
	if (!shim_tells())
		return;
	/* High, so that programs find their usual numbers free. */
	if (dry || to_stderr())
		stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
	if (stderr_copy < 0)
		stderr_copy = STDERR_FILENO;
	if (fstat(stderr_copy, &stderr_stat))
		stderr_copy = -1;
}

/* The descriptor may be a file of the program by now. */
static bool is_stderr(int fd)
{
	struct stat now;

	return fd >= 0 && !fstat(fd, &now) &&
	       now.st_dev == stderr_stat.st_dev &&
	       now.st_ino == stderr_stat.st_ino;
}

/* Many programs close all descriptors above stderr, the copy too. */
static int stderr_fd(void)
{
	if (is_stderr(stderr_copy))
		return stderr_copy;
	return stderr_copy >= 0 && is_stderr(STDERR_FILENO) ? STDERR_FILENO
							    : -1;
}

/* It is no failure if nobody reads a pipe, or not fast enough: see ktask-run(1). */
static bool is_failure(int error)
{
	return error && error != -EPIPE && error != -ENXIO && error != -EAGAIN;
}

/* Once in a process. */
static void complain_once(int error)
{
	static atomic_flag complained = ATOMIC_FLAG_INIT;
	struct report_line line = { 0 };
	int fd = stderr_fd();

	if (!is_failure(error) || to_stderr() || fd < 0 ||
	    atomic_flag_test_and_set(&complained))
		return;
	report_append_failure(&line, shim_report_target(), -error);
	report_write(fd, &line, shim_program_name(), getpid());
}

/* The watcher may have the rights that this process lacks. */
static void give_up(int error)
{
	if (is_failure(error) && !shim_record_untold(-error))
		complain_once(error);
}

/* ---- one line ---- */

static void append_seconds(struct report_line *line, const atomic_ullong *ns)
{
	unsigned long long value = atomic_load(ns);

	report_append(line, "%llu.%06llu s", value / 1000000000,
		      value / 1000 % 1000000);
}

static void end_line(int fd, struct report_line *line)
{
	give_up(report_write(fd, line, shim_program_name(), getpid()));
}

/* ---- a kind of call ---- */

/* There was nothing to give back. */
static bool is_of_absent_memory(enum shim_call call,
				const struct shim_taken *taken)
{
	return (call == SHIM_MUNMAP || call == SHIM_MADVISE) &&
	       !atomic_load(&taken->bytes) && !atomic_load(&taken->plain);
}

/* Less than a microsecond would be told as none. */
static void append_threads(struct report_line *line, enum shim_call call,
			   const struct shim_taken *taken)
{
	unsigned threads = atomic_load(&taken->threads);

	if (is_of_absent_memory(call, taken)) {
		report_append(line, "no page of it was present");
	} else if (threads > 1 && atomic_load(&taken->saved_ns) >= 1000) {
		report_append(line, "at most ");
		append_seconds(line, &taken->saved_ns);
		report_append(line, " saved, %u threads", threads);
	} else if (atomic_load(&taken->present) == atomic_load(&taken->calls)) {
		report_append(line, "all of it was present");
	} else if (threads > 1) {
		report_append(line, "no time saved: %u threads took turns",
			      threads);
	} else if (atomic_load(&taken->plain) == atomic_load(&taken->calls)) {
		report_append(line, "refused");
	} else if (thread_limit == 1) {
		report_append(line,
			      "1 thread: no more are allowed (ktask topo)");
	} else if (atomic_load(&taken->undivided) ==
		   atomic_load(&taken->calls)) {
		report_append(line, "1 thread: too little to divide%s",
			      thread_limit
				      ? ""
				      : ", or no more allowed (ktask topo)");
	} else {
		report_append(line, "1 thread: no helper got a CPU in time");
	}
}

/* Helpers work while the program goes on: no time passes for it. */
static void append_ahead(struct report_line *line,
			 const struct shim_taken *taken)
{
	if (!atomic_load(&taken->bytes)) {
		report_append(line,
			      "made present ahead: no helper got a CPU before "
			      "the program used or unmapped the memory");
		return;
	}
	report_append(line, "made present ahead by helpers, in ");
	append_seconds(line, &taken->cpu_ns);
	report_append(line, " of CPU time");
}

static void write_taken(int fd, enum shim_call call)
{
	const struct shim_taken *taken = &shim_counts.taken[call];
	unsigned long long calls = atomic_load(&taken->calls),
			   plain = atomic_load(&taken->plain);
	struct report_line line = { 0 };

	report_append(&line, "ktask: %s: %llu %s, %llu bytes",
		      shim_call_names[call], calls,
		      calls == 1 ? "call" : "calls",
		      atomic_load(&taken->bytes));
	if (call == SHIM_PREFAULT && !shim_prefault_waits) {
		report_append(&line, " ");
		append_ahead(&line, taken);
	} else {
		report_append(&line, ", ");
		append_seconds(&line, &taken->ns);
		report_append(&line, ", ");
		append_threads(&line, call, taken);
	}
	if (plain)
		report_append(&line, ", %llu left to the kernel", plain);
	end_line(fd, &line);
}

static void write_left(int fd, enum shim_left what)
{
	const struct shim_sum *sum = &shim_counts.left[what];
	struct report_line line = { 0 };

	report_append(&line, "ktask: %s: ", left_calls[what].name);
	report_append_sum(&line, atomic_load(&sum->calls),
			  atomic_load(&sum->bytes));
	report_append(&line, " left to the kernel, because %s",
		      left_calls[what].why);
	end_line(fd, &line);
}

/* ---- the process ---- */

static void write_declined(int fd, enum shim_why why)
{
	const struct shim_sum *sum = &shim_counts.declined[why];
	struct report_line line = { 0 };

	report_append(&line, "ktask: run: left ");
	report_append_sum(&line, atomic_load(&sum->calls),
			  atomic_load(&sum->bytes));
	report_append(&line, " to the kernel: %s", why_texts[why]);
	end_line(fd, &line);
}

/* The most that the process had mapped and touched; not known behind a filter. */
static void append_memory(struct report_line *line)
{
	uint64_t mapped_kib, touched_kib;

	if (!file_value("/proc/self/status", "VmPeak", &mapped_kib) ||
	    !file_value("/proc/self/status", "VmHWM", &touched_kib))
		return;
	report_append(line, "; it had ");
	report_append_size(line, mapped_kib * 1024);
	report_append(line, " mapped, ");
	report_append_size(line, touched_kib * 1024);
	report_append(line, " touched");
}

/* ru_maxrss is the maximum over all programs that the process has executed. */
static bool had_much(void)
{
	struct rusage usage;
	uint64_t kib;

	return !getrusage(RUSAGE_SELF, &usage) &&
	       (size_t)usage.ru_maxrss / PEAK_TIMES >= shim_min_bytes / 1024 &&
	       file_value("/proc/self/status", "VmHWM", &kib) &&
	       kib / PEAK_TIMES >= shim_min_bytes / 1024;
}

/* No call was large enough. */
static void append_smallness(struct report_line *line)
{
	unsigned long long largest = atomic_load(&shim_largest_small);

	report_append(line,
		      ": no call that makes or gives back memory was on ");
	report_append_size(line, shim_min_bytes);
	report_append(line, " or more");
	if (largest) {
		report_append(line, " (the largest: ");
		report_append_size(line, largest);
		report_append(line, ")");
	}
	if (had_much())
		report_append(
			line,
			shim_ahead_min_bytes < SIZE_MAX
				? "; its memory came by little at a time, so "
				  "that nothing lay ahead"
				: "; its memory came by little at a time, or from "
				  "malloc, of which nothing is made ahead here "
				  "(--ahead=off, --prefault)");
}

struct totals {
	struct report_totals sum;
	enum shim_why why; /* the only reason, if there is one */
};

static void add_left(struct totals *totals, const struct shim_sum *sum)
{
	totals->sum.left_calls += atomic_load(&sum->calls);
	totals->sum.left_bytes += atomic_load(&sum->bytes);
}

static struct totals add_totals(void)
{
	struct totals totals = { .why = SHIM_NR_WHY };

	totals.sum.calls = atomic_load(&shim_counts.would.calls);
	totals.sum.bytes = atomic_load(&shim_counts.would.bytes);
	for (int i = 0; i < SHIM_NR_CALLS; i++) {
		totals.sum.calls += atomic_load(&shim_counts.taken[i].calls);
		totals.sum.bytes += atomic_load(&shim_counts.taken[i].bytes);
	}
	totals.sum.calls += atomic_load(&shim_counts.ahead.windows);
	totals.sum.bytes += atomic_load(&shim_counts.ahead.made);
	for (enum shim_why i = 0; i < SHIM_NR_WHY; i++) {
		bool first = !totals.sum.left_calls;

		if (!atomic_load(&shim_counts.declined[i].calls))
			continue;
		add_left(&totals, &shim_counts.declined[i]);
		totals.why = first ? i : SHIM_NR_WHY;
	}
	for (int i = 0; i < SHIM_NR_LEFT; i++) {
		if (!atomic_load(&shim_counts.left[i].calls))
			continue;
		add_left(&totals, &shim_counts.left[i]);
		totals.why = SHIM_NR_WHY;
	}
	return totals;
}

static void append_taken(struct report_line *line, const struct totals *totals,
			 bool more)
{
	report_append(line, "ktask: run: %s over ",
		      dry_run ? "would take" : "took");
	if (totals->sum.calls)
		report_append_sum(line, totals->sum.calls, totals->sum.bytes);
	if (more)
		report_append(line, "%sthe end",
			      totals->sum.calls ? ", and " : "");
	if (totals->sum.calls || more)
		return;
	report_append(line, "nothing");
	if (!totals->sum.left_calls &&
	    !atomic_load(&shim_counts.ahead.mappings))
		append_smallness(line);
}

/* @more: the end of the process will be taken over as well. */
static void write_summary(int fd, const struct totals *totals, bool more,
			  const char *then)
{
	struct report_line line = { 0 };

	append_taken(&line, totals, more);
	report_append_left(&line, &totals->sum);
	if (totals->why != SHIM_NR_WHY)
		report_append(&line, ": %s", why_texts[totals->why]);
	append_memory(&line);
	if (then)
		report_append(&line, "; then %s", then);
	end_line(fd, &line);
}

static void write_report(int fd, bool more, const char *then)
{
	struct totals totals = add_totals();

	write_summary(fd, &totals, more, then);
	for (int call = 0; call < SHIM_NR_CALLS; call++)
		if (atomic_load(&shim_counts.taken[call].calls))
			write_taken(fd, call);
	if (atomic_load(&shim_counts.ahead.mappings)) {
		struct report_line line = { 0 };

		shim_ahead_tell(&line, dry_run);
		end_line(fd, &line);
	}
	for (int what = 0; what < SHIM_NR_LEFT; what++)
		if (atomic_load(&shim_counts.left[what].calls))
			write_left(fd, what);
	/* The only reason stands in the first line. */
	for (enum shim_why why = 0; why < SHIM_NR_WHY; why++)
		if (why != totals.why &&
		    atomic_load(&shim_counts.declined[why].calls))
			write_declined(fd, why);
}

void shim_report_limit(void)
{
	for (int i = 0;
	     shim_report_target() && !thread_limit && i < SHIM_NR_CALLS; i++)
		if (atomic_load(&shim_counts.taken[i].calls) &&
		    atomic_load(&shim_counts.taken[i].threads) <= 1)
			thread_limit = shim_limit();
}

/* A pipe that nobody reads, or not fast enough, is not waited for. */
static int open_report(void)
{
	return to_stderr() ? stderr_fd()
			   : open(shim_report_target(),
				  O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK |
					  O_CLOEXEC,
				  0666);
}

static void report_once(bool more, const char *then)
{
	if (!shim_tells() || !shim_filter_allows() ||
	    atomic_flag_test_and_set(&was_reported))
		return;
	report_fd = open_report();
	if (report_fd >= 0)
		write_report(report_fd, more, then);
	else
		give_up(-errno);
	shim_record_told();
}

void shim_report(bool more)
{
	report_once(more, NULL);
}

/* Print integers only: other data that printf() uses may be gone. */
void shim_report_last(void)
{
	if (shim_report_target() && report_fd >= 0)
		write_taken(report_fd, SHIM_EXIT);
}

void shim_report_now(const char *then)
{
	keep_errno();

	block_cancellation();
	report_once(false, then);
	if (report_fd >= 0 && !to_stderr())
		close(report_fd);
	report_fd = -1;
}

void shim_report_obstacle(const char *name, pid_t pid, const char *why)
{
	keep_errno();
	int fd, error;
	struct report_line line = { 0 };

	block_cancellation();
	fd = open_report();
	error = fd < 0 ? -errno : 0;
	report_append(&line, "ktask: run: nothing can be taken over: %s", why);
	if (fd >= 0)
		error = report_write(fd, &line, basename(name), pid);
	complain_once(error);
	if (fd >= 0 && !to_stderr())
		close(fd);
}

void shim_report_again(void)
{
	shim_counts_reset();
	atomic_flag_clear(&was_reported);
}

/* ---- as it happens ---- */

static void print_report(const char *would, const char *name, size_t bytes,
			 const char *end)
{
	keep_errno();
	struct report_line line = { 0 };

	/* None of the calls that are told of is a point of cancellation. */
	block_cancellation();
	report_append(&line, "ktask: would %s %s of ", would, name);
	if (bytes == SIZE_MAX)
		report_append(&line, "all memory");
	else
		report_append_size(&line, bytes);
	report_append(&line, "%s", end);
	if (stderr_fd() >= 0)
		report_write(stderr_fd(), &line, shim_program_name(), getpid());
}

void shim_say_would(enum shim_call call, size_t bytes)
{
	if (call == SHIM_AHEAD) {
		print_report("watch", "the touches", bytes, "");
		return;
	}
	print_report("do", shim_call_names[call], bytes, "");
	if (bytes == SIZE_MAX)
		return;
	atomic_fetch_add(&shim_counts.would.calls, 1);
	atomic_fetch_add(&shim_counts.would.bytes, bytes);
}

void shim_say_left(enum shim_left what, size_t bytes)
{
	if (dry_run)
		print_report("leave", left_calls[what].name, bytes,
			     " to the kernel");
}
