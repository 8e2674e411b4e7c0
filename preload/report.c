/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the shim did, one line per kind of call, when the process exits:
 * KTASK_RUN_REPORT=1 on stderr, any other value is a file to append to.  A
 * process in which nothing was taken writes nothing.  And what it would do,
 * line by line, where it may only say so.
 *
 * "Saved" is the CPU time of all threads less the time that passed, which is
 * what one thread would have taken at most: threads slow each other down.
 *
 * Calls that were left to the kernel have lines of their own, with the reason.
 *
 * Not written by a process that ends by exec or a signal, or that has set a
 * filter for system calls which might not let it pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

static struct {
	atomic_ullong calls;
	atomic_ullong plain; /* of these, left to the plain call after all */
	atomic_ullong bytes;
	atomic_ullong ns;
	atomic_ullong saved_ns;
	atomic_uint threads; /* most that worked on one call */
} counts[SHIM_NR_CALLS];

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
	[LEFT_MBIND] = { "mbind", "nothing moves, or not to one node" },
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

static struct {
	atomic_ullong calls;
	atomic_ullong bytes;
} left_counts[SHIM_NR_LEFT];

static bool dry_run;
static atomic_flag reported = ATOMIC_FLAG_INIT;
/* Open from the report on, for what comes after it. */
static int report_fd = -1;

/* A second descriptor for stderr: many programs close theirs in atexit(). */
static int spare_fd = -1;
static struct stat spare_stat;

void shim_count(enum shim_call call, size_t len, uint64_t wall_ns,
		uint64_t cpu_ns, unsigned threads, bool done)
{
	unsigned most = atomic_load(&counts[call].threads);

	atomic_fetch_add(&counts[call].calls, 1);
	atomic_fetch_add(&counts[call].plain, !done);
	atomic_fetch_add(&counts[call].bytes, done ? len : 0);
	atomic_fetch_add(&counts[call].ns, wall_ns);
	if (done && threads > 1 && cpu_ns > wall_ns)
		atomic_fetch_add(&counts[call].saved_ns, cpu_ns - wall_ns);
	while (threads > most && !atomic_compare_exchange_weak(
					 &counts[call].threads, &most, threads))
		;
}

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

void shim_report_forked(void)
{
	memset(counts, 0, sizeof(counts));
	memset(left_counts, 0, sizeof(left_counts));
}

/* The program may have closed the spare and opened a file of its own there. */
static int stderr_fd(void)
{
	struct stat now;

	if (spare_fd >= 0 && !fstat(spare_fd, &now) &&
	    now.st_dev == spare_stat.st_dev && now.st_ino == spare_stat.st_ino)
		return spare_fd;
	return -1;
}

/* A file that may not grow, a pipe that nobody reads: a signal tells that, which
 * is not meant for the program. */
static void write_text(int fd, const char *line, int len, size_t room)
{
	static const struct timespec now;
	sigset_t ours, theirs, old;
	ssize_t put;

	if (len > (int)room - 1)
		len = (int)room - 1;
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
		put = write(fd, line, (size_t)len);
	while (put < 0 && errno == EINTR);
	if (put < 0 && (errno == EFBIG || errno == EPIPE))
		sigtimedwait(&ours, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static unsigned long long seconds(const atomic_ullong *ns)
{
	return atomic_load(ns) / 1000000000;
}

static unsigned long long micros(const atomic_ullong *ns)
{
	return atomic_load(ns) / 1000 % 1000000;
}

static void write_line(int fd, enum shim_call call)
{
	char line[240];
	int len;

	len = snprintf(line, sizeof(line),
		       "ktask: %s: %llu calls, %llu bytes, %llu.%06llu s, "
		       "at most %llu.%06llu s saved, "
		       "%u threads, %llu left to the kernel (%s, %d)\n",
		       shim_call_names[call], atomic_load(&counts[call].calls),
		       atomic_load(&counts[call].bytes),
		       seconds(&counts[call].ns), micros(&counts[call].ns),
		       seconds(&counts[call].saved_ns),
		       micros(&counts[call].saved_ns),
		       atomic_load(&counts[call].threads),
		       atomic_load(&counts[call].plain),
		       program_invocation_short_name, (int)getpid());
	write_text(fd, line, len, sizeof(line));
}

static void say(const char *would, const char *name, size_t bytes,
		const char *end)
{
	int saved_errno = errno, cancel_state;
	char what[32], line[240];
	int fd = stderr_fd(), len;

	/* None of the calls that are told of is a point of cancellation. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (bytes == SIZE_MAX)
		strcpy(what, "all memory");
	else
		snprintf(what, sizeof(what), "%zu bytes", bytes);
	len = snprintf(line, sizeof(line),
		       "ktask: would %s %s of %s%s (%s, %d)\n", would, name,
		       what, end, program_invocation_short_name, (int)getpid());
	if (fd >= 0)
		write_text(fd, line, len, sizeof(line));
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void shim_say_would(enum shim_call call, size_t bytes)
{
	say("do", shim_call_names[call], bytes, "");
}

bool shim_tells(void)
{
	return dry_run || shim_report_target();
}

void shim_leave(enum shim_left what, size_t bytes)
{
	if (!shim_tells() || shim_busy() || !shim_filter_allows() ||
	    !shim_is_ours())
		return;
	atomic_fetch_add(&left_counts[what].calls, 1);
	atomic_fetch_add(&left_counts[what].bytes, bytes);
	if (dry_run)
		say("leave", left[what].name, bytes, " to the kernel");
}

static void write_left(int fd, enum shim_left what)
{
	char line[240];
	int len = snprintf(
		line, sizeof(line),
		"ktask: %s: %llu calls on %llu bytes left to the kernel, "
		"because %s (%s, %d)\n",
		left[what].name, atomic_load(&left_counts[what].calls),
		atomic_load(&left_counts[what].bytes), left[what].why,
		program_invocation_short_name, (int)getpid());

	write_text(fd, line, len, sizeof(line));
}

/* A pipe that nobody reads, or not fast enough, is not waited for. */
static int open_report(void)
{
	if (report_fd < 0)
		report_fd = to_stderr() ? stderr_fd()
					: open(shim_report_target(),
					       O_WRONLY | O_APPEND | O_CREAT |
						       O_NONBLOCK | O_CLOEXEC,
					       0666);
	return report_fd;
}

void shim_report(bool more)
{
	if (!shim_report_target() || !shim_filter_allows() ||
	    atomic_flag_test_and_set(&reported))
		return;
	for (int call = 0; call < SHIM_NR_CALLS; call++)
		if (atomic_load(&counts[call].calls) && open_report() >= 0)
			write_line(report_fd, call);
	for (int what = 0; what < SHIM_NR_LEFT; what++)
		if (atomic_load(&left_counts[what].calls) && open_report() >= 0)
			write_left(report_fd, what);
	if (more)
		open_report();
}

/* Integers only: what else printf() looks at may be gone. */
void shim_report_last(void)
{
	if (shim_report_target() && report_fd >= 0)
		write_line(report_fd, SHIM_EXIT);
}
