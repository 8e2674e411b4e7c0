/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that touch memory in order on a bad day: with little memory, behind a filter of
 * system calls, in many processes, beside pages of other kinds.  Each checks its own
 * contents and ends with "ok", or tells what it found.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "refuse.h"
#include "touches.h"

static char *map_pages(size_t len)
{
	char *base = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	return base;
}

/* In order, with time for the watcher to begin a window after each block. */
static void fill_slowly(char *base, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += BLOCK) {
		fill_pages(base, at, to - at < BLOCK ? to : at + BLOCK);
		sleep_ms(5);
	}
}

/* As far as anything is made ahead of it; without the shim nothing would be. */
static size_t touch_some(char *base, size_t len)
{
	if (getenv("LD_PRELOAD")) {
		size_t at = touch_until_helped(base, len);

		must_hold(at, "nothing was made ahead");
		return at;
	}
	fill_pages(base, 0, len / 4);
	return len / 4;
}

/* ---- little memory ---- */

/* Touched of a mapping that is larger, so that what is made ahead may be too much. */
#define FILLED (96 * MIB)
#define MAPPED (128 * MIB)

/* @how: "waits" for what is made ahead, or goes on without. */
static char *fill_most(const char *how)
{
	char *base = map_pages(MAPPED);
	size_t at = 0;

	if (!strcmp(how, "waits"))
		at = touch_until_helped(base, FILLED);
	fill_slowly(base, at, FILLED);
	return base;
}

static void fill_and_check(const char *how)
{
	check_pages(fill_most(how), 0, FILLED);
}

/* A mapping after the other, which was not filled to its end. */
static void fills_two(const char *how)
{
	char *first = fill_most(how), *second = map_pages(MAPPED / 2);

	fill_slowly(second, 0, MAPPED / 2);
	check_pages(first, 0, FILLED);
	check_pages(second, 0, MAPPED / 2);
}

/* The child copies what was touched, and goes on by itself. */
static void fills_and_forks(const char *how)
{
	char *base = map_pages(MAPPED);
	size_t at = 0;
	int status;
	pid_t child;

	if (!strcmp(how, "waits"))
		at = touch_until_helped(base, FILLED / 2);
	fill_slowly(base, at, FILLED / 2);
	child = fork();
	must_hold(child >= 0, "fork");
	if (!child) {
		fill_slowly(base, 0, FILLED);
		check_pages(base, 0, FILLED);
		_exit(7);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFSIGNALED(status))
		kill(getpid(), WTERMSIG(status));
	must_hold(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
	fill_slowly(base, FILLED / 2, FILLED);
	check_pages(base, 0, FILLED);
}

/* Once its mapping is watched, something else takes the memory: what is left is enough
 * for the mapping itself. */
static void fills_late(const char *unused)
{
	char *base = map_pages(FILLED), *other;

	other = mmap(NULL, 2 * FILLED, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must_hold(other != MAP_FAILED, "mmap");
	for (size_t at = 0; at < 2 * FILLED; at += PAGE_BYTES)
		other[at] = 1;
	fill_slowly(base, 0, FILLED);
	check_pages(base, 0, FILLED);
}

/* ---- filters of system calls ---- */

#define SEEN (128 * MIB)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* As on a kernel that cannot make pages on advice. */
static void fill_on_an_older_kernel(const char *how)
{
	must_hold(refuse_call(SYS_madvise, 2, MADV_POPULATE_WRITE,
			      MADV_POPULATE_WRITE, EINVAL),
		  "filter");
	fill_and_check(how);
}

/* @how: before|middle|all errno|kill NUMBER; all: threads, in the middle */
static void fill_filtered(const char *how)
{
	char when[16], what[16], *base;
	unsigned number, action;
	size_t at = 0;

	must_hold(sscanf(how, "%15s %15s %u", when, what, &number) == 3, how);
	action = strcmp(what, "kill") ? SECCOMP_RET_ERRNO | EPERM
				      : SECCOMP_RET_KILL_PROCESS;
	if (!strcmp(when, "before"))
		must_hold(refuse_with(number, action, REFUSE_SECCOMP),
			  "filter");
	base = map_pages(SEEN);
	if (strcmp(when, "before")) {
		at = touch_some(base, SEEN);
		must_hold(refuse_with(number, action,
				      strcmp(when, "all") ? REFUSE_SECCOMP
							  : REFUSE_SECCOMP_ALL),
			  "filter");
	}
	fill_slowly(base, at, SEEN);
	check_pages(base, 0, SEEN);
}

/* ---- many processes ---- */

#define NR_CHILDREN 200
#define NR_AT_ONCE 20
#define CHILD_BYTES (64 * MIB)

static size_t count_threads(void)
{
	struct stat tasks;

	must_hold(!stat("/proc/self/task", &tasks), "/proc/self/task");
	return tasks.st_nlink - 2;
}

static void be_child(void)
{
	char *base = malloc(CHILD_BYTES), *first = page_start(base);

	must_hold(base != NULL, "malloc");
	fill_slowly(first, 0, BLOCK);
	sleep_ms(20);
	check_pages(first, 0, BLOCK);
	exit(0);
}

static void wait_for_child(void)
{
	int status;

	must_hold(wait(&status) > 0, "wait");
	if (status)
		printf("a child ended with %x\n", (unsigned)status);
}

/* The parent is being made ahead of, too.  What its children leave becomes its child. */
static void forks_many(const char *unused)
{
	char *base = map_pages(CHILD_BYTES);
	size_t at = touch_some(base, CHILD_BYTES);

	must_hold(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper");
	for (int i = 0; i < NR_CHILDREN; i++) {
		pid_t child;

		if (i >= NR_AT_ONCE)
			wait_for_child();
		child = fork();
		must_hold(child >= 0, "fork");
		if (!child)
			be_child();
	}
	for (int i = 0; i < NR_AT_ONCE; i++)
		wait_for_child();
	must_hold(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD,
		  "a process was left");
	fill_slowly(base, at, CHILD_BYTES);
	check_pages(base, 0, CHILD_BYTES);
	must_hold(!munmap(base, CHILD_BYTES), "munmap");
	/* The watcher stays; helpers leave when they idle. */
	for (int i = 0; i < WAIT_MS / 5 && count_threads() > 2; i++)
		sleep_ms(5);
	must_hold(count_threads() <= 2, "threads were left");
}

/* ---- as many processes as the user may have ---- */

#define MOST_PROCESSES 48

/* What the parent touched is there until it closes its end. */
static void wait_as_child(const char *base, size_t len, const int *ends)
{
	char byte;

	close(ends[1]);
	must_hold(read(ends[0], &byte, 1) == 0, "read");
	check_pages(base, 0, len);
	_exit(0);
}

/* Return: children, until fork fails. */
static int fork_to_the_limit(const char *base, size_t len, const int *ends)
{
	for (int nr = 0; nr < 2 * MOST_PROCESSES; nr++) {
		pid_t child = fork();

		if (!child)
			wait_as_child(base, len, ends);
		if (child < 0) {
			must_hold(errno == EAGAIN, "fork");
			return nr;
		}
	}
	return -1;
}

/* Before the program starts ("before"), or once memory was made ahead ("later"), the user
 * may have no more processes.  The watcher sees that and ends. */
static void forks_to_the_limit(const char *when)
{
	const struct rlimit limit = { MOST_PROCESSES, MOST_PROCESSES };
	char *base = map_pages(CHILD_BYTES);
	size_t at = 0;
	int ends[2], nr;

	if (strcmp(when, "before")) {
		at = touch_some(base, CHILD_BYTES);
		must_hold(!setrlimit(RLIMIT_NPROC, &limit), "setrlimit");
		for (int i = 0; i < WAIT_MS / 5 && count_threads() > 1; i++) {
			fill_pages(base, at, at + PAGE_BYTES);
			sleep_ms(5);
		}
	} else {
		fill_slowly(base, 0, CHILD_BYTES / 2);
		at = CHILD_BYTES / 2;
	}
	must_hold(!pipe(ends), "pipe");
	nr = fork_to_the_limit(base, at, ends);
	printf("%d children\n", nr);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < nr; i++)
		wait_for_child();
	fill_slowly(base, at, CHILD_BYTES);
	check_pages(base, 0, CHILD_BYTES);
}

/* ---- pages of other kinds ---- */

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#define GUARDED (2 * PAGE_BYTES)
#define NR_GUARDS 24
#define NR_EARLY 20

static sigjmp_buf after_fault;
static void *volatile fault_at;

static void leave_fault(int sig, siginfo_t *info, void *context)
{
	fault_at = info->si_addr;
	siglongjmp(after_fault, 1);
}

static bool write_faults(char *page)
{
	fault_at = NULL;
	if (sigsetjmp(after_fault, 1))
		return fault_at == page;
	*(volatile char *)page = 1;
	return false;
}

static bool is_within(const size_t *starts, size_t nr, size_t at)
{
	for (size_t i = 0; i < nr; i++)
		if (at >= starts[i] && at < starts[i] + GUARDED)
			return true;
	return false;
}

static void install_guard(char *base, size_t at)
{
	if (madvise(base + at, GUARDED, MADV_GUARD_INSTALL)) {
		must_hold(errno == EINVAL, "madvise");
		puts("no guard pages");
		exit(0);
	}
}

/* Some before anything is made, some where it was made ahead. */
static void fill_guarded(const char *unused)
{
	struct sigaction action = { .sa_sigaction = leave_fault,
				    .sa_flags = SA_SIGINFO };
	char *base = map_pages(2 * SEEN);
	size_t starts[NR_GUARDS], at;

	must_hold(!sigaction(SIGSEGV, &action, NULL), "sigaction");
	for (size_t i = 0; i < NR_EARLY; i++) {
		starts[i] = SEEN + i * (6 * MIB + 19 * PAGE_BYTES);
		install_guard(base, starts[i]);
	}
	at = touch_some(base, SEEN);
	for (size_t i = NR_EARLY; i < NR_GUARDS; i++) {
		starts[i] = at + (i - NR_EARLY + 1) * 101 * PAGE_BYTES;
		install_guard(base, starts[i]);
	}
	for (; at < 2 * SEEN; at += PAGE_BYTES) {
		if (is_within(starts, NR_GUARDS, at))
			must_hold(write_faults(base + at),
				  "a guard page was lost");
		else
			fill_pages(base, at, at + PAGE_BYTES);
		if (at % MIB == 0)
			sleep_ms(2);
	}
	for (at = 0; at < 2 * SEEN; at += PAGE_BYTES) {
		if (is_within(starts, NR_GUARDS, at))
			must_hold(write_faults(base + at),
				  "a guard page was lost");
		else
			check_pages(base, at, at + PAGE_BYTES);
	}
	for (size_t i = 0; i < NR_GUARDS; i++) {
		must_hold(
			!madvise(base + starts[i], GUARDED, MADV_GUARD_REMOVE),
			"madvise");
		must_hold(!base[starts[i]],
			  "a page behind a guard is not empty");
	}
}

static size_t locked_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	size_t kib = 0;
	char line[128];

	must_hold(status != NULL, "status");
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmLck:", 6))
			kib = account_value(line);
	fclose(status);
	return kib;
}

#define LOCKED (4 * MIB)

static void lock_part(char *base, size_t at)
{
	int rc = mlock(base + at, LOCKED);

	printf("mlock: %d, %zu KiB\n", rc, locked_kib());
	if (!rc && count_present(base + at, LOCKED) != LOCKED / PAGE_BYTES)
		puts("locked pages are absent");
}

/* Before and behind what is touched, and in what was made ahead. */
static void fill_locked(const char *unused)
{
	char *base = map_pages(2 * SEEN);
	size_t at;

	lock_part(base, SEEN);
	at = touch_some(base, SEEN - BLOCK);
	lock_part(base, at);
	lock_part(base, SEEN + 32 * MIB);
	fill_slowly(base, at, 2 * SEEN);
	check_pages(base, 0, 2 * SEEN);
	if (count_present(base, 2 * SEEN) != 2 * SEEN / PAGE_BYTES)
		puts("locked pages are absent");
	must_hold(!munlock(base, SEEN + LOCKED), "munlock");
	printf("munlock: %zu KiB\n", locked_kib());
}

/* Side by side with one that is made ahead of its touches.  Huge pages would be made
 * by the kernel. */
static void reserves_not(const char *unused)
{
	char *space = guarded_space(2 * SEEN), *base;
	size_t touched, present;

	must_hold(mmap(space, SEEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0) == space,
		  "mmap");
	madvise(space, SEEN, MADV_NOHUGEPAGE);
	base = mmap(space + SEEN, SEEN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must_hold(base == space + SEEN, "mmap");
	touched = touch_some(base, SEEN);
	for (size_t at = 0; at < SEEN / 2; at += BLOCK) {
		fill_slowly(space, at, at + BLOCK);
		if (touched < SEEN)
			fill_pages(base, touched, touched + BLOCK);
		touched += touched < SEEN ? BLOCK : 0;
	}
	present = count_present(space, SEEN);
	if (present != SEEN / 2 / PAGE_BYTES)
		printf("%zu pages too many\n", present - SEEN / 2 / PAGE_BYTES);
	check_pages(space, 0, SEEN / 2);
	check_pages(base, 0, touched);
}

static const struct {
	const char *name;
	void (*run)(const char *how);
} cases[] = {
	{ "fills", fill_and_check },
	{ "fills-late", fills_late },
	{ "fills-two", fills_two },
	{ "fills-and-forks", fills_and_forks },
	{ "filtered", fill_filtered },
	{ "forks-many", forks_many },
	{ "forks-to-the-limit", forks_to_the_limit },
	{ "older-kernel", fill_on_an_older_kernel },
	{ "guards", fill_guarded },
	{ "locks", fill_locked },
	{ "reserves-not", reserves_not },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(argc > 2 ? argv[2] : "");
		puts("ok");
		return 0;
	}
	return 2;
}
