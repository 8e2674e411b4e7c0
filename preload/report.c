/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the shim did, one line per kind of call, when the process exits:
 * KTASK_RUN_REPORT=1 on stderr, any other value is a file to append to.  A
 * process in which nothing was taken writes nothing.
 *
 * Not written by a process that ends by _exit(), exec or a signal.
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
	atomic_uint threads; /* most that worked on one call */
} counts[SHIM_NR_CALLS];

/* A second descriptor for stderr: many programs close theirs in atexit(). */
static int spare_fd = -1;
static struct stat spare_stat;

void shim_count(enum shim_call call, size_t len, uint64_t ns, unsigned threads,
		bool done)
{
	unsigned most = atomic_load(&counts[call].threads);

	atomic_fetch_add(&counts[call].calls, 1);
	atomic_fetch_add(&counts[call].plain, !done);
	atomic_fetch_add(&counts[call].bytes, done ? len : 0);
	atomic_fetch_add(&counts[call].ns, ns);
	while (threads > most && !atomic_compare_exchange_weak(
					 &counts[call].threads, &most, threads))
		;
}

static bool to_stderr(void)
{
	return !strcmp(shim_report_target(), "1");
}

void shim_report_init(void)
{
	int saved_errno = errno;

	if (shim_report_target() && to_stderr()) {
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

static void write_line(int fd, enum shim_call call)
{
	double seconds = (double)atomic_load(&counts[call].ns) / 1e9;
	char line[200];
	int len;

	len = snprintf(line, sizeof(line),
		       "ktask: %s: %llu calls, %llu bytes, %.6f s, "
		       "%u threads, %llu left to the kernel (%s, %d)\n",
		       shim_call_names[call], atomic_load(&counts[call].calls),
		       atomic_load(&counts[call].bytes), seconds,
		       atomic_load(&counts[call].threads),
		       atomic_load(&counts[call].plain),
		       program_invocation_short_name, (int)getpid());
	if (len > (int)sizeof(line) - 1)
		len = sizeof(line) - 1;
	while (write(fd, line, (size_t)len) < 0 && errno == EINTR)
		;
}

static void __attribute__((destructor)) shim_report(void)
{
	int fd = -1;

	if (!shim_report_target())
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
