/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fallocate() of huge pages: what the file has then, which node its pages are from,
 * who is charged; when all goes well, without pages, with limits, among signals.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

#define POOL_PAGES 120
#define FILE_PAGES 90
#define MARK 0x5a

static int open_file(const struct pool *pool, unsigned flags)
{
	return memfd_create("facts", MFD_HUGETLB | pool->flag | flags);
}

static int allocate_range(int fd, int mode, off_t at, off_t len)
{
	return fallocate(fd, mode, at, len) ? errno : 0;
}

static void tell_pool_sums(const char *when)
{
	static const char *const what[] = { "nr_hugepages", "free_hugepages",
					    "resv_hugepages",
					    "surplus_hugepages" };

	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++)
		tell_fact_number(pool_number(&pool_2m, -1, what[i]),
				 "file %s: %s", when, what[i]);
}

static void tell_pool_nodes(const char *when)
{
	for (unsigned nid = 0; nid < nr_nodes(); nid++)
		tell_fact_number(
			pool_number(&pool_2m, (int)nid, "free_hugepages"),
			"file %s: free on node %u", when, nid);
}

static void tell_pool(const char *when)
{
	tell_pool_sums(when);
	tell_pool_nodes(when);
}

static void tell_file_sums(int fd, int error, const char *when)
{
	struct stat st;

	fstat(fd, &st);
	tell_fact_number(error, "file %s: errno", when);
	tell_fact_number(st.st_size, "file %s: size", when);
	tell_fact_number(st.st_blocks, "file %s: blocks", when);
	tell_pool_sums(when);
}

static void tell_file(int fd, int error, const char *when)
{
	tell_file_sums(fd, error, when);
	tell_pool_nodes(when);
}

/* Of pages that are there; a word of each cache line. */
static bool is_zero(int fd, const struct pool *pool, long nr, long except)
{
	size_t len = (size_t)nr * pool->size;
	const uint64_t *words = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	bool zero = words != MAP_FAILED;

	for (size_t i = 0; zero && i < len / 8; i += 8)
		zero = !words[i] || (long)(i * 8 / pool->size) == except;
	if (words != MAP_FAILED)
		munmap((void *)words, len);
	return zero;
}

/* So that pages of the pool are not zero by chance. */
static void soil_pool(const struct pool *pool, long nr)
{
	size_t len = (size_t)nr * pool->size;
	int fd = open_file(pool, 0);
	char *memory;

	if (ftruncate(fd, (off_t)len))
		return;
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED) {
		memset(memory, MARK, len);
		munmap(memory, len);
	}
	close(fd);
}

/* ---- when all goes well ---- */

static const struct placed {
	const char *name;
	int policy;
	unsigned long nodes;
	long pages;
} policies[] = {
	{ "bind to the first", MPOL_BIND, 1, 20 },
	{ "bind to the second", MPOL_BIND, 2, 20 },
	{ "bind to too small a node", MPOL_BIND, 2, FILE_PAGES },
	{ "interleave", MPOL_INTERLEAVE, 3, FILE_PAGES },
	{ "prefer the second", MPOL_PREFERRED, 2, FILE_PAGES },
};

static void set_policy(int policy, unsigned long nodes)
{
	syscall(SYS_set_mempolicy, policy, nodes ? &nodes : NULL,
		nodes ? 64 : 0);
}

static bool has_policy(int policy)
{
	int now = -1;

	return !syscall(SYS_get_mempolicy, &now, NULL, 0, NULL, 0) &&
	       now == policy;
}

static void fill_under_policy(void *arg)
{
	const struct placed *placed = arg;
	char when[80];
	int fd = open_file(&pool_2m, 0), error;

	set_policy(placed->policy, placed->nodes);
	if (nr_nodes() == 1 && !(placed->nodes & 1))
		skip_check("one node", "the policy %s is set", placed->name);
	else
		check_that(has_policy(placed->policy), "the policy %s is set",
			   placed->name);
	error = allocate_range(fd, 0, 0, placed->pages * (off_t)HUGE);
	set_policy(MPOL_DEFAULT, 0);
	snprintf(when, sizeof(when), "under the policy %s", placed->name);
	tell_file(fd, error, when);
	check_that(error || is_zero(fd, &pool_2m, placed->pages, -1),
		   "pages are zero %s", when);
	close(fd);
}

/* Filled once: from which node, if the caller stayed on one. */
static bool fill_from_one_node(long *of_others)
{
	unsigned cpu, before, after;
	long free_before[8] = { 0 };
	int fd = open_file(&pool_2m, 0), error;

	*of_others = 0;
	for (unsigned nid = 0; nid < nr_nodes() && nid < 8; nid++)
		free_before[nid] =
			pool_number(&pool_2m, (int)nid, "free_hugepages");
	syscall(SYS_getcpu, &cpu, &before, NULL);
	error = allocate_range(fd, 0, 0, POOL_PAGES / 4 * (off_t)HUGE);
	syscall(SYS_getcpu, &cpu, &after, NULL);
	for (unsigned nid = 0; nid < nr_nodes() && nid < 8; nid++)
		if (nid != before)
			*of_others += free_before[nid] -
				      pool_number(&pool_2m, (int)nid,
						  "free_hugepages");
	close(fd);
	return !error && before == after;
}

/*
 * Whoever works for it.  The caller may be moved in between, and helpers come when
 * they can, so that it may take several tries.  To be moved and moved back is rare.
 */
static void fill_without_policy(void)
{
	double until = seconds_now() + HELPER_SECONDS;
	long of_others, before, nr_wrong = 0;
	bool helped, stayed;

	set_policy(MPOL_DEFAULT, 0);
	do {
		before = helpers_worked();
		stayed = fill_from_one_node(&of_others);
		helped = !helpers_expected() || helpers_worked() > before;
		nr_wrong += stayed && of_others;
	} while ((!stayed || !helped || of_others) &&
		 nr_wrong < WRONG_TRIES_MAX && seconds_now() < until);
	check_that(stayed && helped && !of_others,
		   "without a policy pages are of the caller's node: %ld of "
		   "others%s",
		   of_others, helped ? "" : ", not helped");
}

/* A part is there already and is kept; the size may be, too. */
static void fill_around_pages(void)
{
	int fd = open_file(&pool_2m, 0), error;
	char *memory;

	error = ftruncate(fd, 40 * (off_t)HUGE);
	memory = mmap(NULL, 40 * HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      0);
	check_that(!error && memory != MAP_FAILED,
		   "a file of huge pages is mapped");
	memset(memory + 17 * HUGE, MARK, HUGE);
	munmap(memory, 40 * HUGE);
	error = allocate_range(fd, FALLOC_FL_KEEP_SIZE, 3 * (off_t)PAGE,
			       60 * (off_t)HUGE);
	tell_file(fd, error, "around a page, its size kept");
	check_that(is_zero(fd, &pool_2m, 40, 17), "pages around one are zero");
	memory = mmap(NULL, 40 * HUGE, PROT_READ, MAP_SHARED, fd, 0);
	check_that(memory != MAP_FAILED && memory[17 * HUGE] == MARK &&
			   memory[18 * HUGE - 1] == MARK,
		   "a page that was there keeps what is in it");
	munmap(memory, 40 * HUGE);
	error = allocate_range(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       10 * (off_t)HUGE, 20 * (off_t)HUGE);
	/* Where the node has too few pages, threads decide which index has one. */
	tell_file_sums(fd, error, "with a hole");
	error = allocate_range(fd, 0, 0, 61 * (off_t)HUGE);
	tell_file(fd, error, "filled again");
	close(fd);
}

/* ---- limits ---- */

static void fill_beyond_pool(void)
{
	int fd = open_file(&pool_2m, 0);
	int error = allocate_range(fd, 0, 0, 2 * POOL_PAGES * (off_t)HUGE);

	tell_file(fd, error, "beyond the pool");
	error = allocate_range(fd, 0, 0, (off_t)HUGE);
	tell_fact_number(error == 0 || error == ENOSPC,
			 "file beyond the pool: one page more or not");
	close(fd);
	tell_pool("beyond the pool, closed");
}

static void fill_beyond_seal(void)
{
	int fd = open_file(&pool_2m, MFD_ALLOW_SEALING);

	fcntl(fd, F_ADD_SEALS, F_SEAL_GROW);
	tell_file(fd, allocate_range(fd, 0, 0, 30 * (off_t)HUGE),
		  "beyond a seal");
	close(fd);
}

static void fill_beyond_size_limit(void *arg)
{
	struct rlimit limit = { 10 * HUGE, 10 * HUGE };
	int fd = open_file(&pool_2m, 0);

	(void)arg;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	tell_file(fd, allocate_range(fd, 0, 0, 30 * (off_t)HUGE),
		  "beyond the limit of sizes");
	close(fd);
}

static void fill_in_small_group(void *arg)
{
	int fd, error;

	(void)arg;
	enter_group("huge");
	fd = open_file(&pool_2m, 0);
	error = allocate_range(fd, 0, 0, FILE_PAGES * (off_t)HUGE);
	tell_file(fd, error, "beyond the limit of a group");
	tell_fact_number(number_in(GROUP_DIR "/huge/hugetlb.2MB.current", NULL),
			 "group beyond its limit: charged");
	error = allocate_range(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       0, FILE_PAGES * (off_t)HUGE);
	tell_file(fd, error, "of a group, emptied");
	tell_fact_number(number_in(GROUP_DIR "/huge/hugetlb.2MB.current", NULL),
			 "group emptied: charged");
	error = allocate_range(fd, 0, 0, 20 * (off_t)HUGE);
	tell_file(fd, error, "up to the limit of a group");
	tell_fact_number(number_in(GROUP_DIR "/huge/hugetlb.2MB.current", NULL),
			 "group at its limit: charged");
	close(fd);
}

static void fill_beyond_group_limit(void)
{
	mkdir(GROUP_DIR "/huge", 0755);
	check_that(!write_number(GROUP_DIR "/huge/hugetlb.2MB.max", 20 * HUGE),
		   "huge pages of a group can be limited");
	tell_fact_number(run_child(fill_in_small_group, NULL), "group: child");
	tell_fact_number(number_in(GROUP_DIR "/huge/hugetlb.2MB.current", NULL),
			 "group left: charged");
	check_that(number_in(GROUP_DIR "/huge/hugetlb.2MB.events", "max ") > 0,
		   "the limit of a group was met");
	rmdir(GROUP_DIR "/huge");
}

/* Pages count as the group's memory here; how many fit depends on what else it
 * has, to a page. */
static void fill_in_small_memory(void *arg)
{
	struct stat st;
	int fd, error;
	long pages, current;

	(void)arg;
	enter_group("memory");
	fd = open_file(&pool_2m, 0);
	error = allocate_range(fd, 0, 0, FILE_PAGES * (off_t)HUGE);
	fstat(fd, &st);
	pages = (long)st.st_blocks * 512 / (long)HUGE;
	current = number_in(GROUP_DIR "/memory/memory.current", NULL);
	tell_fact_number(error, "file beyond the memory of a group: errno");
	check_that(pages >= 18 && pages <= 20,
		   "a group's memory can hold 20 pages or a little less: %ld",
		   pages);
	check_that(current >= pages * (long)HUGE,
		   "and is charged for them: %ld MiB", current >> 20);
	close(fd);
}

static void fill_beyond_memory_limit(void)
{
	mkdir(GROUP_DIR "/memory", 0755);
	write_number(GROUP_DIR "/memory/memory.max", 20 * HUGE);
	tell_fact_number(run_child(fill_in_small_memory, NULL),
			 "memory group: child");
	rmdir(GROUP_DIR "/memory");
}

/* ---- signals ---- */

static void ignore_signal(int nr)
{
	(void)nr;
}

static void fill_among_signals(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = ignore_signal };
	int fd = -1, error = 0;
	struct stat st;

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 50 && error != EINTR; i++) {
		if (fd >= 0)
			close(fd);
		fd = open_file(&pool_2m, 0);
		setitimer(ITIMER_REAL, &often, NULL);
		error = allocate_range(fd, 0, 0, FILE_PAGES * (off_t)HUGE);
		setitimer(ITIMER_REAL, &never, NULL);
	}
	fstat(fd, &st);
	tell_fact_number(error, "file among signals: errno");
	tell_fact_number(st.st_size, "file among signals: size");
	check_that(pool_number(&pool_2m, -1, "free_hugepages") +
				   (long)st.st_blocks * 512 / (long)HUGE ==
			   pool_number(&pool_2m, -1, "nr_hugepages"),
		   "no page is lost among signals");
	tell_fact_number(allocate_range(fd, 0, 0, FILE_PAGES * (off_t)HUGE),
			 "file among signals: errno of a second try");
	check_that(is_zero(fd, &pool_2m, FILE_PAGES, -1),
		   "pages are zero after signals");
	close(fd);
	tell_pool("among signals, closed");
}

static void fill_until_killed(void *arg)
{
	int fd;

	(void)arg;
	for (;;) {
		fd = open_file(&pool_2m, 0);
		allocate_range(fd, 0, 0, FILE_PAGES * (off_t)HUGE);
		close(fd);
	}
}

static void kill_in_the_middle(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (pid == 0)
			fill_until_killed(NULL);
		usleep(20000 + 7000 * (useconds_t)i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	tell_pool("killed in the middle");
}

/* ---- gigantic pages ---- */

static int gigantic_file = -1;
static long gigantic_pages;

static void empty_gigantic_file(void)
{
	allocate_range(gigantic_file,
		       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		       gigantic_pages * (off_t)GIB);
}

static void fill_gigantic_file(void)
{
	allocate_range(gigantic_file, 0, 0, gigantic_pages * (off_t)GIB);
}

/* Of several pages: a job for the file, within which each page is one. */
static void fill_gigantic_with_helpers(long nr)
{
	gigantic_pages = nr;
	gigantic_file = open_file(&pool_1g, 0);
	check_helped(empty_gigantic_file, fill_gigantic_file,
		     nr > 1 ? "helpers fill a file of gigantic pages"
			    : "helpers clear a gigantic page");
	close(gigantic_file);
}

/*
 * Whether there are as many as the machine has memory for.  Of several nodes none has a
 * whole one that is free.
 */
static bool are_as_many_as_fit(long nr)
{
	long wanted = read_option("gigantic", 1);

	if (nr < 1 && (nr_nodes() > 1 || !is_of_series())) {
		skip_check("no node has such a range of free memory",
			   "there is a gigantic page");
		return false;
	}
	check_that(nr == wanted, "there are gigantic pages: %ld of %ld", nr,
		   wanted);
	return nr == wanted;
}

/* Checks and no facts: on machines of several nodes it is chance. */
void tell_gigantic_facts(void)
{
	long nr = pool_number(&pool_1g, -1, "nr_hugepages");
	int fd, error;

	if (!are_as_many_as_fit(nr))
		return;
	fill_gigantic_with_helpers(nr);
	soil_pool(&pool_1g, nr);
	fd = open_file(&pool_1g, 0);
	error = allocate_range(fd, 0, 0, nr * (off_t)GIB);
	check_that(!error && is_zero(fd, &pool_1g, nr, -1),
		   "gigantic pages are zero: errno %d", error);
	error = allocate_range(fd, 0, 0, (nr + 1) * (off_t)GIB);
	check_that(error == ENOSPC, "there is no gigantic page more: errno %d",
		   error);
	close(fd);
	soil_pool(&pool_1g, nr);
	fd = open_file(&pool_1g, 0);
	check_that(!ftruncate(fd, (off_t)GIB) && is_zero(fd, &pool_1g, 1, -1),
		   "a gigantic page is faulted in zero");
	check_that(pool_number(&pool_1g, -1, "free_hugepages") == nr - 1,
		   "it is one of the pool");
	close(fd);
	check_that(pool_number(&pool_1g, -1, "free_hugepages") == nr,
		   "gigantic pages are given back");
	tell_fact_number(pool_set(&pool_1g, 0), "gigantic pages left at last");
}

void tell_file_facts(void)
{
	pool_set(&pool_2m, POOL_PAGES);
	tell_pool("not yet there");
	soil_pool(&pool_2m, POOL_PAGES);
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		run_child(fill_under_policy, (void *)&policies[i]);
	fill_without_policy();
	/* So that it does not matter where this process runs. */
	set_policy(MPOL_PREFERRED, 1);
	fill_around_pages();
	fill_beyond_pool();
	fill_beyond_seal();
	run_child(fill_beyond_size_limit, NULL);
	fill_beyond_group_limit();
	fill_beyond_memory_limit();
	fill_among_signals();
	kill_in_the_middle();
	pool_set(&pool_2m, 0);
	tell_pool("all over");
}
