/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs whose children touch memory that all of them share.  Each ends with "ok", or
 * tells what it found.  Children call an allocator now and then, as most programs do.
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ahead_cases.h"

#define NR_PAGES (LEN / PAGE_BYTES)
/* What may be made in vain of the mapping, by all processes together, besides 3 %. */
#define FIRST_PAGES (LEN / PAGE_BYTES / 16)
#define CHILDREN 100
/* More than a child waits before it watches. */
#define CHILD_MS 10

static char *shared; /* LEN */
/* Each page: 1: somebody is about to touch it; 2: it was touched. */
static unsigned char *touched;

static void *map_shared(size_t len)
{
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	return base;
}

static void map_all(void)
{
	shared = map_shared(LEN);
	touched = map_shared(NR_PAGES);
}

static void allocate_often(void)
{
	for (int i = 0; i < 16; i++) {
		void *volatile block = malloc(100);

		free(block);
	}
}

static void touch_page(size_t page)
{
	if (!touched[page])
		touched[page] = 1;
	*(uint64_t *)(shared + page * PAGE_BYTES) = page * 2654435761u + 1;
	atomic_signal_fence(memory_order_seq_cst);
	touched[page] = 2;
}

static void touch_pages(size_t from, size_t to)
{
	for (size_t page = from; page < to; page++)
		touch_page(page);
}

static size_t pages_touched(void)
{
	size_t nr = 0;

	for (size_t page = 0; page < NR_PAGES; page++)
		nr += touched[page] > 0;
	return nr;
}

/* What is present and nobody has touched. */
static size_t pages_made(void)
{
	return count_present(shared, LEN) - pages_touched();
}

static void check_shared(void)
{
	size_t stored = pages_touched(), made = pages_made();

	if (made > FIRST_PAGES + stored * 3 / 100)
		printf("%zu pages touched, %zu made in vain\n", stored, made);
	for (size_t page = 0; page < NR_PAGES; page++)
		if (touched[page] == 2)
			must_hold(*(uint64_t *)(shared + page * PAGE_BYTES) ==
					  page * 2654435761u + 1,
				  "contents");
}

static pid_t fork_child(void (*run)(size_t arg), size_t arg)
{
	pid_t child = fork();

	must_hold(child >= 0, "fork");
	if (child)
		return child;
	run(arg);
	exit(0);
}

static void end_child(pid_t child, int signal)
{
	int status;

	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	must_hold(signal ? WIFSIGNALED(status) && WTERMSIG(status) == signal
			 : WIFEXITED(status) && !WEXITSTATUS(status),
		  "a child");
}

/* ---- what children do ---- */

/* Block by block, until something is made ahead of it. */
static void touch_until_made(size_t unused)
{
	const size_t some = BLOCK / PAGE_BYTES;

	sleep_ms(CHILD_MS);
	for (size_t at = 0, waited = 0; at < NR_PAGES; at += some) {
		touch_pages(at, at + some);
		allocate_often();
		for (int i = 0; i < 200 && waited < WAIT_MS; i++) {
			if (pages_made())
				return;
			sleep_ms(5);
			waited += 5;
		}
	}
	must_hold(false, "nothing was made ahead");
}

static void touch_in_order(size_t from)
{
	const size_t some = BLOCK / PAGE_BYTES;

	sleep_ms(CHILD_MS);
	for (size_t at = from; at < from + NR_PAGES / 4 && at < NR_PAGES;
	     at += some) {
		touch_pages(at, at + some < NR_PAGES ? at + some : NR_PAGES);
		allocate_often();
		sleep_ms(1);
	}
}

static void touch_at_random(size_t seed)
{
	uint64_t random = seed * 2654435761u + 1;

	sleep_ms(CHILD_MS);
	for (size_t i = 0; i < 2000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		touch_page((random >> 33) % NR_PAGES);
		if (!(i % 100)) {
			allocate_often();
			sleep_ms(1);
		}
	}
}

static void touch_for_ever(size_t from)
{
	for (;;)
		touch_in_order(from);
}

/* It has one thread, and has called its allocator. */
static void end_at_once(size_t unused)
{
	allocate_often();
	must_hold(nr_threads() == 1, "a thread for nothing");
}

/* ---- cases ---- */

static void is_helped(const char *how)
{
	map_all();
	end_child(fork_child(touch_until_made, 0), 0);
	check_shared();
}

static void several_at_once(const char *how)
{
	pid_t children[8];

	map_all();
	for (size_t i = 0; i < 8; i++)
		children[i] = i % 4 == 3 ? fork_child(touch_at_random, i)
					 : fork_child(touch_in_order,
						      i % 3 * NR_PAGES / 3);
	for (size_t i = 0; i < 8; i++)
		end_child(children[i], 0);
	check_shared();
}

static void is_killed(const char *how)
{
	map_all();
	for (size_t i = 0; i < 12; i++) {
		pid_t child = fork_child(touch_for_ever, i * NR_PAGES / 12);

		sleep_ms(20 + 10 * (long)i);
		must_hold(!kill(child, SIGKILL), "kill");
		end_child(child, SIGKILL);
		check_shared();
	}
}

static void hundred_children(const char *how)
{
	pid_t children[CHILDREN];

	map_all();
	for (size_t i = 0; i < CHILDREN; i++)
		children[i] =
			fork_child(i % 5 ? touch_in_order : touch_at_random,
				   i * NR_PAGES / CHILDREN);
	for (size_t i = 0; i < CHILDREN; i++)
		end_child(children[i], 0);
	check_shared();
}

static void starts_nothing(const char *how)
{
	map_all();
	for (int i = 0; i < 20; i++)
		end_child(fork_child(end_at_once, 0), 0);
	must_hold(nr_threads() == 1, "a thread of the parent");
	must_hold(!pages_made(), "pages for nothing");
}

static void exec_at_once(size_t unused)
{
	execlp("true", "true", (char *)NULL);
	must_hold(false, "exec");
}

static void children_exec(const char *how)
{
	map_all();
	for (int i = 0; i < 20; i++)
		end_child(fork_child(exec_at_once, 0), 0);
	must_hold(!pages_made(), "pages for nothing");
}

/* Another process gives it back: nothing is made there again. */
static void is_given_back(const char *how)
{
	pid_t child;
	size_t there;

	map_all();
	end_child(fork_child(touch_until_made, 0), 0);
	child = fork_child(touch_for_ever, NR_PAGES / 2);
	sleep_ms(100);
	must_hold(!madvise(shared, LEN / 2, MADV_REMOVE), "MADV_REMOVE");
	memset(touched, 0, NR_PAGES / 2);
	sleep_ms(200);
	must_hold(!kill(child, SIGKILL), "kill");
	end_child(child, SIGKILL);
	there = count_present(shared, LEN / 2);
	if (there)
		printf("%zu pages came back\n", there);
	check_shared();
}

/* Two MiB in 10 ms, which takes more than a second. */
static void touch_slowly(size_t unused)
{
	const size_t some = BLOCK / PAGE_BYTES;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep_ms(CHILD_MS);
	for (size_t at = 0; at < NR_PAGES; at += some) {
		touch_pages(at, at + some);
		allocate_often();
		sleep_ms(10);
	}
	sleep_ms(WAIT_MS);
}

/* By another process, which touches others meanwhile. */
static void wait_until_made(void)
{
	for (int ms = 0; ms < WAIT_MS; ms += 5) {
		size_t present = count_present(shared, LEN);

		if (present > pages_touched())
			return;
		sleep_ms(5);
	}
	must_hold(false, "nothing was made ahead");
}

/* Behind strict mode not even the time may be read: x86 refuses the instruction. */
static void allocate_in_strict_mode(size_t unused)
{
	allocate_often();
	sleep_ms(CHILD_MS);
	must_hold(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "strict mode");
	allocate_often();
	syscall(SYS_exit, 0);
}

static void confines_itself(const char *how)
{
	map_all();
	end_child(fork_child(allocate_in_strict_mode, 0), 0);
}

/* It lies where the parent has what no child inherits. */
static void touch_file_there(size_t unused)
{
	const size_t some = BLOCK / PAGE_BYTES;
	int file = memfd_create("sparse", 0);

	must_hold(file >= 0 && !ftruncate(file, LEN), "memfd_create");
	must_hold(mmap(shared, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		       0) == shared,
		  "mmap");
	sleep_ms(CHILD_MS);
	for (size_t at = 0; at < NR_PAGES / 4; at += some) {
		touch_pages(at, at + some);
		allocate_often();
		sleep_ms(5);
	}
	must_hold(!pages_made(), "pages of a file");
}

static void is_not_inherited(const char *how)
{
	map_all();
	must_hold(!madvise(shared, LEN, MADV_DONTFORK), "MADV_DONTFORK");
	end_child(fork_child(touch_file_there, 0), 0);
}

/* A page that is made elsewhere is no fault any more. */
static void register_faults(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)shared, .len = LEN },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	must_hold(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
			  !ioctl(fd, UFFDIO_REGISTER, &range),
		  "userfaultfd");
}

static size_t pages_come(void)
{
	static unsigned char before[NR_PAGES], after[NR_PAGES];
	size_t nr = 0;

	must_hold(!mincore(shared, LEN, before), "mincore");
	sleep_ms(300);
	must_hold(!mincore(shared, LEN, after), "mincore");
	for (size_t page = 0; page < NR_PAGES; page++)
		nr += !(before[page] & 1) && after[page] & 1 && !touched[page];
	return nr;
}

/* Once one process handles its faults nothing is made by any other. */
static void faults_are_handled(const char *how)
{
	pid_t child;
	size_t come;

	map_all();
	child = fork_child(touch_slowly, 0);
	wait_until_made();
	register_faults();
	/* What is being made at this moment. */
	sleep_ms(50);
	come = pages_come();
	must_hold(!kill(child, SIGKILL), "kill");
	end_child(child, SIGKILL);
	if (come)
		printf("%zu pages that nobody touched came\n", come);
}

/* Both are refused to a process that has threads, or whose threads share a directory. */
static void leave_users(size_t unused)
{
	touch_until_made(0);
	must_hold(nr_threads() > 1, "a watcher");
	must_hold(!syscall(SYS_unshare, CLONE_NEWUSER) || errno != EINVAL,
		  "unshare saw threads");
}

static void enter_mounts(size_t unused)
{
	int file = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	must_hold(file >= 0, "/proc/self/ns/mnt");
	touch_until_made(0);
	must_hold(!syscall(SYS_setns, file, CLONE_NEWNS) || errno != EINVAL,
		  "setns saw threads");
}

static void changes_namespaces(const char *how)
{
	map_all();
	end_child(fork_child(leave_users, 0), 0);
	end_child(fork_child(enter_mounts, 0), 0);
}

/* Return: the page behind those that were touched; in order, and a thread came. */
static size_t touch_until_watched(size_t at)
{
	for (int ms = 0; ms < WAIT_MS; ms += 5) {
		if (at < NR_PAGES / 2)
			touch_pages(at, at + 16);
		at += at < NR_PAGES / 2 ? 16 : 0;
		allocate_often();
		if (nr_threads() > 1)
			return at;
		sleep_ms(5);
	}
	must_hold(false, "nothing was made ahead");
	return 0;
}

/* A program counts its threads, and so do limits. */
static void rest_and_continue(size_t unused)
{
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		at = touch_until_watched(at);
		for (int ms = 0; ms < WAIT_MS && nr_threads() > 1; ms += 50)
			sleep_ms(50);
		must_hold(nr_threads() == 1, "a thread where nothing moves");
	}
	touch_in_order(at);
}

static void rests_and_continues(const char *how)
{
	map_all();
	end_child(fork_child(rest_and_continue, 0), 0);
	check_shared();
}

static void wait_for_one_thread(size_t unused)
{
	touch_until_made(0);
	must_hold(!madvise(shared, LEN / 2, MADV_REMOVE), "MADV_REMOVE");
	for (int ms = 0; ms < 2 * WAIT_MS && nr_threads() > 1; ms += 50)
		sleep_ms(50);
	must_hold(nr_threads() == 1, "a thread that watches nothing");
}

/* Nothing will be made of it any more. */
static void gives_up(const char *how)
{
	map_all();
	end_child(fork_child(wait_for_one_thread, 0), 0);
}

static atomic_size_t *nr_resting;

static void rest_with_many(size_t unused)
{
	for (int i = 0; i < 30; i++) {
		allocate_often();
		sleep_ms(10);
	}
	for (int ms = 0; ms < WAIT_MS && nr_threads() > 1; ms += 50)
		sleep_ms(50);
	atomic_fetch_add(nr_resting, nr_threads() == 1);
	for (;;)
		pause();
}

/* As a group of processes allows, of which the first ones have come to rest. */
static void forks_to_the_limit(const char *how)
{
	static pid_t children[10 * CHILDREN];
	size_t nr = 0;

	map_all();
	nr_resting = map_shared(PAGE_BYTES);
	for (;;) {
		for (int ms = 0; ms < WAIT_MS && nr == CHILDREN &&
				 atomic_load(nr_resting) < CHILDREN;
		     ms += 10)
			sleep_ms(10);
		children[nr] = fork();
		if (!children[nr])
			rest_with_many(0);
		if (children[nr] < 0)
			break;
		must_hold(++nr < 10 * CHILDREN, "a limit");
	}
	must_hold(errno == EAGAIN, "fork");
	printf("%zu children\n", nr);
	for (size_t i = 0; i < nr; i++)
		must_hold(!kill(children[i], SIGKILL), "kill");
	for (size_t i = 0; i < nr; i++)
		end_child(children[i], SIGKILL);
}

static void unmap_it(size_t unused)
{
	touch_until_made(0);
	must_hold(!munmap(shared, LEN), "munmap");
	must_hold(map_shared(LEN) != NULL, "another one");
	sleep_ms(50);
}

/* One process unmaps it, and others go on. */
static void is_unmapped(const char *how)
{
	pid_t child;

	map_all();
	child = fork_child(touch_in_order, NR_PAGES / 2);
	end_child(fork_child(unmap_it, 0), 0);
	end_child(child, 0);
	check_shared();
}

/* Mapped, inherited and gone, again and again: nothing of the shim's stays. */
static void comes_and_goes(const char *how)
{
	size_t before = 0;

	for (int i = 0; i < 40; i++) {
		char line[512];
		size_t nr = 0;
		FILE *file;

		map_all();
		end_child(fork_child(end_at_once, 0), 0);
		must_hold(!munmap(shared, LEN) && !munmap(touched, NR_PAGES),
			  "munmap");
		file = fopen("/proc/self/maps", "r");
		while (file && fgets(line, sizeof(line), file))
			nr++;
		if (file)
			fclose(file);
		before = i < 2 ? nr : before;
		must_hold(nr <= before + 1, "mappings are left");
	}
}

int main(int argc, char **argv)
{
	static const struct ahead_case cases[] = {
		{ "helped", is_helped },
		{ "several", several_at_once },
		{ "killed", is_killed },
		{ "hundred", hundred_children },
		{ "nothing", starts_nothing },
		{ "execs", children_exec },
		{ "given-back", is_given_back },
		{ "unmapped", is_unmapped },
		{ "rests", rests_and_continues },
		{ "gives-up", gives_up },
		{ "to-the-limit", forks_to_the_limit },
		{ "confined", confines_itself },
		{ "not-inherited", is_not_inherited },
		{ "faults", faults_are_handled },
		{ "namespaces", changes_namespaces },
		{ "comes-and-goes", comes_and_goes },
	};

	return run_case(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
