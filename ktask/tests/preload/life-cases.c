/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large calls from where programs rarely make them: many threads at once,
 * children of fork, vfork and a bare clone, a constructor, a signal handler; and
 * with descriptors and files that are gone.
 * The argument names the case ("reused" wants a file as well); prints "ok" or what went wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "probe.h"

#define NR_THREADS 6
#define NR_ROUNDS 8
#define NR_ALARMS 20
#define NR_UNMAPS 100

static const char *file_argument;
static const char *constructor_outcome = "constructor did not run";

/* NULL, or what is wrong.  Allocates nothing: a handler may run it. */
static const char *populate_once(void)
{
	unsigned char resident[SIZE_BYTES / PAGE_BYTES];
	const char *wrong = NULL;
	char *addr;

	errno = ERRNO_MARK;
	addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (addr == MAP_FAILED)
		return "mmap failed";
	if (errno != ERRNO_MARK)
		wrong = "mmap changed errno";
	if (mincore(addr, SIZE_BYTES, resident) ||
	    memchr(resident, 0, sizeof(resident)))
		wrong = "mmap left pages out";
	munmap(addr, SIZE_BYTES);
	return wrong;
}

static void __attribute__((constructor)) populate_early(void)
{
	constructor_outcome = populate_once();
}

static void *populate_often(void *unused)
{
	const char *wrong = NULL;

	(void)unused;
	for (int i = 0; i < NR_ROUNDS && !wrong; i++)
		wrong = populate_once();
	return (void *)wrong;
}

static const char *in_threads(void)
{
	pthread_t threads[NR_THREADS];
	const char *wrong = NULL;
	void *outcome;

	for (int i = 0; i < NR_THREADS; i++)
		must_hold(!pthread_create(&threads[i], NULL, populate_often,
					  NULL),
			  "pthread_create");
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &outcome);
		if (outcome)
			wrong = outcome;
	}
	return wrong;
}

static const char *child_outcome(pid_t child)
{
	int status;

	must_hold(child > 0, "child");
	must_hold(waitpid(child, &status, __WALL) == child, "waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return "the child failed";
	return populate_once();
}

static const char *in_fork(void)
{
	pid_t child;

	if (populate_once())
		return "the parent failed";
	child = fork();
	if (child == 0)
		exit(populate_once() ? 1 : 0);
	return child_outcome(child);
}

/* The child has the parent's memory but none of its threads. */
static const char *in_vfork(void)
{
	pid_t child;

	if (populate_once())
		return "the parent failed";
	child = vfork();
	if (child == 0)
		_exit(populate_once() ? 1 : 0);
	return child_outcome(child);
}

/* A fork of which libc, and so the library, knows nothing. */
static const char *in_clone(void)
{
	pid_t child;

	if (populate_once())
		return "the parent failed";
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(populate_once() ? 1 : 0);
	return child_outcome(child);
}

/* The kernel refuses addresses; nobody may look there before it. */
static const char *in_clone3(void)
{
#ifdef SYS_clone3
	for (long at = 0; at < 3; at++) {
		errno = 0;
		if (syscall(SYS_clone3, at, 88L) != -1 ||
		    (errno != EFAULT && errno != ENOSYS))
			return "clone3 took an address that is none";
	}
#endif
	return populate_once();
}

static const char *handler_outcome;
static volatile sig_atomic_t nr_handled;

/* One shot: a timer that repeats could leave its thread no time at all. */
static void set_alarm(void)
{
	struct itimerval once = { { 0, 0 }, { 0, 1000 } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void on_alarm(int sig)
{
	int saved_errno = errno;
	const char *wrong = populate_once();

	(void)sig;
	if (wrong)
		handler_outcome = wrong;
	if (++nr_handled < NR_ALARMS)
		set_alarm();
	errno = saved_errno;
}

/* A handler that populates while its thread is perhaps populating. */
static const char *in_handler(void)
{
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	const char *wrong = populate_once();

	sigaction(SIGALRM, &action, NULL);
	set_alarm();
	while (nr_handled < NR_ALARMS && !wrong)
		wrong = populate_once();
	return wrong ? wrong : handler_outcome;
}

static char *volatile mapped;

static void unmap_it(int sig)
{
	int saved_errno = errno;

	(void)sig;
	if (munmap(mapped, SIZE_BYTES))
		handler_outcome = "munmap failed";
	mapped = NULL;
	errno = saved_errno;
}

/* A handler that unmaps, and may find the allocator half way; with --prefault
 * what it unmaps is just being made. */
static const char *in_malloc(void)
{
	struct sigaction action = { .sa_handler = unmap_it };

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < NR_UNMAPS && !handler_outcome; i++) {
		char *base = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must_hold(base != MAP_FAILED, "mmap");
		mapped = base;
		set_alarm();
		while (mapped) {
			/* Or the pair would be left out. */
			void *volatile block = malloc(100000);

			free(block);
		}
	}
	return handler_outcome;
}

static const char *in_constructor(void)
{
	return constructor_outcome;
}

/* Leaves while another thread is busy; nothing may hang. */
static const char *in_exit(void)
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, populate_often, NULL),
		  "pthread_create");
	usleep(3000);
	return NULL;
}

/* As programs do that detach, or check their last writes in atexit(). */
static const char *in_closed(void)
{
	close(STDERR_FILENO);
	return NULL;
}

/* Every descriptor closed, and the numbers used again for a file. */
static const char *in_reused(void)
{
	int fd;

	for (fd = 3; fd < 512; fd++)
		close(fd);
	close(STDERR_FILENO);
	fd = open(file_argument, O_WRONLY | O_CREAT, 0600);
	if (fd != STDERR_FILENO)
		return "the file did not become standard error";
	while (fd >= 0 && fd < 512)
		fd = dup(fd);
	return NULL;
}

/* As daemons do when they start. */
static const char *in_all_closed(void)
{
	const char *wrong = populate_once();

	must_hold(!close_range(3, ~0u, 0), "close_range");
	if (!wrong)
		wrong = populate_often(NULL);
	if (fcntl(3, F_GETFD) != -1)
		return "a descriptor was left open";
	return wrong;
}

static int truncated_fd;
static volatile int no_more;

static void *truncate_often(void *unused)
{
	(void)unused;
	while (!no_more) {
		must_hold(!ftruncate(truncated_fd, SIZE_BYTES / 4),
			  "ftruncate");
		must_hold(!ftruncate(truncated_fd, SIZE_BYTES), "ftruncate");
	}
	return NULL;
}

/* As is said of pages that are behind the end of a file. */
static const char *refused_at_most(int rc)
{
	return rc && errno != EFAULT && errno != ENOMEM && errno != EAGAIN &&
			       errno != EPERM
		       ? "an unexpected error"
		       : NULL;
}

static const char *use_what_is_truncated(void)
{
	char *base = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, truncated_fd, 0);
	const char *wrong;

	if (base == MAP_FAILED)
		return "mmap failed";
	wrong = refused_at_most(madvise(base, SIZE_BYTES, MADV_POPULATE_WRITE));
	if (!wrong)
		wrong = refused_at_most(mlock(base, SIZE_BYTES));
	munlock(base, SIZE_BYTES);
	if (!wrong && madvise(base, SIZE_BYTES, MADV_DONTNEED))
		wrong = "madvise failed";
	if (munmap(base, SIZE_BYTES))
		wrong = "munmap failed";
	return wrong;
}

/* A file that somebody cuts, and makes longer again, under its mappings. */
static const char *in_truncated(void)
{
	const char *wrong = NULL;
	pthread_t thread;

	truncated_fd = memfd_create("cut", MFD_CLOEXEC);
	must_hold(truncated_fd >= 0, "memfd_create");
	must_hold(!pthread_create(&thread, NULL, truncate_often, NULL),
		  "pthread_create");
	for (int i = 0; i < NR_UNMAPS && !wrong; i++)
		wrong = use_what_is_truncated();
	no_more = 1;
	pthread_join(thread, NULL);
	return wrong;
}

/* Address space for 64 MiB, and no memory. */
static const char *in_reserved(void)
{
	void *addr = mmap(NULL, (size_t)64 << 20, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? "nothing was mapped" : NULL;
}

static const struct {
	const char *name;
	const char *(*run)(void);
} cases[] = {
	{ "threads", in_threads },
	{ "fork", in_fork },
	{ "vfork", in_vfork },
	{ "clone", in_clone },
	{ "clone3", in_clone3 },
	{ "handler", in_handler },
	{ "constructor", in_constructor },
	{ "exit", in_exit },
	{ "closed", in_closed },
	{ "reused", in_reused },
	{ "malloc", in_malloc },
	{ "all-closed", in_all_closed },
	{ "truncated", in_truncated },
	{ "reserved", in_reserved },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *wrong;

		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		file_argument = argv[2];
		wrong = cases[i].run();
		puts(wrong ? wrong : "ok");
		return wrong != NULL;
	}
	return 2;
}
