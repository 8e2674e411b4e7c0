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
 * Not written by a process that ends by _exit(), exec or a signal, or that has
 * set a filter for system calls which might not let it pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

static void write_text(int fd, const char *line, int len, size_t room)
{
	if (len > (int)room - 1)
		len = (int)room - 1;
	while (write(fd, line, (size_t)len) < 0 && errno == EINTR)
		;
}

static double seconds(const atomic_ullong *ns)
{
	return (double)atomic_load(ns) / 1e9;
}

static void write_line(int fd, enum shim_call call)
{
	char line[240];
	int len;

	len = snprintf(line, sizeof(line),
		       "ktask: %s: %llu calls, %llu bytes, %.6f s, "
		       "at most %.6f s saved, "
		       "%u threads, %llu left to the kernel (%s, %d)\n",
		       shim_call_names[call], atomic_load(&counts[call].calls),
		       atomic_load(&counts[call].bytes),
		       seconds(&counts[call].ns),
		       seconds(&counts[call].saved_ns),
		       atomic_load(&counts[call].threads),
		       atomic_load(&counts[call].plain),
		       program_invocation_short_name, (int)getpid());
	write_text(fd, line, len, sizeof(line));
}

void shim_say_would(enum shim_call call, size_t bytes)
{
	int saved_errno = errno;
	char what[32], line[160];
	int fd = stderr_fd(), len;

	if (bytes == SIZE_MAX)
		strcpy(what, "all memory");
	else
		snprintf(what, sizeof(what), "%zu bytes", bytes);
	len = snprintf(line, sizeof(line),
		       "ktask: would do %s of %s (%s, %d)\n",
		       shim_call_names[call], what,
		       program_invocation_short_name, (int)getpid());
	if (fd >= 0)
		write_text(fd, line, len, sizeof(line));
	errno = saved_errno;
}

static void __attribute__((destructor)) shim_report(void)
{
	int fd = -1;

	if (!shim_report_target() || !shim_filter_allows())
		return;
	for (int call = 0; call < SHIM_NR_CALLS; call++) {
		if (!atomic_load(&counts[call].calls))
			continue;
		if (fd < 0)
			fd = to_stderr() ? stderr_fd()
					 : open(shim_report_target(),
						O_WRONLY | O_APPEND | O_CREAT |
							O_CLOEXEC,
						0666);
		if (fd < 0)
			return;
		write_line(fd, call);
	}
}
