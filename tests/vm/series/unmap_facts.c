/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * munmap() of much memory: what is left of it, and of what lies beside it; who may
 * still read it; what others have that shared it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

#define LEN (96 * MIB)

static void unmap_kind(const struct memory_kind *kind, bool tell)
{
	size_t len = LEN;
	unsigned char there;
	struct use before;
	char *addr;
	int error;

	read_use(&before);
	addr = kind->map(&len);
	error = addr && munmap(addr, len) ? errno : 0;
	if (!tell)
		return;
	check_that(addr != NULL, "%s can be mapped", kind->name);
	tell_fact_number(error, "munmap, %s: errno", kind->name);
	tell_fact_number(mincore(addr, PAGE, &there) ? errno : 0,
			 "munmap, %s: errno of its first page", kind->name);
	tell_fact_number(mincore(addr + len - PAGE, PAGE, &there) ? errno : 0,
			 "munmap, %s: errno of its last page", kind->name);
	tell_use_since(&before, "munmap", kind->name);
}

/* At first the process takes what it needs itself. */
static void unmap_kind_twice(void *arg)
{
	unmap_kind(arg, false);
	unmap_kind(arg, true);
	tell_fact_number(number_in("/proc/self/status", "VmLck:"),
			 "munmap: KiB locked");
}

/* ---- what lies beside it ---- */

/* Pages that share a page table, or a huge page, with what goes. */
static void unmap_between(int advice, const char *what)
{
	size_t nr = LEN / PAGE;
	char *addr = map_memory(LEN, advice);

	populate_memory(addr, LEN);
	tell_fact_number(munmap(addr + 3 * PAGE, LEN - 8 * PAGE),
			 "munmap between %s", what);
	check_that(keeps_pages(addr, 0, 3) && keeps_pages(addr, nr - 5, 5),
		   "%s beside a hole keep their contents", what);
	munmap(addr, LEN);
	addr = map_memory(LEN, advice);
	populate_memory(addr, LEN);
	munmap(addr, LEN - PAGE);
	check_that(keeps_pages(addr, nr - 1, 1),
		   "the last of %s keeps its contents", what);
	munmap(addr, LEN);
}

static bool is_zero(const char *addr, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		if (addr[i])
			return false;
	return true;
}

/* The lock is then held for writing until all is done. */
static void map_over_it(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE), *again;

	populate_memory(addr, LEN);
	again = mmap(addr, LEN, PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_that(again == addr && is_zero(addr, LEN),
		   "a mapping in place of another is zero");
	populate_memory(addr, LEN);
	again = mremap(addr, LEN, PAGE, 0);
	check_that(again == addr && keeps_pages(addr, 0, 1),
		   "what mremap() leaves keeps its contents");
	munmap(addr, PAGE);
}

/* ---- who may still read it ---- */

struct reader {
	const char *addr;
	int ready; /* it has read each page, so that its CPU knows them */
	int gone; /* set behind munmap() */
	int late; /* a page was read after that */
	int strange; /* a page was read that is another's by now */
};

static __thread sigjmp_buf fault;

static void leave_fault(int nr)
{
	(void)nr;
	siglongjmp(fault, 1);
}

/* Until a page is not there any more. */
static void *read_until_gone(void *arg)
{
	struct reader *reader = arg;
	size_t i = 0;

	if (sigsetjmp(fault, 1))
		return NULL;
	for (;; i = (i + PAGE) % LEN) {
		int gone = __atomic_load_n(&reader->gone, __ATOMIC_SEQ_CST);

		if (*(volatile const char *)(reader->addr + i) !=
		    (char)(i / PAGE))
			__atomic_store_n(&reader->strange, 1, __ATOMIC_SEQ_CST);
		if (gone)
			__atomic_store_n(&reader->late, 1, __ATOMIC_SEQ_CST);
		if (i == LEN - PAGE)
			__atomic_store_n(&reader->ready, 1, __ATOMIC_SEQ_CST);
	}
}

static void unmap_under_reader(struct reader *reader)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);
	pthread_t thread;

	populate_memory(addr, LEN);
	*reader = (struct reader){ .addr = addr };
	if (pthread_create(&thread, NULL, read_until_gone, reader))
		_exit(1);
	while (!__atomic_load_n(&reader->ready, __ATOMIC_SEQ_CST))
		usleep(1000);
	munmap(addr, LEN);
	__atomic_store_n(&reader->gone, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
}

static void unmap_under_readers(void *arg)
{
	struct sigaction action = { .sa_handler = leave_fault };
	struct reader reader;
	int late = 0, strange = 0;

	(void)arg;
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 5; i++) {
		unmap_under_reader(&reader);
		late += reader.late;
		strange += reader.strange;
	}
	check_that(!late, "no CPU reads a page after munmap(): %d of 5", late);
	check_that(!strange, "no CPU reads a page of others: %d of 5", strange);
}

/* ---- others that share it ---- */

/* What /proc/self/smaps says of the mapping at @addr, KiB. */
static long smaps_number(const char *addr, const char *name)
{
	static char text[65536];
	char label[32], *at;
	long value = -1;

	snprintf(label, sizeof(label), "%lx-", (unsigned long)addr);
	read_text("/proc/self/smaps", text, sizeof(text));
	at = strstr(text, label);
	at = at ? strstr(at, name) : NULL;
	if (at)
		sscanf(at + strlen(name), "%ld", &value);
	return value;
}

static void unmap_in_child(void *arg)
{
	_exit(munmap(arg, LEN) ? errno : 0);
}

static void leave_to_kernel(void *arg)
{
	(void)arg;
}

static void unmap_what_parent_has(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

	populate_memory(addr, LEN);
	tell_fact_number(run_child(unmap_in_child, addr), "munmap by a child");
	tell_fact_number(smaps_number(addr, "Shared_Dirty:"),
			 "after munmap by a child: KiB shared");
	tell_fact_number(smaps_number(addr, "Private_Dirty:"),
			 "after munmap by a child: KiB private");
	tell_fact_number(run_child(leave_to_kernel, NULL), "exit of a child");
	tell_fact_number(smaps_number(addr, "Shared_Dirty:"),
			 "after exit of a child: KiB shared");
	tell_fact_number(smaps_number(addr, "Private_Dirty:"),
			 "after exit of a child: KiB private");
	check_that(keeps_contents(addr, LEN),
		   "memory that a child gave back keeps its contents");
	munmap(addr, LEN);
}

/* ---- in the middle ---- */

static void unmap_once(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

	populate_memory(addr, LEN);
	munmap(addr, LEN);
}

static void unmap_until_killed(void *arg)
{
	(void)arg;
	for (;;)
		unmap_once();
}

static void kill_in_the_middle(void)
{
	struct use before;

	read_use(&before);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (pid == 0)
			unmap_until_killed(NULL);
		usleep(100000 + 37000 * (useconds_t)i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	tell_use_since(&before, "munmap", "killed in the middle");
}

void tell_unmap_facts(void)
{
	pool_set(&pool_2m, 20);
	for (size_t i = 0; i < NR_MEMORY_KINDS; i++)
		tell_fact_number(
			run_child(unmap_kind_twice, (void *)&memory_kinds[i]),
			"munmap, %s: child", memory_kinds[i].name);
	unmap_between(MADV_NOHUGEPAGE, "small pages");
	unmap_between(MADV_HUGEPAGE, "huge pages");
	map_over_it();
	tell_fact_number(run_child(unmap_under_readers, NULL),
			 "readers: child");
	unmap_what_parent_has();
	kill_in_the_middle();
	check_helped(NULL, unmap_once, "helpers unmap memory");
	pool_set(&pool_2m, 0);
}
