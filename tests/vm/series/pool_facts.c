/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Growing and shrinking the pool of huge pages at run time: how many there are on
 * which node, by whichever file and policy they were asked for.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "facts.h"

#define POOL_PAGES 101 /* does not divide by nodes nor by chunks */
#define LARGE_POOL_PAGES 288 /* for two threads: each frees 256 MiB at least */

static void tell_nodes(const char *when)
{
	unsigned nid;

	tell_fact_number(pool_number(&pool_2m, -1, "nr_hugepages"),
			 "pool %s: pages", when);
	tell_fact_number(pool_number(&pool_2m, -1, "free_hugepages"),
			 "pool %s: free", when);
	for (nid = 0; nid < nr_nodes(); nid++)
		tell_fact_number(
			pool_number(&pool_2m, (int)nid, "nr_hugepages"),
			"pool %s: pages of node %u", when, nid);
}

static void resize_by_steps(void)
{
	static const long sizes[] = { 1, 7, POOL_PAGES, 64, 65, 0, POOL_PAGES };
	char when[40];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pool_set(&pool_2m, sizes[i]);
		snprintf(when, sizeof(when), "at step %zu of %ld", i, sizes[i]);
		tell_nodes(when);
	}
	pool_set(&pool_2m, 0);
}

static void resize_one_node(void)
{
	char path[200];
	unsigned last = nr_nodes() - 1;

	snprintf(path, sizeof(path),
		 NODE_DIR "%u/hugepages/hugepages-2048kB/nr_hugepages", last);
	tell_fact_number(write_number(path, POOL_PAGES),
			 "growing one node: errno");
	tell_nodes("of one node");
	tell_fact_number(write_number(path, 0), "shrinking one node: errno");
	tell_nodes("of one node, shrunk");
}

/* What is in use stays until it is given back. */
static void shrink_used(void)
{
	size_t len = POOL_PAGES * HUGE;
	char *addr;

	pool_set(&pool_2m, POOL_PAGES);
	addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	check_that(addr != MAP_FAILED, "all pages of the pool can be mapped");
	populate_memory(addr, len);
	pool_set(&pool_2m, POOL_PAGES / 2);
	tell_nodes("shrunk while in use");
	check_that(keeps_contents(addr, len),
		   "pages in use keep their contents");
	munmap(addr, len);
	tell_nodes("shrunk, not in use");
	pool_set(&pool_2m, 0);
}

static void resize_under_policy(void *arg)
{
	unsigned long last = 1ul << (nr_nodes() - 1);

	(void)arg;
	syscall(SYS_set_mempolicy, MPOL_BIND, &last, 64);
	write_number(POOL_DIR "2048kB/nr_hugepages_mempolicy", POOL_PAGES);
}

static void ignore_signal(int nr)
{
	(void)nr;
}

/* A signal a millisecond.  The write succeeds, with what there is by then. */
static void resize_among_signals(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = ignore_signal };
	char text[16];
	long sum = 0, all;
	ssize_t written;
	int fd, cut = 0;

	sigaction(SIGALRM, &action, NULL);
	snprintf(text, sizeof(text), "%d", POOL_PAGES);
	for (int i = 0; i < 50 && !cut; i++) {
		pool_set(&pool_2m, 0);
		fd = open(POOL_DIR "2048kB/nr_hugepages", O_WRONLY);
		setitimer(ITIMER_REAL, &often, NULL);
		written = write(fd, text, 3);
		setitimer(ITIMER_REAL, &never, NULL);
		close(fd);
		cut = pool_number(&pool_2m, -1, "nr_hugepages") < POOL_PAGES;
	}
	all = pool_number(&pool_2m, -1, "nr_hugepages");
	for (unsigned nid = 0; nid < nr_nodes(); nid++)
		sum += pool_number(&pool_2m, (int)nid, "nr_hugepages");
	tell_fact_number(written, "growing among signals: written");
	tell_fact_number(cut, "growing among signals: a signal ends it");
	check_that(
		sum == all &&
			pool_number(&pool_2m, -1, "free_hugepages") == all,
		"a pool that a signal left incomplete is consistent: %ld pages",
		all);
	pool_set(&pool_2m, 0);
}

/* More than a node has memory for; the others' is left for all else. */
static void resize_beyond_memory(void)
{
	int last = (int)nr_nodes() - 1;
	char path[200];
	long most, nr;

	if (last < 1) {
		skip_check("one node", "a pool gets most of a node's memory");
		return;
	}
	snprintf(path, sizeof(path), NODE_DIR "%d/meminfo", last);
	most = number_in(path, "MemFree:") / 2048;
	snprintf(path, sizeof(path),
		 NODE_DIR "%d/hugepages/hugepages-2048kB/nr_hugepages", last);
	tell_fact_number(write_number(path, 2 * most),
			 "growing beyond the memory: errno");
	nr = pool_number(&pool_2m, last, "nr_hugepages");
	/* What is reclaimed meanwhile is had as well. */
	check_that(nr < 2 * most && nr > most / 2,
		   "a pool beyond the memory gets most of it: %ld of %ld", nr,
		   most);
	check_that(pool_number(&pool_2m, -1, "free_hugepages") == nr,
		   "and all of its pages are free");
	check_that(pool_set(&pool_2m, 0) == 0, "and gives them back");
}

static void empty_pool(void)
{
	pool_set(&pool_2m, 0);
}

static void fill_pool(void)
{
	pool_set(&pool_2m, LARGE_POOL_PAGES);
}

void tell_pool_facts(void)
{
	resize_by_steps();
	resize_one_node();
	/* What comes next takes the nodes in another order each time. */
	shrink_used();
	run_child(resize_under_policy, NULL);
	tell_nodes("bound to the last node");
	pool_set(&pool_2m, 0);
	resize_among_signals();
	resize_beyond_memory();
	check_helped(empty_pool, fill_pool, "helpers grow the pool");
	check_helped(fill_pool, empty_pool, "helpers shrink the pool");
}
