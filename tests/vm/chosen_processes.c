/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd serves whom the administrator has chosen, each within its own limits: of memory,
 * of CPUs, and of what the machine has.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
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
#define BOX_GROUP GROUP "/box"
/* The quota is that of a group above. */
#define QUOTA GROUP "/quota/cpu.max"
#define QUOTA_GROUP GROUP "/quota/below"
#define OVERCOMMIT "/proc/sys/vm/overcommit_memory"

#define LEN TOUCH_LEN
#define NR_PAGES TOUCH_PAGES
#define BLOCK TOUCH_BLOCK
#define TRIES 3

static const char *const all_groups[] = {
	FREE_GROUP,  LIMITED_GROUP,  BOX_GROUP,
	QUOTA_GROUP, GROUP "/quota", GROUP,
};

#define NR_GROUPS (sizeof(all_groups) / sizeof(*all_groups))

static void make_groups(void)
{
	static const char *const above[] = { GROUPS, GROUP, GROUP "/quota" };
	char path[100];

	mount("cgroup2", GROUPS, "cgroup2", 0, NULL);
	for (size_t i = NR_GROUPS; i-- > 0;)
		mkdir(all_groups[i], 0755);
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.subtree_control",
			 above[i]);
		write_file(path, "+memory +cpu");
	}
	write_file(LIMITED_GROUP "/memory.max", "67108864");
}

/* The last process of one may not be gone yet. */
static void remove_groups(void)
{
	for (size_t i = 0; i < NR_GROUPS; i++)
		for (int ms = 0; rmdir(all_groups[i]) && ms < PATIENCE_MS;
		     ms += 10)
			sleep_ms(10);
	umount(GROUPS);
}

static unsigned long number_in(const char *path, const char *name)
{
	char text[4096], *at = text;

	read_file(path, text, sizeof(text));
	if (name)
		at = strstr(text, name);
	return at ? strtoul(at + (name ? strlen(name) : 0), NULL, 10) : 0;
}

/* The verdict is the status of whom it served. */
static void end_daemon(pid_t daemon, const char *test, int status)
{
	kill(daemon, SIGTERM);
	status_of(daemon);
	say_verdict(!status, test, status ? "status %d" : NULL, status);
	if (status)
		note_daemon();
}

/* ---- limits of memory ---- */

static int touch_in_group(char *memory)
{
	int status;

	if (write_file(FREE_GROUP "/cgroup.procs", "0"))
		return 5;
	status = touch_all(memory);
	if (status)
		return status;
	return number_in(FREE_GROUP "/memory.current", NULL) >= LEN ? 0 : 6;
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

static void groups_pay_for_what_is_made_and_no_more(void)
{
	pid_t daemon;
	int charged, limited, unserved;
	unsigned long kills;

	make_groups();
	daemon = start_daemon("--cgroup", GROUP);
	unserved = status_of(start_toucher(NAME, touch_unserved));
	charged = touch_until_served(NAME, touch_in_group);
	limited = status_of(start_toucher(NAME, touch_to_the_limit));
	kills = number_in(LIMITED_GROUP "/memory.events", "oom ");
	kill_process(daemon);
	if (unserved || charged || limited || kills)
		say_verdict(false, __func__, "status %d, %d and %d, %lu kills",
			    unserved, charged, limited, kills);
	else
		say_verdict(true, __func__, NULL);
	remove_groups();
}

/* ---- a quota of CPUs ---- */

static bool has_said(const char *what)
{
	char text[8192], *line, *rest = text, own[20];

	snprintf(own, sizeof(own), "(%d): ", getpid());
	read_file(DAEMON_LOG, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, own) && strstr(line, what))
			return true;
	return false;
}

/* Return: whether the daemon says so of this process, before long. */
static bool await_saying(const char *what)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (has_said(what))
			return true;
		sleep_ms(10);
	}
	return false;
}

static void touch_slowly(char *memory, size_t first, size_t end)
{
	for (size_t page = first; page < end; page++) {
		memory[page * PAGE] = 1;
		if (page % BLOCK == 0)
			sleep_ms(10);
	}
}

/*
 * Return: 0; 1: there was something in a page; 3: pages were made under a quota; 4: the
 * daemon did not say that there is one, or that it ended; or TOO_FEW.
 */
static int touch_with_a_quota(char *memory)
{
	const size_t third = NR_PAGES / 3 / BLOCK * BLOCK;
	long faults;
	size_t absent;

	if (write_file(QUOTA_GROUP "/cgroup.procs", "0") ||
	    write_file(QUOTA, "90000 100000"))
		return 5;
	madvise(memory, LEN, MADV_NOHUGEPAGE);
	touch_slowly(memory, 0, third);
	if (!await_saying("not served, its control group has a CPU quota"))
		return 4;
	if (count_present(memory) != third)
		return 3;

	write_file(QUOTA, "max 100000");
	faults = count_faults();
	if (!touch_pages(memory, third, 2 * third, false))
		return 1;
	if (count_faults() - faults >= (long)third / 2)
		return TOO_FEW;

	write_file(QUOTA, "90000 100000");
	if (!await_saying("MiB made ahead"))
		return 4;
	absent = NR_PAGES - count_present(memory);
	faults = count_faults();
	touch_slowly(memory, 2 * third, NR_PAGES);
	return count_faults() - faults >= (long)absent ? 0 : 3;
}

/* Helpers of the daemon would do what the kernel has the process wait for. */
static void a_cpu_quota_is_not_outrun(void)
{
	pid_t daemon;

	make_groups();
	daemon = start_daemon("--cgroup", GROUP);
	end_daemon(daemon, __func__,
		   touch_until_served(NAME, touch_with_a_quota));
	remove_groups();
}

/* ---- pretenders ---- */

#define PRETENDED ((size_t)1 << 40)
#define FRONTIERS 32
#define PRETENDERS_MAX 3
/* What a process touches to count its pages, and a stack that grows. */
#define OWN_PAGES 64

/* Shared with the one who pretends. */
struct pretender {
	const char *what;
	size_t len;
	int flags; /* of its mapping */
	size_t frontiers; /* at which it touches a little, in order */
	bool limited; /* it is in the group with a limit */
	long allowed; /* pages that may be made for it */
	volatile long touched, most; /* it tells; pages that it did not touch */
};

/* Of memory that belongs to no file. */
static long own_pages(void)
{
	return (long)number_in("/proc/self/smaps_rollup", "Anonymous:") / 4;
}

static int pretend_to_touch(char *unused, void *arg)
{
	struct pretender *own = arg;
	char *memory = mmap(NULL, own->len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | own->flags, -1, 0);
	long before = own_pages();

	(void)unused;
	if (memory == MAP_FAILED)
		return 9;
	if (own->limited && write_file(LIMITED_GROUP "/cgroup.procs", "0"))
		return 5;
	madvise(memory, own->len, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < 2 * BLOCK / own->frontiers; page++) {
		for (size_t i = 0; i < own->frontiers; i++)
			memory[own->len / own->frontiers * i + page * PAGE] = 1;
		own->touched += (long)own->frontiers;
		if (page % 4 == 0)
			sleep_ms(10);
	}
	for (;;) {
		long others = own_pages() - before - own->touched;

		own->most = others > own->most ? others : own->most;
		sleep_ms(50);
	}
}

/* Return: whether it got no more than it may. */
static bool is_content(const struct pretender *own)
{
	note_line("%s: %ld pages touched, %ld made, %ld allowed", own->what,
		  own->touched, own->most, own->allowed);
	return own->touched == 2 * BLOCK && own->most <= own->allowed;
}

/* Until they have touched what they touch, and a while longer. */
static void await_pretenders(const struct pretender *all, int nr)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		bool done = true;

		for (int i = 0; i < nr; i++)
			done &= all[i].touched == 2 * BLOCK;
		if (done)
			break;
		sleep_ms(10);
	}
	sleep_ms(2000);
}

/* Return: whether no more was made for them than is allowed, and 0 or the status of a
 * process that touches its memory beside them. */
static bool pretend_at_once(const struct pretender *all, int nr, int *status)
{
	size_t len = (size_t)nr * sizeof(*all);
	struct pretender *shared = mmap(NULL, len, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t daemon, pids[PRETENDERS_MAX];
	bool content = true;

	memcpy(shared, all, len);
	daemon = start_daemon("--name", NAME);
	for (int i = 0; i < nr; i++)
		pids[i] = start_named(NAME, pretend_to_touch, &shared[i]);
	await_pretenders(shared, nr);
	if (status)
		*status = touch_until_served(NAME, touch_all);
	for (int i = 0; i < nr; i++) {
		kill_process(pids[i]);
		content &= is_content(&shared[i]);
	}
	kill_process(daemon);
	munmap(shared, len);
	return content;
}

/* Whoever maps much more than there is gains nothing, and takes nothing from others. */
static void whoever_pretends_gains_nothing_and_stops_nobody(void)
{
	static const struct pretender all[] = {
		{ .what = "without a reserve",
		  .len = PRETENDED,
		  .flags = MAP_NORESERVE,
		  .frontiers = 1,
		  .allowed = OWN_PAGES },
		{ .what = "a terabyte",
		  .len = PRETENDED,
		  .frontiers = 1,
		  .allowed = OWN_PAGES },
		{ .what = "a terabyte at many frontiers",
		  .len = PRETENDED,
		  .frontiers = FRONTIERS,
		  .allowed = OWN_PAGES },
	};
	bool content;
	int status;

	/* Otherwise nobody may map so much. */
	write_file(OVERCOMMIT, "1");
	content = pretend_at_once(all, 3, &status);
	write_file(OVERCOMMIT, "0");
	if (status || !content)
		say_verdict(false, __func__, "status %d, they got %s", status,
			    content ? "nothing" : "memory");
	else
		say_verdict(true, __func__, NULL);
}

/* Whoever moves at many frontiers of a mapping has one first window of it, and nothing
 * where a group has no memory for the mapping. */
static void frontiers_that_are_faked_share_one_bound(void)
{
	static const struct pretender all[] = {
		{ .what = "many frontiers",
		  .len = LEN,
		  .frontiers = FRONTIERS,
		  .allowed = NR_PAGES / 16 + 2 * BLOCK * 3 / 100 + OWN_PAGES },
		{ .what = "many frontiers in a group",
		  .len = LEN,
		  .frontiers = FRONTIERS,
		  .limited = true,
		  .allowed = OWN_PAGES },
	};
	unsigned long kills;
	bool content;

	make_groups();
	content = pretend_at_once(all, 2, NULL);
	kills = number_in(LIMITED_GROUP "/memory.events", "oom ");
	remove_groups();
	if (!content || kills)
		say_verdict(false, __func__, "%lu kills", kills);
	else
		say_verdict(true, __func__, NULL);
}

/* ---- who is chosen ---- */

/* What a container sees: processes, mounts and control groups of its own. */
static int touch_as_first_process(char *memory)
{
	if (getpid() != 1 || unshare(CLONE_NEWCGROUP) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL) ||
	    mount("tmpfs", "/dev", "tmpfs", 0, NULL))
		return 5;
	return touch_all(memory);
}

static int touch_in_a_container(char *memory)
{
	pid_t pid;

	if (write_file(BOX_GROUP "/cgroup.procs", "0") ||
	    unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS))
		return 5;
	pid = fork();
	if (!pid)
		_exit(touch_as_first_process(memory));
	return status_of(pid);
}

static void a_container_is_served(const char *test, const char *option,
				  const char *value)
{
	pid_t daemon;

	make_groups();
	daemon = start_daemon(option, value);
	end_daemon(daemon, test,
		   touch_until_served("boxed", touch_in_a_container));
	remove_groups();
}

/* Return: the status of the last two that touch at once. */
static int touch_two_at_once(void)
{
	int status = TOO_FEW;

	for (int i = 0; status == TOO_FEW && i < TRIES; i++) {
		pid_t first = start_toucher(NAME, touch_all);
		pid_t second = start_toucher(NAME, touch_all);
		int other = status_of(second);

		status = status_of(first);
		status = status ? status : other;
	}
	return status;
}

/* None takes the helpers, or the memory, from the other. */
static void two_processes_are_served_alike(void)
{
	pid_t daemon = start_daemon("--name", NAME);

	end_daemon(daemon, __func__, touch_two_at_once());
}

void test_chosen_processes(void)
{
	struct page_sizes sizes;

	if (!is_daemon_here("chosen-processes-are-served"))
		return;
	if (begin_small_pages(&sizes)) {
		groups_pay_for_what_is_made_and_no_more();
		a_cpu_quota_is_not_outrun();
		whoever_pretends_gains_nothing_and_stops_nobody();
		frontiers_that_are_faked_share_one_bound();
		a_container_is_served("a-chosen-container-is-served",
				      "--cgroup", BOX_GROUP);
		a_container_is_served("containers-are-among-all", "--all",
				      NULL);
		two_processes_are_served_alike();
	}
	end_small_pages(&sizes);
}
