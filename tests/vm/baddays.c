/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bad days: the module shall go, CPUs and memory go away, the machine is
 * suspended, while /dev/ktask works.
 *
 * What a machine or a kernel cannot do to itself is skipped there.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/ktask.h>
#include <linux/mempolicy.h>
#include <linux/suspend_ioctls.h>

#include "guest.h"

#define BLOCK_SECONDS 3

/* Requests that succeeded, and whether one did not. */
struct progress {
	unsigned nr;
	int error;
};

/* A process that asks for the same again and again, until it is killed. */
static pid_t start_asking(struct progress *progress, unsigned long what,
			  size_t len)
{
	bool write = what == KTASK_IOC_POPULATE && len <= RANGE;
	pid_t pid = fork();
	char *addr;
	int fd;

	if (pid)
		return pid;
	fd = open_device();
	addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* Of zero pages: long, and little memory. */
	if (len > RANGE)
		madvise(addr, len, MADV_NOHUGEPAGE);
	while (!progress->error) {
		progress->error = do_request(fd, what, addr, len,
					     write ? KTASK_MEM_WRITE : 0, NULL);
		progress->nr++;
		madvise(addr, len, MADV_DONTNEED);
	}
	_exit(progress->error);
}

static struct progress *new_progress(void)
{
	void *memory =
		mmap(NULL, sizeof(struct progress), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* More requests end well, one of them begun by now. */
static bool goes_on(struct progress *progress)
{
	unsigned before = __atomic_load_n(&progress->nr, __ATOMIC_SEQ_CST);

	for (int ms = 0; ms < 4 * PATIENCE_MS; ms += 10) {
		if (__atomic_load_n(&progress->nr, __ATOMIC_SEQ_CST) >
		    before + 1)
			return !progress->error;
		sleep_ms(10);
	}
	return false;
}

/* ---- a module that shall go ---- */

static int unload_soon(const char *name)
{
	int error = 0;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		error = unload_module(name);
		if (error != EWOULDBLOCK)
			break;
		sleep_ms(1);
	}
	return error;
}

/* Refused while a program has the device open; after it was killed in the middle
 * of a request the module goes at once, whatever its helpers were at. */
static void unloading_waits_for_programs(void)
{
	static const unsigned long requests[] = {
		KTASK_IOC_POPULATE,
		KTASK_IOC_CLEAR,
	};
	struct progress *progress = new_progress();
	int refused = 0, error = 0, i;

	CHECK(progress && !unload_module("ktask_test"));
	for (i = 0; i < 10 && !error; i++) {
		pid_t pid = start_asking(progress, requests[i % 2], RANGE);

		if (!goes_on(progress))
			error = ETIME;
		sleep_ms(rand() % 20);
		refused += unload_module("ktask") == EWOULDBLOCK;
		kill(pid, SIGKILL);
		status_of(pid);
		if (!error)
			error = unload_soon("ktask");
		if (!error)
			error = load_module("/ktask.ko", "");
	}
	munmap(progress, sizeof(*progress));
	CHECK(unload_soon("ktask") == 0 && load_both());
	if (!error && refused == i)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "round %d: %s, refused %d times",
			    i, strerror(error), refused);
}

/* ---- CPUs that go away ---- */

static void requests_survive_cpu_hotplug(void)
{
	unsigned nr_cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	struct progress *progress = new_progress();
	bool well = true;
	unsigned moves;
	pid_t pid;

	if (nr_cpus < 2) {
		say_verdict(true, __func__, "one CPU");
		return;
	}
	CHECK(progress);
	pid = start_asking(progress, KTASK_IOC_CLEAR, RANGE);
	for (moves = 0; moves < 12 && well; moves++) {
		unsigned cpu = 1 + moves % (nr_cpus - 1);

		well = goes_on(progress);
		set_cpu(cpu, false);
		/* Several are away together, now and then. */
		if (moves % 3)
			set_cpu(cpu, true);
	}
	for (unsigned cpu = 1; cpu < nr_cpus; cpu++)
		set_cpu(cpu, true);
	well = well && goes_on(progress);
	kill(pid, SIGKILL);
	if (status_of(pid) == 1000 && well)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "move %u: %s", moves,
			    strerror(progress->error));
	munmap(progress, sizeof(*progress));
}

/* ---- a machine that is suspended ---- */

#define PM_TEST "/sys/power/pm_test"
#define LONG (256 * MIB)

/* A kernel that was built for it tests how far it gets.  Of others only all
 * processes are frozen, by the device that programs for hibernation use. */
static const struct {
	const char *level, *state;
} sleeps[] = {
	{ "freezer", "freeze" },  { "devices", "freeze" },
	{ "platform", "freeze" }, { "processors", "mem" },
	{ "core", "mem" },	  { "processes", NULL },
	{ "processes", NULL },
};

static bool can_sleep(const char *state)
{
	char states[100];

	read_file("/sys/power/state", states, sizeof(states));
	return strstr(states, state);
}

static int test_sleep(const char *level, const char *state)
{
	int error = write_file(PM_TEST, level);

	if (!error)
		error = write_file("/sys/power/state", state);
	write_file(PM_TEST, "none");
	return error;
}

static int freeze_processes(void)
{
	int fd = open("/dev/snapshot", O_RDONLY | O_CLOEXEC);
	int error = fd < 0 || ioctl(fd, SNAPSHOT_FREEZE) ? errno : 0;

	if (!error) {
		sleep_ms(500);
		ioctl(fd, SNAPSHOT_UNFREEZE);
	}
	close(fd);
	return error;
}

/* Return: 0; a positive errno; -1 if it cannot be tried here. */
static int sleep_once(const char *level, const char *state)
{
	int error = 0;

	if (state ? access(PM_TEST, F_OK) || !can_sleep(state)
		  : access("/dev/snapshot", F_OK))
		return -1;
	for (int i = 0; i < 3; i++) {
		error = state ? test_sleep(level, state) : freeze_processes();
		if (!error)
			break;
		sleep_ms(200);
	}
	return error;
}

static void a_suspended_machine_goes_on(void)
{
	struct progress *progress = new_progress();
	unsigned nr = 0, i;
	bool well = true;
	int error = 0;
	pid_t pid;

	CHECK(progress);
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	pid = start_asking(progress, KTASK_IOC_POPULATE, LONG);
	for (i = 0; i < sizeof(sleeps) / sizeof(*sleeps) && well; i++) {
		sleep_ms(200 + rand() % 100);
		error = sleep_once(sleeps[i].level, sleeps[i].state);
		if (error < 0)
			continue;
		nr++;
		note_line("a job while this machine sleeps (%s): %s",
			  sleeps[i].level, strerror(error));
		well = !error && goes_on(progress);
	}
	kill(pid, SIGKILL);
	status_of(pid);
	if (!well)
		say_verdict(false, __func__, "%s: %s, request: %s",
			    sleeps[i - 1].level, strerror(error),
			    strerror(progress->error));
	else if (!nr)
		say_verdict(true, __func__,
			    "this kernel cannot test suspending");
	else
		say_verdict(true, __func__, NULL);
	munmap(progress, sizeof(*progress));
}

/* ---- memory that goes away ---- */

static int set_block(const char *name, const char *state)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/devices/system/memory/%s/state",
		 name);
	return write_file(path, state);
}

static void ignore_signal(int unused)
{
	(void)unused;
}

/* The kernel tries until it has moved everything, or a signal comes. */
static int take_block(const char *name)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	int error;

	sigaction(SIGALRM, &action, NULL);
	alarm(BLOCK_SECONDS);
	error = set_block(name, "offline");
	alarm(0);
	return error;
}

/* Nothing is there that cannot be moved. */
static bool is_movable(const char *name)
{
	char path[300], zones[100];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/memory/%s/valid_zones", name);
	read_file(path, zones, sizeof(zones));
	return !strncmp(zones, "Movable", 7);
}

/* Each block of memory once.  Return: how many were away. */
static unsigned move_blocks(bool movable, int *error)
{
	DIR *dir = opendir("/sys/devices/system/memory");
	struct dirent *entry;
	unsigned moved = 0;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "memory", 6) ||
		    is_movable(entry->d_name) != movable ||
		    take_block(entry->d_name))
			continue;
		moved++;
		sleep_ms(10);
		*error = set_block(entry->d_name,
				   movable ? "online_movable" : "online");
	}
	if (dir)
		closedir(dir);
	return moved;
}

/* On all nodes in turn, as far as they have memory. */
static void interleave_all(void)
{
	unsigned long mask = 0;
	char path[60];

	for (int node = 0; node < 64; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d",
			 node);
		if (!access(path, F_OK))
			mask |= 1ul << node;
	}
	syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &mask, 64);
}

static void memory_may_be_unmapped_while_it_is_used(void)
{
	struct progress *progress = new_progress();
	unsigned moved = 0, i;
	bool well = true;
	int error = 0;
	pid_t pid;

	CHECK(progress);
	interleave_all();
	pid = start_asking(progress, KTASK_IOC_POPULATE, RANGE);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	for (i = 0; i < 6 && !error && well; i++) {
		moved += move_blocks(true, &error);
		/* The rest of the machine's is hardly ever to be had. */
		if (!error && !moved && i == 5)
			moved += move_blocks(false, &error);
		well = goes_on(progress);
	}
	kill(pid, SIGKILL);
	status_of(pid);
	note_line("%u times memory went and came", moved);
	if (error || !well)
		say_verdict(false, __func__, "%s, request: %s", strerror(error),
			    strerror(progress->error));
	else if (!moved)
		say_verdict(true, __func__, "no memory can be taken away here");
	else
		say_verdict(true, __func__, NULL);
	munmap(progress, sizeof(*progress));
}

void test_bad_days(void)
{
	unloading_waits_for_programs();
	requests_survive_cpu_hotplug();
	a_suspended_machine_goes_on();
	memory_may_be_unmapped_while_it_is_used();
}
