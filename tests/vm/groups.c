/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of control groups of version 2: what holds for the caller holds for the
 * helpers that work for it, whether they are its threads (Linux 6.9) or the
 * kernel's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define TOP "/sys/fs/cgroup"
#define GROUP TOP "/test"
#define SAMPLES 20

static int set_limit(const char *file, const char *value)
{
	char path[100];

	snprintf(path, sizeof(path), GROUP "/%s", file);
	return write_file(path, value);
}

/* The number in @file, or behind @name in it. */
static unsigned long long get_count(const char *file, const char *name)
{
	char path[100], text[4096], *at = text;

	snprintf(path, sizeof(path), GROUP "/%s", file);
	read_file(path, text, sizeof(text));
	if (name)
		at = strstr(text, name);
	return at ? strtoull(at + (name ? strlen(name) : 0), NULL, 10) : 0;
}

static bool make_group(void)
{
	return !mount("cgroup2", TOP, "cgroup2", 0, NULL) &&
	       !write_file(TOP "/cgroup.subtree_control",
			   "+memory +cpu +cpuset") &&
	       !mkdir(GROUP, 0755);
}

/* A process that has just ended may still be in it. */
static void remove_group(void)
{
	for (int ms = 0; ms < PATIENCE_MS && rmdir(GROUP) && errno == EBUSY;
	     ms += 10)
		sleep_ms(10);
	umount(TOP);
}

/* A process in the group that clears memory until it is killed. */
static pid_t start_in_group(void)
{
	char pid_text[20];
	pid_t pid = start_clearing();

	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	set_limit("cgroup.procs", pid_text);
	return pid;
}

#define OUTSIDE 100 /* no status of what is done inside */

/* Its exit status, or OUTSIDE. */
static int status_in_group(int (*func)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(set_limit("cgroup.procs", "0") ? OUTSIDE : func());
	return status_of(pid);
}

static int status_in_new_group(int (*func)(void))
{
	int status = make_group() ? status_in_group(func) : OUTSIDE;

	remove_group();
	return status;
}

/* ---- CPUs ---- */

/* Samples in which a helper might run elsewhere than on @cpus. */
static int count_strays(pid_t pid, const cpu_set_t *cpus)
{
	cpu_set_t seen, within;
	int nr = 0, stray = 0;

	for (int i = 0; i < 10000 && nr < SAMPLES; i++) {
		pid_t thread = wait_for_thread(pid);

		if (!thread || sched_getaffinity(thread, sizeof(seen), &seen))
			continue;
		nr++;
		CPU_AND(&within, &seen, cpus);
		stray += !CPU_EQUAL(&within, &seen);
	}
	return nr ? stray : -1;
}

/* A job that runs when its process is moved may end where it began. */
static int strays_at_last(pid_t pid, const cpu_set_t *cpus)
{
	int stray = 0;

	for (int ms = 0; ms < PATIENCE_MS; ms += 200) {
		sleep_ms(200);
		stray = count_strays(pid, cpus);
		if (!stray)
			break;
	}
	return stray;
}

static int run_on_my_cpus(void)
{
	return run_in_kernel("+helpers-on-my-cpus");
}

static void helpers_stay_in_the_callers_cpuset(void)
{
	cpu_set_t first, second;
	int stray = 0, later = 0, status;
	pid_t pid;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 4) {
		say_verdict(true, __func__, "needs four CPUs");
		return;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	CPU_SET(2, &first);
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	CPU_SET(3, &second);
	CHECK(make_group());
	CHECK(!set_limit("cpuset.cpus", "0,2"));
	status = status_in_group(run_on_my_cpus);
	if (has_process_helpers()) {
		pid = start_in_group();
		stray = strays_at_last(pid, &first);
		set_limit("cpuset.cpus", "1,3");
		later = strays_at_last(pid, &second);
		kill_process(pid);
	}
	remove_group();
	if (!status && !stray && !later)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__,
			    "kernel threads: %s, then %d and %d strays",
			    strerror(status), stray, later);
}

/* Of the process, by its first thread. */
static double own_seconds(void)
{
	struct rusage own;

	getrusage(RUSAGE_THREAD, &own);
	return (double)own.ru_stime.tv_sec + (double)own.ru_utime.tv_sec +
	       (double)own.ru_stime.tv_usec / 1e6 +
	       (double)own.ru_utime.tv_usec / 1e6;
}

static int see_their_time_in_the_group(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	double before, own;

	before = own_seconds();
	do {
		if (do_request(fd, KTASK_IOC_CLEAR, addr, RANGE, 0, NULL))
			return 1;
		own = own_seconds() - before;
		if ((double)get_count("cpu.stat", "usage_usec ") / 1e6 - own >
		    0.05)
			return 0;
	} while (time(NULL) < until);
	return 2;
}

static void the_group_pays_for_cpu_time_of_helpers(void)
{
	int status;

	if (!has_process_helpers() || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs Linux 6.9 and two CPUs");
		return;
	}
	status = status_in_new_group(see_their_time_in_the_group);
	if (status)
		say_verdict(false, __func__, "status %d", status);
	else
		say_verdict(true, __func__, NULL);
}

/* Frozen it stays, helpers and all, until it is thawed. */
static void a_group_can_be_frozen_in_the_middle(void)
{
	bool frozen = true, thawed = true;
	pid_t pid;
	int i;

	CHECK(make_group());
	pid = start_in_group();
	for (i = 0; i < 10 && frozen && thawed; i++) {
		sleep_ms(rand() % 60);
		set_limit("cgroup.freeze", "1");
		for (int ms = 0; ms < PATIENCE_MS; ms++) {
			frozen = get_count("cgroup.events", "frozen ");
			if (frozen)
				break;
			sleep_ms(1);
		}
		set_limit("cgroup.freeze", "0");
		for (int ms = 0; ms < PATIENCE_MS; ms++) {
			thawed = !get_count("cgroup.events", "frozen ");
			if (thawed)
				break;
			sleep_ms(1);
		}
	}
	kill_process(pid);
	remove_group();
	if (frozen && thawed)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "round %d: frozen %d, thawed %d",
			    i, frozen, thawed);
}

/* ---- memory ---- */

#define SHORT (8 * MIB) /* requests that the kernel's own threads help with */
#define REQUESTS 1000

/* Pages of @addr on the first node; -1: it cannot be told. */
static long on_first_node(char *addr)
{
	static void *pages[SHORT / PAGE];
	static int nodes[SHORT / PAGE];
	long nr = 0;

	for (size_t i = 0; i < SHORT / PAGE; i++)
		pages[i] = addr + i * PAGE;
	if (syscall(SYS_move_pages, 0, SHORT / PAGE, pages, NULL, nodes, 0))
		return -1;
	for (size_t i = 0; i < SHORT / PAGE; i++)
		nr += nodes[i] == 0;
	return nr;
}

enum { UNHELPED = 1, ELSEWHERE, FAILED };

static int populate_on_second_node(void)
{
	int fd = open_device();
	unsigned helped = 0, threads;
	long stray = 0;

	for (int i = 0; i < REQUESTS && helped < 5 && !stray; i++) {
		char *addr = map_memory(SHORT);

		threads = request_threads(fd, KTASK_IOC_POPULATE, addr, SHORT,
					  KTASK_MEM_WRITE);
		if (!threads)
			return FAILED;
		helped += threads > 1;
		stray = on_first_node(addr);
		munmap(addr, SHORT);
	}
	if (stray)
		return stray < 0 ? FAILED : ELSEWHERE;
	return helped ? 0 : UNHELPED;
}

/* Whoever touches it: the CPUs may be of another node. */
static void pages_are_of_the_callers_memory_nodes(void)
{
	int status;

	if (access("/sys/devices/system/node/node1/meminfo", F_OK)) {
		say_verdict(true, __func__, "one node");
		return;
	}
	CHECK(make_group());
	CHECK(!set_limit("cpuset.mems", "1"));
	status = status_in_group(populate_on_second_node);
	remove_group();
	if (!status)
		say_verdict(true, __func__, NULL);
	else if (status == UNHELPED)
		say_verdict(true, __func__, "no helper came");
	else
		say_verdict(false, __func__, "%s",
			    status == ELSEWHERE ? "some are elsewhere"
						: "requests failed");
}

static int populate_in_group(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);

	if (do_request(fd, KTASK_IOC_POPULATE, addr, RANGE, KTASK_MEM_WRITE,
		       NULL))
		return 1;
	return get_count("memory.current", NULL) >= RANGE ? 0 : 2;
}

static void memory_is_charged_to_the_caller(void)
{
	CHECK(status_in_new_group(populate_in_group) == 0);
	say_verdict(true, __func__, NULL);
}

#define TABLE_BYTES (2 * MIB) /* that a page of a page table is for */
#define HELPED 32

/* Populates for reading, which makes page tables and no pages.  Return: pages of
 * page tables that were needed, 0 where no helper came, -1 for an error. */
static int make_tables(int fd)
{
	unsigned helped = 0, nr = 0;

	for (; nr < REQUESTS && helped < HELPED; nr++) {
		struct ktask_mem mem = { .size = sizeof(mem), .len = SHORT };
		char *addr = mmap(NULL, SHORT, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(addr, SHORT, MADV_NOHUGEPAGE);
		mem.addr = (uintptr_t)addr;
		if (ioctl(fd, KTASK_IOC_POPULATE, &mem))
			return -1;
		helped += mem.threads > 1;
	}
	return helped ? (int)(nr * (SHORT / TABLE_BYTES)) : 0;
}

enum { NO_HELPER = 1, SOME_MISSING, REFUSED };

static int see_tables_in_the_group(void)
{
	unsigned long long wanted;
	int nr = make_tables(open_device());

	if (nr <= 0)
		return nr ? REFUSED : NO_HELPER;
	wanted = (unsigned)nr * PAGE;
	for (int ms = 0; ms < PATIENCE_MS; ms += 100) {
		if (get_count("memory.stat", "\npagetables ") >= wanted)
			return 0;
		sleep_ms(100);
	}
	return SOME_MISSING;
}

static void page_tables_are_charged_to_the_caller(void)
{
	int status;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs two CPUs");
		return;
	}
	status = status_in_new_group(see_tables_in_the_group);
	if (!status)
		say_verdict(true, __func__, NULL);
	else if (status == NO_HELPER)
		say_verdict(true, __func__, "no helper came");
	else
		say_verdict(false, __func__, "%s",
			    status == SOME_MISSING ? "some are nobody's"
			    : status == REFUSED	   ? "requests failed"
						   : "no group");
}

/* The request fails, or the process is killed; helpers go no further. */
static void helpers_respect_the_groups_limit_of_memory(void)
{
	unsigned long long kills, current;
	char limit[20];
	int status;

	snprintf(limit, sizeof(limit), "%lu", RANGE / 2);
	CHECK(make_group());
	CHECK(!set_limit("memory.max", limit));
	status = status_in_group(populate_in_group);
	kills = get_count("memory.events", "oom_kill ");
	current = get_count("memory.current", NULL);
	remove_group();
	if ((status == 1 || (status == 1000 && kills)) && current <= RANGE / 2)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__,
			    "status %d, %llu kills, %llu bytes", status, kills,
			    current);
}

void test_groups(void)
{
	helpers_stay_in_the_callers_cpuset();
	the_group_pays_for_cpu_time_of_helpers();
	a_group_can_be_frozen_in_the_middle();
	pages_are_of_the_callers_memory_nodes();
	memory_is_charged_to_the_caller();
	page_tables_are_charged_to_the_caller();
	helpers_respect_the_groups_limit_of_memory();
}
