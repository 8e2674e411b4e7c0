/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bad days: CPUs and memory go and come, processes are frozen, memory is short, while a
 * client of the kernel's is used over and over; and at last its user is killed in the
 * middle.
 *
 * Each client is used by a process of its own, which looks at what came of each use.
 * Behind it nothing may be left, and this kernel's clients must go on as the other's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"
#include "device_mappings.h"

#define LEN (96 * MIB) /* for helpers it takes 64 MiB in small pages */
#define DEVICE_LEN (160 * MIB)
#define POOL_PAGES 288 /* for two threads: each frees 256 MiB at least */
#define FILE_PAGES 90
#define GROUP GROUP_DIR "/day"
#define PATIENCE_SECONDS 900
#define PAUSE_US 10000
#define OFFLINE_SECONDS 60
#define BLOCKS_MAX 100

/* What a use must not come to; all others are errno. */
enum { WRONG_RESULT = 1000 };

struct progress {
	unsigned nr; /* uses that went well */
	int error;
	unsigned nr_passes; /* over more memory than there is */
};

/* ---- clients ---- */

/* What may come of a use that is no mistake: of the same uses on both kernels. */
enum excuse {
	NOTHING,
	/* A pool gets fewer pages than were asked for, or loses some that are free. */
	SHORT_MEMORY,
	/* Freezing is a signal: a pool gets fewer pages, a file has to be filled again. */
	INTERRUPTION,
};

static enum excuse excuse;

/* All pages of the pool are free; and there are so many as were asked for. */
static int resize_pool(void)
{
	long nr = pool_set(&pool_2m, POOL_PAGES);
	long nr_free = pool_number(&pool_2m, -1, "free_hugepages");
	long rest = pool_set(&pool_2m, 0);

	if (excuse)
		return nr < 0 || nr > POOL_PAGES ? WRONG_RESULT : 0;
	return nr != POOL_PAGES || nr_free != nr || rest ? WRONG_RESULT : 0;
}

static bool has_pages(int fd, long nr)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size == FILE_PAGES * (off_t)HUGE &&
	       st.st_blocks == nr * (long)HUGE / 512;
}

static int allocate_pages(int fd, int mode, long nr)
{
	int error;

	do
		error = fallocate(fd, mode, 0, nr * (off_t)HUGE) ? errno : 0;
	while (error == EINTR && excuse == INTERRUPTION);
	return error;
}

static int fill_file(int fd)
{
	int error = allocate_pages(fd, 0, FILE_PAGES);

	if (error)
		return excuse == SHORT_MEMORY && error == ENOSPC ? 0 : error;
	if (!has_pages(fd, FILE_PAGES))
		return WRONG_RESULT;
	error = allocate_pages(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       FILE_PAGES / 2);
	if (error)
		return error;
	return has_pages(fd, FILE_PAGES - FILE_PAGES / 2) ? 0 : WRONG_RESULT;
}

static int fill_new_file(void)
{
	int fd = memfd_create("day", MFD_HUGETLB | pool_2m.flag);
	int error = fd < 0 ? errno : fill_file(fd);

	close(fd);
	return error;
}

static void live_and_end(void *arg)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

	(void)arg;
	if (!addr)
		_exit(1);
	populate_memory(addr, LEN);
	_exit(7);
}

static int end_process(void)
{
	return run_child(live_and_end, NULL) == 7 ? 0 : WRONG_RESULT;
}

static int unmap_memory(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

	if (!addr)
		return ENOMEM;
	populate_memory(addr, LEN);
	if (!keeps_contents(addr, LEN))
		return WRONG_RESULT;
	return munmap(addr, LEN) ? errno : 0;
}

/* Absent memory; a child sees what the process has locked. */
static int map_and_unmap(void)
{
	char *addr = map_memory(DEVICE_LEN, MADV_NOHUGEPAGE);
	int error = addr ? map_for_device(addr, DEVICE_LEN, 0) : ENOMEM;
	long locked = number_in("/proc/self/status", "VmLck:");

	if (!error && locked != (long)(DEVICE_LEN >> 10))
		error = WRONG_RESULT;
	if (!error && unmap_for_device(DEVICE_LEN, 0) != (long)DEVICE_LEN)
		error = WRONG_RESULT;
	if (!error && number_in("/proc/self/status", "VmLck:"))
		error = WRONG_RESULT;
	munmap(addr, DEVICE_LEN);
	return error;
}

static const struct client {
	const char *name;
	int (*use)(void); /* 0, an errno, or WRONG_RESULT */
	long pool_pages; /* that it needs */
	bool of_device;
} clients[] = {
	{ "nr_hugepages", resize_pool, 0, false },
	{ "fallocate", fill_new_file, FILE_PAGES, false },
	{ "exit", end_process, 0, false },
	{ "munmap", unmap_memory, 0, false },
	{ "VFIO", map_and_unmap, 0, true },
};

/* ---- a process that uses one ---- */

static struct progress *progress;

static pid_t start_using(const struct client *client)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* PID 1 reports. */
	while (!progress->error) {
		progress->error = client->use();
		if (!progress->error)
			__atomic_add_fetch(&progress->nr, 1, __ATOMIC_SEQ_CST);
	}
	for (;;)
		pause();
}

/* Two more uses end well, one of them begun by now. */
static bool goes_on(void)
{
	unsigned before = __atomic_load_n(&progress->nr, __ATOMIC_SEQ_CST);
	double until = seconds_now() + PATIENCE_SECONDS;

	while (seconds_now() < until && !progress->error) {
		if (__atomic_load_n(&progress->nr, __ATOMIC_SEQ_CST) >
		    before + 1)
			return true;
		usleep(PAUSE_US);
	}
	return false;
}

struct day {
	const struct client *client;
	pid_t pid; /* of its user */
	const char
		*skipped; /* why this could not be done, where that is right */
};

/* With the processes that it has begun; the container is PID 1's as well. */
static void kill_user(struct day *day)
{
	kill(day->pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	unmap_all();
}

/* ---- what makes a day bad ---- */

static void ignore_signal(int nr)
{
	(void)nr;
}

/* write_for - as write_text(), but a signal ends it after so many seconds */
static int write_for(unsigned seconds, const char *path, const char *text)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	struct itimerval once = { { 1, 0 }, { seconds, 0 } }, never = { 0 };
	int error;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	error = write_text(path, text);
	setitimer(ITIMER_REAL, &never, NULL);
	return error;
}

static int set_cpu(long cpu, bool online)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online",
		 cpu);
	return write_text(path, online ? "1" : "0");
}

/* Several are away together, now and then. */
static bool remove_cpus(struct day *day)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF), moved = 0;
	bool well = true;

	(void)day;
	for (long move = 0; move < 9 && well; move++) {
		long cpu = 1 + move % (nr - 1);

		moved += !set_cpu(cpu, false);
		well = goes_on();
		if (move % 3)
			moved += !set_cpu(cpu, true);
	}
	for (long cpu = 1; cpu < nr; cpu++)
		set_cpu(cpu, true);
	return well && moved > 9 && sysconf(_SC_NPROCESSORS_ONLN) == nr;
}

/* The kernel tests how far it gets. */
static bool suspend_to(const char *level, const char *state)
{
	int error = 0;

	write_text("/sys/module/suspend/parameters/pm_test_delay", "0");
	for (int i = 0; i < 3; i++) {
		error = write_text("/sys/power/pm_test", level);
		if (!error)
			error = write_text("/sys/power/state", state);
		write_text("/sys/power/pm_test", "none");
		/* Something woke it: once more. */
		if (error != EBUSY)
			break;
		usleep(PAUSE_US);
	}
	return !error;
}

/* Kernels that Debian builds cannot test it; those of the series must. */
static bool suspend_machine(struct day *day)
{
	bool well = true;

	if (access("/sys/power/pm_test", F_OK)) {
		day->skipped = "this kernel has no pm_test";
		return !is_of_series();
	}
	for (useconds_t i = 0; i < 4 && well; i++) {
		usleep(37000 * i);
		well = suspend_to("freezer", "freeze") && goes_on();
	}
	/* As far as all CPUs but one are away. */
	return well && suspend_to("processors", "mem") && goes_on();
}

static bool await_frozen(long wanted)
{
	double until = seconds_now() + PATIENCE_SECONDS;

	while (number_in(GROUP "/cgroup.events", "frozen ") != wanted)
		if (seconds_now() > until)
			return false;
		else
			usleep(PAUSE_US);
	return true;
}

/* Frozen it stays, and nothing is used. */
static bool freeze_group(struct day *day)
{
	bool well = true;
	unsigned nr;

	write_number(GROUP "/cgroup.procs", day->pid);
	for (int i = 0; i < 5 && well; i++) {
		usleep(23000 * (useconds_t)i);
		write_text(GROUP "/cgroup.freeze", "1");
		well = await_frozen(1);
		nr = progress->nr;
		usleep(50 * PAUSE_US);
		well = well && nr == progress->nr;
		write_text(GROUP "/cgroup.freeze", "0");
		well = await_frozen(0) && goes_on() && well;
	}
	return well;
}

/*
 * More memory than there is, each part of which may be taken as soon as it is written:
 * whoever wants some reclaims, and nobody need be killed.
 */
static void use_up_memory(unsigned *nr_passes)
{
	size_t part = 4 * MIB, len;
	char *addr;

	len = (size_t)number_in("/proc/meminfo", "MemFree:") * 1024;
	len = (len + len / 4) & ~(HUGE - 1);
	addr = map_memory(len, MADV_HUGEPAGE);
	write_text("/proc/self/oom_score_adj", "1000");
	while (addr) {
		for (size_t at = 0; at + part <= len; at += part) {
			populate_memory(addr + at, part);
			madvise(addr + at, part, MADV_FREE);
		}
		__atomic_add_fetch(nr_passes, 1, __ATOMIC_SEQ_CST);
	}
	_exit(1);
}

/* After a pass somebody has reclaimed, and will all the time. */
static bool press_memory(struct day *day)
{
	unsigned *nr_passes = &progress->nr_passes;
	double until = seconds_now() + PATIENCE_SECONDS;
	pid_t pid = fork();
	bool well = true;

	(void)day;
	if (pid == 0)
		use_up_memory(nr_passes);
	while (!__atomic_load_n(nr_passes, __ATOMIC_SEQ_CST) &&
	       seconds_now() < until)
		usleep(PAUSE_US);
	for (int i = 0; i < 3 && well; i++)
		well = goes_on();
	well = well && *nr_passes && !waitpid(pid, NULL, WNOHANG);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return well;
}

static bool is_movable(int block)
{
	char path[100], zones[100];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/memory/memory%d/valid_zones", block);
	read_text(path, zones, sizeof(zones));
	return !strncmp(zones, "Movable", 7);
}

/* What is in it goes elsewhere.  Return: whether it went. */
static bool remove_block(int block)
{
	char path[100];
	bool gone;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/memory/memory%d/state", block);
	gone = !write_for(OFFLINE_SECONDS, path, "offline");
	write_text(path, "online_movable");
	return gone;
}

/*
 * Block by block: what somebody works with may not go at once.  In a pool that grows and
 * shrinks all the time there may always be a page that was just had.
 */
static bool remove_memory(struct day *day)
{
	bool may_stay = day->client->use == resize_pool, well = true;
	double until = seconds_now() + (may_stay ? 0 : PATIENCE_SECONDS);
	int moved = 0;

	do {
		for (int block = 0; block < BLOCKS_MAX && moved < 3; block++)
			if (is_movable(block))
				moved += remove_block(block);
		well = goes_on();
	} while (moved < 3 && well && seconds_now() < until);
	note_line("%s: %d blocks of memory went", day->client->name, moved);
	if (!moved)
		day->skipped = "no block of memory went";
	return well && (moved || may_stay);
}

/* At whatever time, which differs. */
static bool kill_users(struct day *day)
{
	for (useconds_t i = 0; i < 6; i++) {
		usleep(30000 + 29000 * i);
		kill_user(day);
		day->pid = start_using(day->client);
	}
	return goes_on();
}

static const struct badness {
	const char *name;
	bool (*make)(struct day *day); /* whether all went well */
	enum excuse excuse;
} badnesses[] = {
	{ "CPUs that go and come", remove_cpus, NOTHING },
	{ "a machine that is suspended", suspend_machine, INTERRUPTION },
	{ "a group that is frozen", freeze_group, INTERRUPTION },
	{ "memory that is short", press_memory, SHORT_MEMORY },
	{ "memory that goes and comes", remove_memory, SHORT_MEMORY },
	{ "users that are killed", kill_users, NOTHING },
};

#define NR_BADNESSES (sizeof(badnesses) / sizeof(*badnesses))

/* ---- a day ---- */

static void tell_left(const struct use *before, const char *what,
		      const char *when)
{
	static const char *const sums[] = { "nr_hugepages", "free_hugepages",
					    "resv_hugepages",
					    "surplus_hugepages" };

	tell_use_since(before, what, when);
	tell_fact_number(pinned_pages(), "%s, %s: pages pinned", what, when);
	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		tell_fact_number(pool_number(&pool_2m, -1, sums[i]),
				 "%s, %s: %s", what, when, sums[i]);
}

/* The first time PID 1 takes what it needs itself. */
static void spend_day(const struct client *client,
		      const struct badness *badness, bool tell)
{
	struct day day = { .client = client };
	struct use before;
	bool well;

	excuse = badness->excuse;
	pool_set(&pool_2m, client->pool_pages);
	read_use(&before);
	memset(progress, 0, sizeof(*progress));
	mkdir(GROUP, 0755);
	day.pid = start_using(client);
	well = goes_on() && badness->make(&day);
	kill_user(&day);
	/* A pool that its user left as it was then. */
	pool_set(&pool_2m, client->pool_pages);
	rmdir(GROUP);
	if (!tell)
		return;
	tell_fact_number(access(GROUP, F_OK) ? errno : 0,
			 "%s, %s: group removed", client->name, badness->name);
	tell_fact_number(progress->error, "%s, %s: errno", client->name,
			 badness->name);
	if (well && day.skipped)
		skip_check(day.skipped, "%s goes on beside %s", client->name,
			   badness->name);
	else
		check_that(well, "%s goes on beside %s%s%s", client->name,
			   badness->name, day.skipped ? ": " : "",
			   day.skipped ? day.skipped : "");
	tell_left(&before, client->name, badness->name);
}

static const struct client *quiet_client;

static void use_quietly(void)
{
	quiet_client->use();
}

static void spend_days(const struct client *client)
{
	char name[80];

	spend_day(client, &badnesses[NR_BADNESSES - 1], false);
	for (size_t i = 0; i < NR_BADNESSES; i++)
		spend_day(client, &badnesses[i], true);
	quiet_client = client;
	pool_set(&pool_2m, client->pool_pages);
	snprintf(name, sizeof(name), "helpers work for %s after all",
		 client->name);
	check_helped(NULL, use_quietly, name);
}

void tell_bad_days(void)
{
	bool of_device = read_option("vfio", 0);

	progress = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* More may be mapped than there is. */
	write_text("/proc/sys/vm/overcommit_memory", "1");
	if (of_device && !open_container()) {
		check_that(false, "there is a device");
		return;
	}
	for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++) {
		if (clients[i].of_device != of_device)
			continue;
		spend_days(&clients[i]);
	}
	pool_set(&pool_2m, 0);
	note_line("helpers that worked in jobs: %ld", helpers_worked());
}
