/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report: KTASK_RUN_REPORT=1 writes it to stderr, any other value is a file
 * to append to.  Each process begins with one line on what was taken over; one
 * line follows for each kind of call that was, and for each reason for which
 * calls were not.  With KTASK_RUN_OPS=dry, what would be taken over, call by
 * call.
 *
 * "Saved" is the CPU time of all threads less the time that passed, which is
 * what one thread would have taken at most: threads slow each other down.
 *
 * A process reports when it ends or becomes another program, and before it sets
 * a filter for system calls that might not let it report later.  One that is
 * ended by a signal does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counts.h"

#define LINE_BYTES 320
/* A process had much memory: so many times the least call that is taken. */
#define PEAK_TIMES 4

static const struct {
	const char *name, *why;
} left[SHIM_NR_LEFT] = {
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
			      "two threads gain nothing, and it stops where "
			      "a page stays" },
	[LEFT_PROCESS_MADVISE] = { "process_madvise",
				   "it is about another process, or no "
				   "discard" },
	[LEFT_EXIT_THREADS] = { "exit", "other threads run" },
	[LEFT_EXIT_WATCHED] = { "exit", "others may look at the memory" },
	[LEFT_EXIT_HANDLERS] = { "exit", "a signal handler may have called" },
	[LEFT_EXIT_BUSY] = { "exit", "no other CPU is idle, or may be used" },
};

/* Behind "left N calls to the kernel:". */
static const char *const whys[SHIM_NR_WHY] = {
	[WHY_OPS] = "not named by --ops",
	[WHY_EARLY] = "made before the shim was ready",
	[WHY_ALLOCATOR] = "made by an allocator other than the C library's",
	[WHY_CHILD] = "made by a child that shares the memory (vfork)",
	[WHY_FILTER] = "behind a system call filter (seccomp) that does not "
		       "let the library work",
	[WHY_WATCHED] = "the program handles page faults itself (userfaultfd)",
	[WHY_UNASKED] = "memory was mapped, its pages not asked for "
			"(--prefault makes them)",
	[WHY_MEMORY] = "more than --prefault may take of the available memory",
	[WHY_UNTOUCHED] = "what --prefault made before is untouched",
	[WHY_POLICY] = "the thread has a memory policy, which helpers do not "
		       "follow",
};

/* Most threads of a job; 0: not known. */
static unsigned limit;
static bool dry_run;
static atomic_flag reported = ATOMIC_FLAG_INIT;
/* Open from the report on, for what comes after it. */
static int report_fd = -1;

/* A second descriptor for stderr: many programs close theirs in atexit(). */
static int spare_fd = -1;
static struct stat spare_stat;

static bool to_stderr(void)
{
	return shim_report_target() && !strcmp(shim_report_target(), "1");
}

void shim_report_init(bool dry)
{
	int saved_errno = errno;

	dry_run = dry;
	if (dry || to_stderr()) {
		/* High, so that programs find their usual numbers free. */
		spare_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
		if (spare_fd < 0)
			spare_fd = STDERR_FILENO;
		if (fstat(spare_fd, &spare_stat))
			spare_fd = -1;
	}
	errno = saved_errno;
}

/* The program may have opened a file of its own there. */
static bool is_stderr(int fd)
{
	struct stat now;

	return fd >= 0 && !fstat(fd, &now) && now.st_dev == spare_stat.st_dev &&
	       now.st_ino == spare_stat.st_ino;
}

/* Many programs close all descriptors above stderr, the spare too. */
static int stderr_fd(void)
{
	if (is_stderr(spare_fd))
		return spare_fd;
	return spare_fd >= 0 && is_stderr(STDERR_FILENO) ? STDERR_FILENO : -1;
}

/* A file that may not grow, a pipe that nobody reads: a signal tells that, which
 * is not meant for the program. */
static void write_text(int fd, const char *text, size_t len)
{
	static const struct timespec now;
	sigset_t ours, theirs, old;
	ssize_t put;

	sigemptyset(&ours);
	sigaddset(&ours, SIGXFSZ);
	sigaddset(&ours, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &ours, &old);
	/* One that the program holds back is its own. */
	sigpending(&theirs);
	if (sigismember(&theirs, SIGXFSZ))
		sigdelset(&ours, SIGXFSZ);
	if (sigismember(&theirs, SIGPIPE))
		sigdelset(&ours, SIGPIPE);
	do
		put = write(fd, text, len);
	while (put < 0 && errno == EINTR);
	if (put < 0 && (errno == EFBIG || errno == EPIPE))
		sigtimedwait(&ours, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- one line ---- */

struct line {
	size_t len;
	char text[LINE_BYTES];
};

static void __attribute__((format(printf, 2, 3)))
append_text(struct line *line, const char *format, ...)
{
	size_t capacity = sizeof(line->text) - line->len;
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(line->text + line->len, capacity, format, list);
	va_end(list);
	if (len > 0)
		line->len +=
			(size_t)len < capacity ? (size_t)len : capacity - 1;
}

/* Integers only: what printf() needs besides may be gone. */
static void append_size(struct line *line, unsigned long long bytes)
{
	static const char units[] = "KMGTPE";
	unsigned long long tenths;
	int unit = 0;

	if (bytes < 1024) {
		append_text(line, "%llu bytes", bytes);
		return;
	}
	tenths = bytes / 1024 * 10 + bytes % 1024 * 10 / 1024;
	for (; tenths >= 10240 && units[unit + 1]; unit++)
		tenths /= 1024;
	append_text(line, "%llu.%llu %ciB", tenths / 10, tenths % 10,
		    units[unit]);
}

static void append_seconds(struct line *line, const atomic_ullong *ns)
{
	unsigned long long value = atomic_load(ns);

	append_text(line, "%llu.%06llu s", value / 1000000000,
		    value / 1000 % 1000000);
}

/* "3 calls on 96.0 MiB" */
static void append_sum(struct line *line, unsigned long long calls,
		       unsigned long long bytes)
{
	append_text(line, "%llu %s on ", calls, calls == 1 ? "call" : "calls");
	append_size(line, bytes);
}

static void end_line_of(int fd, struct line *line, const char *name)
{
	/* The end of it tells whose line it is: that must fit. */
	if (line->len > LINE_BYTES - 96)
		line->len = LINE_BYTES - 96;
	append_text(line, " (%.64s, %d)\n", name, (int)getpid());
	if (fd >= 0)
		write_text(fd, line->text, line->len);
}

static void end_line(int fd, struct line *line)
{
	end_line_of(fd, line, shim_program_name());
}

/* ---- a kind of call ---- */

static void append_threads(struct line *line, const struct shim_taken *taken)
{
	unsigned threads = atomic_load(&taken->threads);

	if (threads > 1 && atomic_load(&taken->saved_ns)) {
		append_text(line, "at most ");
		append_seconds(line, &taken->saved_ns);
		append_text(line, " saved, %u threads", threads);
	} else if (threads > 1) {
		append_text(line, "no time saved: %u threads took turns",
			    threads);
	} else if (atomic_load(&taken->plain) == atomic_load(&taken->calls)) {
		append_text(line, "refused");
	} else if (limit == 1) {
		append_text(line, "1 thread: no more are allowed (ktask topo)");
	} else if (atomic_load(&taken->undivided) ==
		   atomic_load(&taken->calls)) {
		append_text(line, "1 thread: too little to divide%s",
			    limit ? "" : ", or no more allowed (ktask topo)");
	} else {
		append_text(line, "1 thread: no helper got a CPU in time");
	}
}

/* Helpers work while the program goes on: no time passes for it. */
static void append_ahead(struct line *line, const struct shim_taken *taken)
{
	if (!atomic_load(&taken->bytes)) {
		append_text(line,
			    "made present ahead: no helper got a CPU before "
			    "the program used or unmapped the memory");
		return;
	}
	append_text(line, "made present ahead by helpers, in ");
	append_seconds(line, &taken->cpu_ns);
	append_text(line, " of CPU time");
}

static void write_taken(int fd, enum shim_call call)
{
	const struct shim_taken *taken = &shim_counts.taken[call];
	struct line line = { 0 };

	append_text(&line, "ktask: %s: %llu calls, %llu bytes",
		    shim_call_names[call], atomic_load(&taken->calls),
		    atomic_load(&taken->bytes));
	if (call == SHIM_PREFAULT && !shim_prefault_waits) {
		append_text(&line, " ");
		append_ahead(&line, taken);
	} else {
		append_text(&line, ", ");
		append_seconds(&line, &taken->ns);
		append_text(&line, ", ");
		append_threads(&line, taken);
		append_text(&line, ", %llu left to the kernel",
			    atomic_load(&taken->plain));
	}
	end_line(fd, &line);
}

static void write_left(int fd, enum shim_left what)
{
	const struct shim_sum *sum = &shim_counts.left[what];
	struct line line = { 0 };

	append_text(&line,
		    "ktask: %s: %llu calls on %llu bytes left to the kernel, "
		    "because %s",
		    left[what].name, atomic_load(&sum->calls),
		    atomic_load(&sum->bytes), left[what].why);
	end_line(fd, &line);
}

/* ---- the process ---- */

static void write_declined(int fd, enum shim_why why)
{
	const struct shim_sum *sum = &shim_counts.declined[why];
	struct line line = { 0 };

	append_text(&line, "ktask: run: left ");
	append_sum(&line, atomic_load(&sum->calls), atomic_load(&sum->bytes));
	append_text(&line, " to the kernel: %s", whys[why]);
	end_line(fd, &line);
}

/* What getrusage() tells is the most of all programs that the process was. */
static unsigned long long peak_bytes(void)
{
	struct rusage usage;
	char text[4096];
	const char *at;

	if (getrusage(RUSAGE_SELF, &usage) ||
	    (size_t)usage.ru_maxrss / PEAK_TIMES < shim_min_bytes / 1024 ||
	    !shim_read_text("/proc/self/status", text, sizeof(text)))
		return 0;
	at = strstr(text, "\nVmHWM:");
	return at ? strtoull(at + 7, NULL, 10) * 1024 : 0;
}

/* No call was large enough. */
static void append_smallness(struct line *line)
{
	unsigned long long largest = atomic_load(&shim_largest_small);
	unsigned long long peak = peak_bytes();

	append_text(line, ": no call was on ");
	append_size(line, shim_min_bytes);
	append_text(line, " or more");
	if (largest) {
		append_text(line, " (the largest: ");
		append_size(line, largest);
		append_text(line, ")");
	}
	if (peak / PEAK_TIMES >= shim_min_bytes) {
		append_text(line, "; the ");
		append_size(line, peak);
		append_text(line,
			    " that it had came by malloc() or page by page");
	}
}

struct totals {
	unsigned long long calls, bytes, left_calls, left_bytes;
	enum shim_why why; /* the only reason, if there is one */
};

static void add_left(struct totals *totals, const struct shim_sum *sum)
{
	totals->left_calls += atomic_load(&sum->calls);
	totals->left_bytes += atomic_load(&sum->bytes);
}

static struct totals add_totals(void)
{
	struct totals totals = { .why = SHIM_NR_WHY };

	for (int i = 0; i < SHIM_NR_CALLS; i++) {
		totals.calls += atomic_load(&shim_counts.taken[i].calls);
		totals.bytes += atomic_load(&shim_counts.taken[i].bytes);
	}
	for (enum shim_why i = 0; i < SHIM_NR_WHY; i++) {
		bool first = !totals.left_calls;

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

static void append_taken(struct line *line, const struct totals *totals,
			 bool more)
{
	append_text(line, "ktask: run: took over ");
	if (totals->calls)
		append_sum(line, totals->calls, totals->bytes);
	if (more)
		append_text(line, "%sthe end", totals->calls ? ", and " : "");
	if (totals->calls || more)
		return;
	append_text(line, "nothing");
	if (dry_run)
		append_text(line, ": --dry-run");
	else if (!totals->left_calls)
		append_smallness(line);
}

/* @more: the end of the process will be taken over as well. */
static void write_summary(int fd, const struct totals *totals, bool more,
			  const char *then)
{
	struct line line = { 0 };

	append_taken(&line, totals, more);
	if (totals->left_calls) {
		append_text(&line, "; left ");
		append_sum(&line, totals->left_calls, totals->left_bytes);
		append_text(&line, " to the kernel");
	}
	if (totals->why != SHIM_NR_WHY)
		append_text(&line, ": %s", whys[totals->why]);
	if (then)
		append_text(&line, "; then %s", then);
	end_line(fd, &line);
}

static void write_report(int fd, bool more, const char *then)
{
	struct totals totals = add_totals();

	write_summary(fd, &totals, more, then);
	for (int call = 0; call < SHIM_NR_CALLS; call++)
		if (atomic_load(&shim_counts.taken[call].calls))
			write_taken(fd, call);
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
	for (int i = 0; shim_report_target() && !limit && i < SHIM_NR_CALLS;
	     i++)
		if (atomic_load(&shim_counts.taken[i].calls) &&
		    atomic_load(&shim_counts.taken[i].threads) <= 1)
			limit = shim_limit();
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
	if (!shim_report_target() || !shim_filter_allows() ||
	    atomic_flag_test_and_set(&reported))
		return;
	report_fd = open_report();
	if (report_fd >= 0)
		write_report(report_fd, more, then);
}

void shim_report(bool more)
{
	report_once(more, NULL);
}

/* Integers only: what else printf() looks at may be gone. */
void shim_report_last(void)
{
	if (shim_report_target() && report_fd >= 0)
		write_taken(report_fd, SHIM_EXIT);
}

void shim_report_now(const char *then)
{
	int saved_errno = errno, cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	report_once(false, then);
	if (report_fd >= 0 && !to_stderr())
		close(report_fd);
	report_fd = -1;
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void shim_report_obstacle(const char *name, const char *why)
{
	int fd, saved_errno = errno, cancel_state;
	const char *slash = strrchr(name, '/');
	struct line line = { 0 };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	fd = open_report();
	append_text(&line, "ktask: run: nothing can be taken over: %s", why);
	end_line_of(fd, &line, slash ? slash + 1 : name);
	if (fd >= 0 && !to_stderr())
		close(fd);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void shim_report_again(void)
{
	shim_counts_reset();
	atomic_flag_clear(&reported);
}

/* ---- as it happens ---- */

bool shim_tells(void)
{
	return dry_run || shim_report_target();
}

static void print_report(const char *would, const char *name, size_t bytes,
			 const char *end)
{
	int saved_errno = errno, cancel_state;
	struct line line = { 0 };

	/* None of the calls that are told of is a point of cancellation. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	append_text(&line, "ktask: would %s %s of ", would, name);
	if (bytes == SIZE_MAX)
		append_text(&line, "all memory%s", end);
	else
		append_text(&line, "%zu bytes%s", bytes, end);
	end_line(stderr_fd(), &line);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void shim_say_would(enum shim_call call, size_t bytes)
{
	print_report("do", shim_call_names[call], bytes, "");
}

void shim_say_left(enum shim_left what, size_t bytes)
{
	if (dry_run)
		print_report("leave", left[what].name, bytes, " to the kernel");
}
