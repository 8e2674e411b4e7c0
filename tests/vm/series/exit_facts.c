/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The end of processes that have much memory: whichever way they end, nothing is
 * left, neither where somebody else frees the same memory at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

#define LEN (96 * MIB)
#define GROUP_MAX (160 * MIB)
#define LISTS_LEN (16 * MIB)
#define ROUNDS 5

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

/* ---- ways to end ---- */

static void end_by_itself(void)
{
	_exit(7);
}

static void end_by_signal(void)
{
	kill(getpid(), SIGKILL);
}

/* Which ends at once: main(). */
static void end_by_exec(void)
{
	execl("/init", "/init", "end", NULL);
}

static void *touch_memory(void *arg)
{
	for (volatile char *addr = arg;; addr += PAGE)
		if (addr == (char *)arg + LEN)
			addr = arg;
		else
			(*addr)++;
	return NULL;
}

static void end_with_threads(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, touch_memory, addr);
	usleep(50000);
	_exit(8);
}

static const struct ending {
	const char *name;
	void (*end)(void);
} endings[] = {
	{ "exit", end_by_itself },
	{ "SIGKILL", end_by_signal },
	{ "exec", end_by_exec },
	{ "exit with threads", end_with_threads },
};

struct life {
	const struct memory_kind *kind;
	const struct ending *ending;
};

static void live_and_end(void *arg)
{
	const struct life *life = arg;
	size_t len = LEN;

	if (!life->kind->map(&len))
		_exit(1);
	life->ending->end();
}

static void tell_life(const struct life *life, bool tell)
{
	struct use before;
	int status;

	read_use(&before);
	status = run_child(live_and_end, (void *)life);
	if (!tell)
		return;
	tell_fact_number(status, "%s, %s: status", life->ending->name,
			 life->kind->name);
	tell_use_since(&before, life->ending->name, life->kind->name);
}

/* Small pages in each way, and each kind in one. */
static void tell_lives(void)
{
	struct life life = { &memory_kinds[0], &endings[0] };

	tell_life(&life, false);
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		life.ending = &endings[i];
		tell_life(&life, true);
	}
	life.ending = &endings[1];
	for (size_t i = 1; i < NR_MEMORY_KINDS; i++) {
		life.kind = &memory_kinds[i];
		tell_life(&life, true);
	}
}

/* ---- others that free it at once ---- */

static void fill_and_wait(int *ready)
{
	size_t len = LEN;

	if (!memory_kinds[0].map(&len))
		_exit(1);
	__atomic_store_n(ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

/* As the OOM reaper does, and at a time that can be chosen. */
static int release_when_killed(int *ready, useconds_t later_us)
{
	int fd, error, status;
	pid_t pid;

	*ready = 0;
	pid = fork();
	if (pid == 0)
		fill_and_wait(ready);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (!__atomic_load_n(ready, __ATOMIC_SEQ_CST))
		usleep(1000);
	kill(pid, SIGKILL);
	usleep(later_us);
	error = syscall(SYS_process_mrelease, fd, 0) ? errno : 0;
	waitpid(pid, &status, 0);
	close(fd);
	return error;
}

static void release_with_others(void)
{
	int *ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct use before;
	int error, strange = 0;

	release_when_killed(ready, 0);
	read_use(&before);
	for (useconds_t i = 0; i < 2 * ROUNDS; i++) {
		error = release_when_killed(ready, i % ROUNDS * 3000);
		/* Its memory may be gone by then. */
		strange += error && error != ESRCH;
	}
	check_that(!strange, "what a killed process had can be released");
	tell_use_since(&before, "exit", "released by another process");
	munmap(ready, PAGE);
}

/* ---- out of memory ---- */

static void fill_group(void *arg)
{
	char *addr = map_memory(2 * GROUP_MAX, MADV_NOHUGEPAGE);

	(void)arg;
	enter_group("full");
	populate_memory(addr, 2 * GROUP_MAX);
}

static void run_out_of_memory(void)
{
	int killed = 0;
	struct use before;
	long current;

	mkdir(GROUP_DIR "/full", 0755);
	check_that(!write_number(GROUP_DIR "/full/memory.max", (long)GROUP_MAX),
		   "memory of a group can be limited");
	run_child(fill_group, NULL);
	read_use(&before);
	for (int i = 0; i < ROUNDS; i++)
		killed += run_child(fill_group, NULL) == 1000 + SIGKILL;
	current = number_in(GROUP_DIR "/full/memory.current", NULL);
	tell_fact_number(killed, "out of memory: killed");
	check_that(killed == ROUNDS, "a group that is full is killed: %d of %d",
		   killed, ROUNDS);
	tell_fact_number(
		number_in(GROUP_DIR "/full/memory.events", "oom_kill "),
		"out of memory: counted by the group");
	/* Tables of the kernel, and what CPUs have charged ahead. */
	check_that(current < 8 * (long)MIB,
		   "a killed group has nothing: %ld KiB", current >> 10);
	tell_use_since(&before, "out of memory", "killed");
	tell_fact_number(rmdir(GROUP_DIR "/full"),
			 "out of memory: group removed");
}

/* ---- lists of pages ---- */

/* What is read through its address space twice becomes active. */
static void activate_pages(char *addr, size_t len)
{
	static char copy[5 * PAGE];
	struct iovec own = { copy, len }, other = { addr, len };

	for (int i = 0; i < 2; i++)
		if (process_vm_readv(getpid(), &own, 1, &other, 1, 0) !=
		    (ssize_t)len)
			_exit(1);
}

/* Of ten pages five are active, so that pages that are freed together leave two lists. */
static void fill_lists(void *arg)
{
	char *addr = map_memory(LISTS_LEN, MADV_NOHUGEPAGE);

	(void)arg;
	enter_group("lists");
	populate_memory(addr, LISTS_LEN);
	for (size_t at = 0; at + 5 * PAGE <= LISTS_LEN; at += 10 * PAGE)
		activate_pages(addr + at, 5 * PAGE);
}

/*
 * Sizes of lists are changed for many pages at a time.  The kernel warns of one below zero,
 * which is a complaint that fails the guest.  What is not summed up yet when the sizes are
 * read is less than the limit.
 */
static void leave_lists(void)
{
	static const char *const names[] = {
		"\ninactive_anon ", "\nactive_anon ", "\ninactive_file ",
		"\nactive_file ", "\nunevictable "
	};
	int failed = 0;

	mkdir(GROUP_DIR "/lists", 0755);
	for (int i = 0; i < 20; i++)
		failed += run_child(fill_lists, NULL);
	tell_fact_number(failed, "processes with active pages: failed");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		long bytes =
			number_in(GROUP_DIR "/lists/memory.stat", names[i]);

		/* -1: there is no such list, or no file. */
		check_that(bytes != -1 && labs(bytes) < 4 * (long)MIB,
			   "processes that ended left nothing on a list: %s",
			   names[i] + 1);
	}
	tell_fact_number(rmdir(GROUP_DIR "/lists"),
			 "processes with active pages: group removed");
}

static void live_once(void)
{
	const struct life life = { &memory_kinds[0], &endings[0] };

	tell_life(&life, false);
}

void tell_exit_facts(void)
{
	pool_set(&pool_2m, 20);
	tell_lives();
	release_with_others();
	run_out_of_memory();
	leave_lists();
	check_helped(NULL, live_once, "helpers free what a process had");
	pool_set(&pool_2m, 0);
}
