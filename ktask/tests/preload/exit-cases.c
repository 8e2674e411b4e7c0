/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ways in which a process with much memory ends, and who still looks at that
 * memory.  The first argument names the case.  What is printed, the exit status
 * and the files that are left must be the same with and without the shim.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "probe.h"

#define BIG_BYTES ((size_t)64 << 20)
#define BUFFER_BYTES ((size_t)1 << 20)
#define STATUS 3

static char *big;
static const char *case_name;

static void fill_pages(char *base)
{
	for (size_t pos = 0; pos < BIG_BYTES; pos += PAGE_BYTES)
		*(uint64_t *)(base + pos) = pos + 1;
}

static int is_filled(const char *base)
{
	for (size_t pos = 0; pos < BIG_BYTES; pos += PAGE_BYTES)
		if (*(const volatile uint64_t *)(base + pos) != pos + 1)
			return 0;
	return 1;
}

static void say_state(const char *what)
{
	printf("%s: %s\n", what, is_filled(big) ? "all there" : "lost");
}

static void in_atexit(void)
{
	say_state("atexit");
}

static void __attribute__((destructor)) in_destructor(void)
{
	if (big && case_name && !strcmp(case_name, "exit"))
		say_state("destructor");
}

/* What stdio holds is written behind the last handler. */
static void case_exit(void)
{
	FILE *file = fopen("exit-file", "w");

	must_hold(
		file && !setvbuf(stdout, big + BIG_BYTES, _IOFBF, BUFFER_BYTES),
		"files");
	setlocale(LC_ALL, "");
	atexit(in_atexit);
	fputs("unflushed in a file", file);
	exit(STATUS);
}

/* Allocated memory, of which the list of streams is a part. */
static void case_heap(void)
{
	FILE *file = NULL;

	for (int i = 0; i < 40000; i++) {
		char *block = malloc(1000);

		must_hold(block != NULL, "malloc");
		memset(block, i, 1000);
		if (i == 20000)
			file = fopen("exit-file", "w");
	}
	must_hold(file != NULL, "fopen");
	fputs("in the heap", file);
	exit(STATUS);
}

static void case_main(void)
{
}

static void case_exit_at_once(void)
{
	_exit(STATUS);
}

static void case_exit_group(void)
{
	syscall(SYS_exit_group, STATUS);
}

static void in_quick(void)
{
	printf("quick: %s\n", is_filled(big) ? "all there" : "lost");
	fflush(stdout);
}

static void case_quick(void)
{
	at_quick_exit(in_quick);
	quick_exit(STATUS);
}

static void leave_by_signal(int sig)
{
	_exit(sig == SIGTERM ? STATUS : 0);
}

static void case_handler(void)
{
	signal(SIGTERM, leave_by_signal);
	raise(SIGTERM);
}

static int is_reading; /* the file is there, which is to be compared */

/* Writes what it sees until the process is gone. */
static void *keep_reading(void *unused)
{
	int fd = open("exit-seen", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	__atomic_store_n(&is_reading, 1, __ATOMIC_RELEASE);
	while (is_filled(big))
		;
	return write(fd, "lost", 4) == 4 ? unused : NULL;
}

static void case_thread(void)
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, keep_reading, NULL),
		  "pthread_create");
	while (!__atomic_load_n(&is_reading, __ATOMIC_ACQUIRE))
		usleep(1000);
	exit(STATUS);
}

static int is_filled_later(void *ends)
{
	char word;

	syscall(SYS_close, ((int *)ends)[1]);
	if (read(((int *)ends)[0], &word, 1) == 0 && is_filled(big))
		syscall(SYS_write, ((int *)ends)[2], "all there", 9);
	syscall(SYS_exit, 0);
	return 0;
}

/* Shares the memory, and is no thread: it looks when its maker is gone. */
static void case_clone(void)
{
	static int ends[3];
	static char stack[65536] __attribute__((aligned(64)));

	must_hold(!pipe2(ends, O_CLOEXEC), "pipe");
	ends[2] = open("exit-clone", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must_hold(ends[2] >= 0, "exit-clone");
	must_hold(clone(is_filled_later, stack + sizeof(stack),
			CLONE_VM | SIGCHLD, ends) > 0,
		  "clone");
	fflush(stdout);
	_exit(STATUS);
}

/* In memory that the kernel reads, when its owner is gone, to tell others. */
static void case_robust(void)
{
	pthread_mutexattr_t kind;
	pthread_mutex_t *shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutex_t *own = (pthread_mutex_t *)big;
	pid_t child;

	must_hold(!pthread_mutexattr_init(&kind) &&
			  !pthread_mutexattr_setrobust(&kind,
						       PTHREAD_MUTEX_ROBUST),
		  "attributes");
	must_hold(!pthread_mutex_init(own, &kind), "mutex");
	pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
	must_hold(!pthread_mutex_init(shared, &kind), "mutex");
	fflush(stdout);
	child = fork();
	if (!child) {
		pthread_mutex_lock(shared);
		pthread_mutex_lock(own);
		exit(0);
	}
	waitpid(child, NULL, 0);
	printf("owner died: %d\n", pthread_mutex_lock(shared) == EOWNERDEAD);
	pthread_mutex_unlock(shared);
}

/* The pages of a file stay, whoever lets go of them. */
static void case_shared(void)
{
	int fd = open("exit-shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *base;

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)BIG_BYTES), "file");
	base = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must_hold(base != MAP_FAILED, "mmap");
	fill_pages(base);
	base = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		    0);
	must_hold(base != MAP_FAILED, "mmap");
	memset(base, 'x', BIG_BYTES);
	exit(STATUS);
}

static void case_locked(void)
{
	mlock(big, BIG_BYTES);
	exit(STATUS);
}

static void case_fork(void)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(STATUS);
	waitpid(child, &status, 0);
	printf("child: %d\n", WEXITSTATUS(status));
	say_state("parent");
	child = vfork();
	if (!child)
		_exit(STATUS);
	waitpid(child, &status, 0);
	printf("child: %d\n", WEXITSTATUS(status));
	say_state("parent");
}

/* A stream that was read ahead gives back what it has not used. */
static void case_input(void)
{
	char line[64];

	must_hold(fgets(line, sizeof(line), stdin) != NULL, "fgets");
	fputs(line, stdout);
	exit(STATUS);
}

static void *leave_there(void *unused)
{
	exit(STATUS);
	return unused;
}

static void case_from_thread(void)
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, leave_there, NULL),
		  "pthread_create");
	pause();
}

static void *return_later(void *unused)
{
	usleep(30000);
	puts("the last thread is done");
	return unused;
}

static void case_last_thread(void)
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, return_later, NULL),
		  "pthread_create");
	pthread_exit(NULL);
}

static void leave_at_once(int sig)
{
	_exit(STATUS);
}

/* In a handler that may find the allocator half way. */
static void case_in_malloc(void)
{
	struct itimerval soon = { .it_value.tv_usec = 2000 };
	void *volatile block; /* or the pair would be left out */

	signal(SIGALRM, leave_at_once);
	must_hold(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
	for (;;) {
		block = malloc(100000);
		free(block);
	}
}

/* Who handles faults is told of memory that is given back, and waited for; not
 * of memory that goes at the end.  Nobody reads here. */
static void watch_faults(int fault_fd)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_EVENT_REMOVE };
	struct uffdio_register range = {
		.range = { (uintptr_t)big, BIG_BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fault_fd < 0 || ioctl(fault_fd, UFFDIO_API, &api) ||
	    ioctl(fault_fd, UFFDIO_REGISTER, &range)) {
		puts("no userfaultfd");
		exit(0);
	}
}

static void case_watched(void)
{
	watch_faults((int)syscall(SYS_userfaultfd, O_CLOEXEC));
	exit(STATUS);
}

static void case_watched_by_device(void)
{
	int fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);

	watch_faults(fd < 0 ? -1 : ioctl(fd, _IO(0xAA, 0), O_CLOEXEC));
	exit(STATUS);
}

static void case_unmaps_watched(void)
{
	watch_faults((int)syscall(SYS_userfaultfd, O_CLOEXEC));
	munmap(big, BIG_BYTES);
	exit(STATUS);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "exit", case_exit },
	{ "heap", case_heap },
	{ "main", case_main },
	{ "_exit", case_exit_at_once },
	{ "exit_group", case_exit_group },
	{ "quick", case_quick },
	{ "handler", case_handler },
	{ "thread", case_thread },
	{ "clone", case_clone },
	{ "robust", case_robust },
	{ "shared", case_shared },
	{ "locked", case_locked },
	{ "fork", case_fork },
	{ "input", case_input },
	{ "from-thread", case_from_thread },
	{ "last-thread", case_last_thread },
	{ "in-malloc", case_in_malloc },
	{ "watched", case_watched },
	{ "watched-by-device", case_watched_by_device },
	{ "unmaps-watched", case_unmaps_watched },
};

int main(int argc, char **argv)
{
	big = mmap(NULL, BIG_BYTES + BUFFER_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must_hold(big != MAP_FAILED, "mmap");
	fill_pages(big);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		case_name = cases[i].name;
		cases[i].run();
		return STATUS;
	}
	return 2;
}
