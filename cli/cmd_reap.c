/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask reap: free the memory of a dying process with a second CPU.
 *
 * A process that ends frees its memory alone.  process_mrelease(2), made for
 * user-space memory killers, frees private memory of a dying process from
 * outside, beside the process itself.  A program that killed its sleeping child
 * and asked at once saw 2 GiB of 4 KiB pages gone after 64 ms instead of 126.
 *
 * Where it behaves badly: the kernel lets nobody in once the last thread has let
 * go of its memory, which it does within microseconds of a signal.  Who asks
 * later finds nothing to do and no harm done: --on-exit mostly, and on a busy
 * machine this command as well (8 GiB: 569 ms, plainly killed 557).
 *
 * What it cannot do: processes that live on (the kernel refuses), shared
 * memory and huge pages of hugetlbfs, a third CPU (a second caller finds
 * nothing left to do).
 *
 * What was looked at besides:
 *   Giving pages back from outside, process_madvise(MADV_DONTNEED): refused for
 *     other processes, as it would change what they compute.
 *   Memory of files: a dying process frees none, it only lets go of it, which
 *     nobody can do for it.
 *   A helper that shares the memory (clone(CLONE_VM) before the end): the parent
 *     learns of the end at once, 1 GiB in 0.000 s instead of 0.116, and any
 *     number of threads may free the memory, also shared one, after any death.
 *     Not built, because it must be made inside the program, long before: it
 *     keeps the rights that the program had then, beside memory that a program
 *     which has given them up can write to; it keeps the old memory when the
 *     program starts another one; it is a process more for everybody who counts
 *     or waits.  It cannot be made from outside without stopping the program
 *     and putting code into it (ptrace).
 * A program that ends in its own time does best to call ktask_discard() first
 * (1 GiB: 0.069 s instead of 0.116).
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "say.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

/* How soon the end of a process is noticed: asking costs 1 us. */
#define ASK_EVERY_NS 1000000

static const char usage[] =
	"usage: ktask reap [--on-exit] PID\n\n"
	"Kill process PID, and help the kernel to free its memory.\n\n"
	"  --on-exit   do not kill it: wait until it ends, and help then\n"
	"  --help      print this\n";

enum { OPT_HELP = 256, OPT_ON_EXIT };

static const struct option options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "on-exit", no_argument, NULL, OPT_ON_EXIT },
	{ 0 },
};

struct settings {
	bool help, on_exit;
	pid_t pid;
};

static int parse_pid(struct settings *set, const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	/* Its own, and 1, are nobody's wish. */
	if (errno || *end || *text < '0' || *text > '9' || pid < 2 ||
	    pid != (pid_t)pid || pid == getpid())
		return say_usage("reap", "'%s': not a process id", text);
	set->pid = (pid_t)pid;
	return 0;
}

static int parse(struct settings *set, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return say_option("reap", argv, option);
		set->help = set->help || option != OPT_ON_EXIT;
		set->on_exit = set->on_exit || option == OPT_ON_EXIT;
	}
	if (set->help)
		return 0;
	if (argc - optind != 1)
		return say_usage("reap", "one process id is wanted");
	return parse_pid(set, argv[optind]);
}

static bool has_ended(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 1;
}

static void wait_for_end(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
}

/*
 * Asked again and again: EINVAL until it is dying, EAGAIN while it holds on to
 * its memory for a moment.  ESRCH: there is no memory left.
 */
static int release(int pidfd)
{
	const struct timespec pause = { .tv_nsec = ASK_EVERY_NS };

	/* First ask: between the signal and the end there are microseconds. */
	do {
		if (!syscall(SYS_process_mrelease, pidfd, 0) || errno == ESRCH)
			return 0;
		if (errno != EINVAL && errno != EAGAIN && errno != EINTR)
			return errno;
		nanosleep(&pause, NULL);
	} while (!has_ended(pidfd));
	return 0;
}

/* In /proc/PID/stat, of the fields behind the name: state, 5 numbers, flags. */
#define KERNEL_THREAD 0x200000u

/* It has no memory, and heeds no signal: to wait for its end is for ever. */
static bool is_kernel_thread(pid_t pid)
{
	char path[32], text[256] = "", *rest;
	unsigned flags = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	rest = strrchr(text, ')');
	return rest &&
	       sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & KERNEL_THREAD;
}

static int reap(const struct settings *set, int pidfd)
{
	int error;

	if (is_kernel_thread(set->pid))
		return say_fail("reap: %d is a thread of the kernel", set->pid);
	if (!set->on_exit &&
	    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) &&
	    errno != ESRCH)
		return say_error(errno, "reap: killing process %d", set->pid);
	error = release(pidfd);
	wait_for_end(pidfd);
	return error ? say_error(error, "reap: releasing memory of process %d",
				 set->pid)
		     : 0;
}

int cmd_reap(int argc, char **argv)
{
	struct settings set = { 0 };
	int pidfd, status;

	status = parse(&set, argc, argv);
	if (status)
		return status;
	if (set.help) {
		fputs(usage, stdout);
		return 0;
	}
	pidfd = (int)syscall(SYS_pidfd_open, set.pid, 0);
	if (pidfd < 0)
		return say_error(errno, "reap: finding process %d", set.pid);
	status = reap(&set, pidfd);
	close(pidfd);
	return status;
}
