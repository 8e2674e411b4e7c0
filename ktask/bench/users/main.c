/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What one refresh of other users costs (user/limits/users.c): by how many registries
 * of others there are, and by how many jobs each has.
 *
 *	bench-users	as root
 *
 * Makes registries in a /dev/shm of its own, as other users do.  Prints a line for each
 * case: users, jobs of each, and the median in ns, with the least and the most.  In a
 * guest whose clock counts instructions (ktask/bench/vm/run 6.12 users) these are
 * instructions of program and kernel, and no noise changes them.
 *
 * Between refreshes the process sleeps, as users_refresh() demands.  So caches are as
 * cold as they are in a job that does its own work meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"
#include "user/limits/users.h"

#define FIRST_UID 65000
#define SAMPLES 51
/* users_refresh() pauses 5 ms at least, and 64 times what the last one took; the last
 * one took a second at most in which it does nothing. */
#define PAUSE_NS 6000000
#define PAUSE_TIMES 66

static const struct {
	unsigned users, jobs;
} cases[] = { { 0, 0 }, { 1, 1 },  { 7, 1 }, { 63, 1 },
	      { 1, 7 }, { 1, 63 }, { 63, 7 } };

static struct registry_head *heads[USERS_MAX];
static unsigned nr_heads;

static void fail_with(const char *what)
{
	fprintf(stderr, "bench-users: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void mount_own_memory(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		fail_with("making a mount namespace");
	mkdir(REGISTRY_DIR, 01777);
	if (mount("tmpfs", REGISTRY_DIR, "tmpfs", 0, "mode=1777"))
		fail_with("mounting " REGISTRY_DIR);
}

/* In a process of that user's; jobs that never end. */
static void begin_jobs(uid_t uid, unsigned jobs)
{
	if (setresuid(uid, uid, uid))
		_exit(1);
	permits_open(1);
	for (unsigned i = 0; i < jobs; i++)
		if (permits_entry_begin(1, "bench", 1, clock_ns()) < 0)
			_exit(1);
	_exit(0);
}

static struct registry_head *map_registry(uid_t uid)
{
	struct registry_head *head;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), REGISTRY_DIR "/ktask-slots-%u.0",
		 (unsigned)uid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail_with(path);
	head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (head == MAP_FAILED)
		fail_with("mapping a registry");
	close(fd);
	return head;
}

static void add_user(unsigned jobs)
{
	uid_t uid = FIRST_UID + nr_heads;
	pid_t pid = fork();
	int status;

	if (!pid)
		begin_jobs(uid, jobs);
	if (waitpid(pid, &status, 0) != pid || status)
		fail_with("beginning jobs of another user");
	heads[nr_heads++] = map_registry(uid);
}

/* No job is silent, and each wants so many helpers. */
static void touch_jobs(unsigned wanted)
{
	uint64_t now_ns = clock_ns();

	for (unsigned i = 0; i < nr_heads; i++) {
		for (unsigned j = 0; j < heads[i]->nr_entries; j++) {
			heads[i]->entries[j].seen_ns = now_ns;
			heads[i]->entries[j].wanted = wanted;
		}
	}
}

/* Did the refresh see all of that?  It would do nothing if it were not due. */
static bool was_seen(unsigned jobs, unsigned wanted)
{
	uint32_t wants[USERS_MAX + 1], self;
	uint32_t nr = users_want(wants, 0, &self);

	for (uint32_t i = 0; i < nr; i++)
		if (i != self && wants[i] != jobs * wanted)
			return false;
	return nr == nr_heads + 1;
}

static void measure_refresh(unsigned users, unsigned jobs)
{
	double ns[SAMPLES], last_ns = 1e9 / PAUSE_TIMES;

	/* First: who is forked from then on has the registry of this user. */
	for (unsigned i = 0; i < users; i++)
		add_user(jobs);
	permits_open(1);
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t start_ns;

		clock_pause_ns(PAUSE_NS + (uint64_t)last_ns * PAUSE_TIMES);
		touch_jobs(i + 1);
		start_ns = clock_ns();
		users_refresh(start_ns);
		last_ns = ns[i] = (double)(clock_ns() - start_ns);
		if (!was_seen(jobs, i + 1)) {
			errno = EAGAIN;
			fail_with("refreshing");
		}
	}
	stats_of(ns, SAMPLES);
	printf("users %2u jobs %2u: %8.0f (%.0f to %.0f)\n", users, jobs,
	       ns[SAMPLES / 2], ns[0], ns[SAMPLES - 1]);
	fflush(stdout);
}

/* A process of its own, and a directory: it has refreshed nothing yet. */
static int measure_apart(unsigned users, unsigned jobs)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		mount_own_memory();
		measure_refresh(users, jobs);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid ? status : 1;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (measure_apart(cases[i].users, cases[i].jobs))
			return 1;
	return 0;
}
