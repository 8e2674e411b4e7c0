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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define NAME "toucher"
#define GROUPS "/sys/fs/cgroup"
#define GROUP GROUPS "/ahead"
/* Below it, one for each process: what the first had may still be charged when the second
 * begins. */
#define FREE_GROUP GROUP "/free"
#define LIMITED_GROUP GROUP "/limited"

#define LEN TOUCH_LEN
#define NR_PAGES TOUCH_PAGES
#define BLOCK 512
/* Made before anything is known: a sixteenth of the mapping. */
#define FIRST_PAGES (NR_PAGES / 16)
/* Of a block: the mark, and what a helper had not made when the program came. */
#define LEFT_PAGES 16
/* For the next block to be made.  Most windows of huge pages end before a block that
 * nobody makes. */
#define WAIT_MS 2000
#define WAIT_HUGE_MS 200
/* What a process ends with that found too few pages made: a daemon that gets no CPU is
 * late.  It is done again by a new one, which leaves the daemon more time. */
#define TOO_FEW 2
#define TRIES 3
#define REST_MS 100
/* Times that memory is mapped anew. */
#define MAP_ROUNDS 5

/* Of the same touch. */
static unsigned tries_before;

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
	pid_t pid = fork();
	sigset_t ends;

	if (pid)
		return pid;
	/* It waits for one; before it can, that would be the end of it. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	execle("/ktaskd", "ktaskd", "--verbose", option, value, (char *)NULL,
	       environment);
	_exit(127);
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

/* Return: a process that does it, under the name that is served. */
static pid_t start_toucher(int (*touch)(char *memory))
{
	return start_named(NAME, touch_alone, &touch);
}

/* Return: the status of the last process that did it. */
static int touch_until_served(int (*touch)(char *memory))
{
	int status = TOO_FEW;

	for (tries_before = 0; status == TOO_FEW && tries_before < TRIES;
	     tries_before++)
		status = status_of(start_toucher(touch));
	tries_before = 0;
	return status;
}

static size_t count_present(char *memory)
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

/* Return: 0; 1: there was something in a page; or TOO_FEW. */
static int touch_all(char *memory)
{
	long faults;

	madvise(memory, LEN, MADV_NOHUGEPAGE);
	faults = count_faults();
	if (!touch_pages(memory, 0, NR_PAGES, false) ||
	    !has_touched(memory, NR_PAGES))
		return 1;
	return count_faults() - faults < (long)NR_PAGES / 2 ? 0 : TOO_FEW;
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

/* Return: 0 if no more was made than the bound allows, when nothing moves any more. */
static int check_bound(char *memory, size_t touched)
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
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	if (!touch_pages(memory, 0, NR_PAGES / 3, false))
		return 1;
	return check_bound(memory, NR_PAGES / 3);
}

static int touch_at_random(char *memory)
{
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
	pid_t pid;

	madvise(memory, LEN, MADV_NOHUGEPAGE);
	if (!touch_pages(memory, 0, NR_PAGES / 4, false))
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(memory[0] != 1 || memory[LEN - PAGE] != 0);
	if (!touch_pages(memory, NR_PAGES / 4, NR_PAGES / 2, false))
		return 1;
	return status_of(pid);
}

static int exec_in_between(char *memory)
{
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	touch_pages(memory, 0, NR_PAGES / 4, false);
	execl("/ktaskd", NAME, "--version", (char *)NULL);
	return 1;
}

/* What was touched goes and comes again, at the same place. */
static int map_in_a_loop(char *memory)
{
	for (int i = 0; i < MAP_ROUNDS; i++) {
		madvise(memory, LEN, MADV_NOHUGEPAGE);
		for (size_t page = 0; page < NR_PAGES / 8; page++) {
			if (memory[page * PAGE]++)
				return 1;
		}
		if (mmap(memory, LEN, PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) != memory)
			return 4;
	}
	return 0;
}

#define PRETENDED ((size_t)1 << 40)

/* More than any machine has, of which it touches a little, in order. */
static int pretend_to_touch(char *memory)
{
	char *pretended =
		mmap(NULL, PRETENDED, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)memory;
	if (pretended == MAP_FAILED)
		return 9;
	for (size_t page = 0; page < (size_t)2 * BLOCK; page++) {
		pretended[page * PAGE] = 1;
		if (page % 64 == 0)
			sleep_ms(10);
	}
	sleep_ms(TOUCH_WAITS_MS);
	return 0;
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
	status = touch_until_served(touch);
	kill(daemon, SIGTERM);
	gone = status_of(daemon);
	if (!status && !gone)
		say_verdict(true, test, NULL);
	else
		say_verdict(false, test, "status %d, the daemon's %d", status,
			    gone);
}

/* Whoever maps much more than there is gains nothing, and takes nothing from others. */
static void a_process_that_pretends_stops_nobody(void)
{
	pid_t daemon, pretender;
	int status;

	if (!is_daemon_here(__func__))
		return;
	write_file(PAGE_SIZES, "never");
	daemon = start_daemon("--name", NAME);
	pretender = start_toucher(pretend_to_touch);
	sleep_ms(1000);
	status = touch_until_served(touch_all);
	kill_process(pretender);
	kill_process(daemon);
	if (status)
		say_verdict(false, __func__, "status %d", status);
	else
		say_verdict(true, __func__, NULL);
}

static unsigned long group_number(const char *path, const char *name)
{
	char text[4096], *at = text;

	read_file(path, text, sizeof(text));
	if (name)
		at = strstr(text, name);
	return at ? strtoul(at + (name ? strlen(name) : 0), NULL, 10) : 0;
}

static int touch_in_group(char *memory)
{
	int status;

	if (write_file(FREE_GROUP "/cgroup.procs", "0"))
		return 5;
	status = touch_all(memory);
	if (status)
		return status;
	return group_number(FREE_GROUP "/memory.current", NULL) >= LEN ? 0 : 6;
}

/* The mapping is larger than what the group may have, and the program knows. */
static int touch_to_the_limit(char *memory)
{
	if (write_file(LIMITED_GROUP "/cgroup.procs", "0"))
		return 5;
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < NR_PAGES / 4; page++) {
		memory[page * PAGE] = 1;
		if (page % BLOCK == 0)
			sleep_ms(10);
	}
	return count_present(memory) == NR_PAGES / 4 ? 0 : 3;
}

/* In no group that was chosen. */
static int touch_unserved(char *memory)
{
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < NR_PAGES / 3; page++)
		memory[page * PAGE] = 1;
	sleep_ms(1000);
	return count_present(memory) == NR_PAGES / 3 ? 0 : 3;
}

static void make_groups(void)
{
	mount("cgroup2", GROUPS, "cgroup2", 0, NULL);
	write_file(GROUPS "/cgroup.subtree_control", "+memory");
	mkdir(GROUP, 0755);
	write_file(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(FREE_GROUP, 0755);
	mkdir(LIMITED_GROUP, 0755);
	write_file(LIMITED_GROUP "/memory.max", "67108864");
}

/* The last process of one may not be gone yet. */
static void remove_groups(void)
{
	static const char *const groups[] = { FREE_GROUP, LIMITED_GROUP,
					      GROUP };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (int ms = 0; rmdir(groups[i]) && ms < PATIENCE_MS; ms += 10)
			sleep_ms(10);
	umount(GROUPS);
}

static void groups_pay_for_what_is_made_and_no_more(void)
{
	pid_t daemon;
	int charged, limited, unserved;
	unsigned long kills;

	if (!is_daemon_here(__func__))
		return;
	make_groups();
	write_file(PAGE_SIZES, "never");
	daemon = start_daemon("--cgroup", GROUP);
	unserved = status_of(start_toucher(touch_unserved));
	charged = touch_until_served(touch_in_group);
	limited = status_of(start_toucher(touch_to_the_limit));
	kills = group_number(LIMITED_GROUP "/memory.events", "oom ");
	kill_process(daemon);
	if (unserved || charged || limited || kills)
		say_verdict(false, __func__, "status %d, %d and %d, %lu kills",
			    unserved, charged, limited, kills);
	else
		say_verdict(true, __func__, NULL);
	remove_groups();
}

/* A kernel that finds errors takes ten times as long for a fault. */
static bool is_kernel_slow(void)
{
	return !access("/proc/lockdep_stats", F_OK) ||
	       !access("/sys/kernel/debug/kcsan", F_OK);
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
	a_process_that_pretends_stops_nobody();
	groups_pay_for_what_is_made_and_no_more();
end:
	end_small_pages(&sizes);
}
