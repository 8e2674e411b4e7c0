/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd makes memory of other processes ahead of their touch, and no more than its
 * bounds allow.
 *
 * A process that touches memory in order waits again and again until what lies before
 * it is made: how fast the daemon is does not matter, only that it does it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define NAME "toucher"

#define LEN TOUCH_LEN
#define NR_PAGES TOUCH_PAGES
#define BLOCK TOUCH_BLOCK
/* Made before anything is known: a sixteenth of the mapping. */
#define FIRST_PAGES (NR_PAGES / 16)
/* Of a block: the mark, and what a helper had not made when the program came. */
#define LEFT_PAGES 16
/* For the next block to be made.  Most windows of huge pages end before a block that
 * nobody makes. */
#define WAIT_MS 2000
#define WAIT_HUGE_MS 200
#define TRIES 3
#define REST_MS 100
/* Times that memory is mapped anew. */
#define MAP_ROUNDS 5

/* Of the same touch. */
static unsigned tries_before;

/* A kernel that finds errors takes ten times as long for a fault. */
static bool is_kernel_slow(void)
{
	return !access("/proc/lockdep_stats", F_OK) ||
	       !access("/sys/kernel/debug/kcsan", F_OK);
}

bool is_daemon_here(const char *test)
{
	if (!access("/ktaskd", X_OK))
		return true;
	say_verdict(true, test, "tests/vm/ktaskd is not built");
	return false;
}

pid_t start_daemon(const char *option, const char *value)
{
	/* Whatever else runs on the machine that the guest is on. */
	char *const environment[] = { "KTASK_OVERLOAD=ignore", NULL };
	char *const arguments[] = { "ktaskd", "--verbose", (char *)option,
				    (char *)value, NULL };
	pid_t pid = fork();
	sigset_t ends;
	int log;

	if (pid)
		return pid;
	log = open(DAEMON_LOG, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	if (log >= 0)
		dup2(log, 2);
	/* It waits for one; before it can, that would be the end of it. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	execve("/ktaskd", arguments, environment);
	_exit(127);
}

void note_daemon(void)
{
	char text[4096], *line, *rest = text;

	read_file(DAEMON_LOG, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (*line)
			note_line("%s", line);
}

pid_t start_named(const char *name, int (*touch)(char *memory, void *arg),
		  void *arg)
{
	const uintptr_t edge = BLOCK * PAGE - 1;
	pid_t pid = fork();
	char *memory;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	memory = map_memory(LEN + edge + 1);
	if (!memory)
		_exit(9);
	/* Where a huge page may begin, before Linux 6.7 too. */
	memory = (char *)(((uintptr_t)memory + edge) & ~edge);
	_exit(touch(memory, arg));
}

static int touch_alone(char *memory, void *touch)
{
	return (*(int (**)(char *memory))touch)(memory);
}

pid_t start_toucher(const char *name, int (*touch)(char *memory))
{
	return start_named(name, touch_alone, &touch);
}

int touch_until_served(const char *name, int (*touch)(char *memory))
{
	int status = TOO_FEW;

	for (tries_before = 0; status == TOO_FEW && tries_before < TRIES;
	     tries_before++)
		status = status_of(start_toucher(name, touch));
	tries_before = 0;
	return status;
}

size_t count_present(char *memory)
{
	static unsigned char seen[NR_PAGES];
	size_t nr = 0;

	if (mincore(memory, LEN, seen))
		return 0;
	for (size_t i = 0; i < NR_PAGES; i++)
		nr += seen[i] & 1;
	return nr;
}

/* But for the pages that are left to the program. */
static bool is_block_made(char *memory, size_t page)
{
	unsigned char seen[BLOCK];
	size_t nr = 0;

	mincore(memory + page * PAGE, sizeof(seen) * PAGE, seen);
	for (size_t i = 0; i < sizeof(seen); i++)
		nr += seen[i] & 1;
	return nr >= BLOCK - LEFT_PAGES;
}

/* Behind the first pages of a block, which tell that the program has come: wait for
 * the next block, or the one behind a huge page that is left to the program. */
static void wait_for_pages(char *memory, size_t page, bool huge, int *left_ms)
{
	size_t next = page - page % BLOCK + BLOCK;
	int wait_ms = (huge ? WAIT_HUGE_MS : WAIT_MS) << tries_before;

	if (page % BLOCK != BLOCK / 4 || next + 2 * BLOCK > NR_PAGES)
		return;
	if (tries_before)
		sleep_ms(REST_MS * tries_before);
	for (int ms = 0; ms < wait_ms; ms += 5) {
		if (*left_ms <= 0 || is_block_made(memory, next) ||
		    (huge && is_block_made(memory, next + BLOCK)))
			return;
		sleep_ms(5);
		*left_ms -= 5;
	}
}

static char stored_in(size_t page)
{
	return (char)(page | 1);
}

bool touch_pages(char *memory, size_t first, size_t end, bool huge)
{
	int left_ms = TOUCH_WAITS_MS;

	for (size_t page = first; page < end; page++) {
		char *at = memory + page * PAGE;

		/* A read would be a fault of its own. */
		*at = stored_in(page);
		if (at[1] || at[PAGE - 1])
			return false;
		if (page >= first + 2 * BLOCK)
			wait_for_pages(memory, page, huge, &left_ms);
	}
	return true;
}

bool has_touched(const char *memory, size_t nr)
{
	for (size_t page = 0; page < nr; page++)
		if (memory[page * PAGE] != stored_in(page))
			return false;
	return true;
}

long count_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

int touch_first_pages(char *memory, size_t nr)
{
	long faults, most = (long)(is_kernel_slow() ? nr - BLOCK : nr / 2);

	madvise(memory, LEN, MADV_NOHUGEPAGE);
	faults = count_faults();
	if (!touch_pages(memory, 0, nr, false))
		return 1;
	return count_faults() - faults < most ? 0 : TOO_FEW;
}

int touch_all(char *memory)
{
	int status = touch_first_pages(memory, NR_PAGES);

	return status || has_touched(memory, NR_PAGES) ? status : 1;
}

static int touch_huge(char *memory)
{
	long faults = count_faults(), nr_blocks = NR_PAGES / BLOCK / 2;

	/* A fault makes 2 MiB.  A window needs one that is left to the program, and the
	 * bound on waste allows few of them. */
	if (!touch_pages(memory, 0, NR_PAGES / 2, true))
		return 1;
	return count_faults() - faults < nr_blocks ? 0 : TOO_FEW;
}

int check_bound(char *memory, size_t touched)
{
	size_t present = 0, before;

	do {
		before = present;
		sleep_ms(500);
		present = count_present(memory);
	} while (present != before);
	if (present <= touched + FIRST_PAGES + touched * 3 / 100)
		return 0;
	return 3;
}

static int touch_a_part(char *memory)
{
	int status = touch_first_pages(memory, NR_PAGES / 3);

	return status ? status : check_bound(memory, NR_PAGES / 3);
}

/* After it was served: the daemon looks at this process, and can make memory of it. */
static int touch_at_random(char *memory)
{
	char *other = map_memory(LEN);
	int status;

	if (!other)
		return 9;
	/* Neighbours would count as one mapping. */
	munmap(other + LEN - PAGE, PAGE);
	status = touch_first_pages(other, NR_PAGES / 4);
	if (status)
		return status;
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	for (int i = 0; i < 4000; i++) {
		memory[(size_t)rand() % NR_PAGES * PAGE] = 1;
		if (i % 1000 == 0)
			sleep_ms(100);
	}
	/* Fewer, if some were chosen twice. */
	return check_bound(memory, 4000);
}

/* The child has its own copy of what was there, and nothing else. */
static int fork_in_between(char *memory)
{
	int status = touch_first_pages(memory, NR_PAGES / 4);
	pid_t pid;

	if (status)
		return status;
	pid = fork();
	if (pid == 0)
		_exit(memory[0] != 1 || memory[LEN - PAGE] != 0);
	if (!touch_pages(memory, NR_PAGES / 4, NR_PAGES / 2, false))
		return 1;
	return status_of(pid);
}

static int exec_in_between(char *memory)
{
	int status = touch_first_pages(memory, NR_PAGES / 4);

	if (status)
		return status;
	execl("/ktaskd", NAME, "--version", (char *)NULL);
	return 1;
}

/* Return: whether something lies ahead, before long. */
static bool await_pages(char *memory, size_t touched)
{
	for (int ms = 0; ms < WAIT_MS << tries_before; ms += 10) {
		if (count_present(memory) > touched)
			return true;
		sleep_ms(10);
	}
	return false;
}

/* What was touched goes and comes again, at the same place. */
static int map_in_a_loop(char *memory)
{
	int nr_served = 0;

	for (int i = 0; i < MAP_ROUNDS; i++) {
		madvise(memory, LEN, MADV_NOHUGEPAGE);
		for (size_t page = 0; page < NR_PAGES / 8; page++) {
			if (page == NR_PAGES / 16)
				nr_served += await_pages(memory, page);
			if (memory[page * PAGE]++)
				return 1;
		}
		if (mmap(memory, LEN, PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) != memory)
			return 4;
	}
	return nr_served ? 0 : TOO_FEW;
}

/* ---- tests ---- */

static void one_touch(const char *test, const char *sizes,
		      int (*touch)(char *memory))
{
	pid_t daemon;
	int status, gone;

	if (!is_daemon_here(test))
		return;
	write_file(PAGE_SIZES, sizes);
	/* Where no huge page is left, a fault makes a small one. */
	write_file("/proc/sys/vm/compact_memory", "1");
	daemon = start_daemon("--name", NAME);
	status = touch_until_served(NAME, touch);
	kill(daemon, SIGTERM);
	gone = status_of(daemon);
	if (!status && !gone)
		say_verdict(true, test, NULL);
	else
		say_verdict(false, test, "status %d, the daemon's %d", status,
			    gone);
	if (status || gone)
		note_daemon();
}

bool begin_small_pages(struct page_sizes *before)
{
	read_file(PAGE_SIZES, before->text, sizeof(before->text));
	write_file(PAGE_SIZES, "never");
	read_file(NUMA_BALANCING, before->balancing, sizeof(before->balancing));
	write_file(NUMA_BALANCING, "0");
	return !is_kernel_slow() &&
	       access("/sys/devices/system/node/node1", F_OK);
}

void end_small_pages(const struct page_sizes *before)
{
	const char *text = before->text;

	write_file(PAGE_SIZES, strstr(text, "[always]")	   ? "always"
			       : strstr(text, "[madvise]") ? "madvise"
							   : "never");
	write_file(NUMA_BALANCING, before->balancing);
}

void test_made_ahead(void)
{
	struct page_sizes sizes;
	bool rest = begin_small_pages(&sizes);

	one_touch("a-served-process-may-exec", "never", exec_in_between);
	one_touch("a-served-process-may-map-anew", "never", map_in_a_loop);
	if (!is_kernel_slow())
		one_touch("memory-is-made-ahead-from-outside", "never",
			  touch_all);
	if (!rest)
		goto end;
	one_touch("huge-pages-are-made-ahead-from-outside", "always",
		  touch_huge);
	one_touch("what-is-wasted-from-outside-is-bounded", "never",
		  touch_a_part);
	one_touch("random-touches-are-left-alone-from-outside", "never",
		  touch_at_random);
	one_touch("a-served-process-may-fork", "never", fork_in_between);
end:
	end_small_pages(&sizes);
}
