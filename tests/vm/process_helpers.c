/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of whose the helpers are that work for a process: their CPU time, CPUs,
 * memory policy, and what becomes of them when the process is stopped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/ktask.h>
#include <linux/mempolicy.h>

#include "guest.h"

/* Linux 6.9 and later; before, helpers are the kernel's own threads. */
bool has_process_helpers(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	return major > 6 || (major == 6 && minor >= 9);
}

/* Requests after which nothing may be left. */
#define REQUESTS 30
/* Looks at a process's threads, of which there may be none. */
#define SHORT_POLLS 500
/* A thread that waits at so many polls hangs: 10 s. */
#define HANG_POLLS 500
#define HANG_POLL_MS 20

static void clear_for_ever(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);

	for (;;)
		do_request(fd, KTASK_IOC_CLEAR, addr, RANGE, 0, NULL);
}

pid_t start_clearing(void)
{
	pid_t pid = fork();

	if (pid == 0)
		clear_for_ever();
	return pid;
}

void kill_process(pid_t pid)
{
	kill(pid, SIGKILL);
	status_of(pid);
}

/* A thread of the process that is not its first; 0: there is none now. */
pid_t other_thread(pid_t pid)
{
	char path[40];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) && atoi(entry->d_name) != pid)
			found = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

pid_t wait_for_thread(pid_t pid)
{
	pid_t thread = 0;

	for (int ms = 0; ms < PATIENCE_MS && !thread; ms++) {
		thread = other_thread(pid);
		if (!thread)
			sleep_ms(1);
	}
	return thread;
}

static void helpers_are_threads_of_the_caller(void)
{
	char path[60], name[40] = "";
	pid_t pid, thread = 0;

	if (!has_process_helpers() || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs Linux 6.9 and two CPUs");
		return;
	}
	pid = start_clearing();
	/* It may be gone before its name is read. */
	for (int i = 0; i < 1000 && !name[0]; i++) {
		thread = wait_for_thread(pid);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid,
			 thread);
		read_file(path, name, sizeof(name));
	}
	kill_process(pid);
	if (!strcmp(name, "ktask\n"))
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "thread %d is called '%s'", thread,
			    name);
}

/* What is there already, which takes moments.  Named by a file it is not looked at
 * first, and may be absent for a moment while the kernel moves it. */
static pid_t start_populating_again(void)
{
	pid_t pid = fork();
	char *addr;
	int fd, own;

	if (pid)
		return pid;
	fd = open_device();
	own = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	addr = map_memory(RANGE);
	memset(addr, 1, RANGE);
	for (;;)
		if (request_of(fd, KTASK_IOC_POPULATE, own, (uintptr_t)addr,
			       RANGE, KTASK_MEM_WRITE, NULL))
			_exit(1);
}

/* Looked at again and again: it may have none just then. */
static bool has_no_thread(pid_t pid)
{
	for (int i = 0; i < SHORT_POLLS; i++) {
		if (other_thread(pid))
			return false;
		sleep_ms(1);
	}
	return true;
}

/* None of its requests takes an hour, and all take more than nothing. */
static void short_requests_make_no_thread(void)
{
	bool none, some;
	pid_t pid;

	if (!has_process_helpers() || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs Linux 6.9 and two CPUs");
		return;
	}
	CHECK(!set_parameter("process_us", "3600000000"));
	pid = start_populating_again();
	none = has_no_thread(pid);
	set_parameter("process_us", "0");
	some = wait_for_thread(pid);
	kill_process(pid);
	set_parameter("process_us", "2000");
	if (none && some)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s",
			    none ? "nor do those that are long"
				 : "one was seen");
}

/* Of both kinds: how a time divides into them is a guess, the sum is exact. */
static double cpu_seconds(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	       (double)usage.ru_utime.tv_usec / 1e6 +
	       (double)usage.ru_stime.tv_usec / 1e6;
}

/* Requests, after none of which there is a helper, until the time that helpers
 * worked is in the process's own account. */
static int see_their_time(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	unsigned nr = 0;
	double all;

	do {
		if (do_request(fd, KTASK_IOC_CLEAR, addr, RANGE, 0, NULL))
			return 1;
		if (other_thread(getpid()))
			return 2;
		/* Its own time goes on meanwhile, and counts against it. */
		all = cpu_seconds(RUSAGE_SELF);
		if (all - cpu_seconds(RUSAGE_THREAD) > 0.02 && ++nr == REQUESTS)
			return 0;
	} while (time(NULL) < until);
	/* Fewer requests where each takes a second. */
	return nr ? 0 : 3;
}

static void cpu_time_of_helpers_is_the_callers(void)
{
	static const char *const why[] = {
		"",
		"a request failed",
		"a thread was left",
		"no time was seen",
	};
	pid_t pid;
	int status;

	if (!has_process_helpers() || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs Linux 6.9 and two CPUs");
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(see_their_time());
	status = status_of(pid);
	if (status)
		say_verdict(false, __func__, "%s",
			    why[status >= 0 && status < 4 ? status : 0]);
	else
		say_verdict(true, __func__, NULL);
}

static void helpers_stay_on_the_callers_cpus(void)
{
	cpu_set_t wanted, seen, within;
	pid_t pid, thread;
	int nr = 0, stray = 0;

	if (!has_process_helpers() || sysconf(_SC_NPROCESSORS_ONLN) < 3) {
		say_verdict(true, __func__, "needs Linux 6.9 and three CPUs");
		return;
	}
	CPU_ZERO(&wanted);
	CPU_SET(0, &wanted);
	CPU_SET(1, &wanted);
	pid = fork();
	if (pid == 0) {
		sched_setaffinity(0, sizeof(wanted), &wanted);
		clear_for_ever();
	}
	for (int i = 0; i < 10000 && nr < 20; i++) {
		thread = wait_for_thread(pid);
		if (!thread || sched_getaffinity(thread, sizeof(seen), &seen))
			continue;
		nr++;
		CPU_AND(&within, &seen, &wanted);
		stray += !CPU_EQUAL(&within, &seen);
	}
	kill_process(pid);
	if (nr && !stray)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%d of %d helpers elsewhere",
			    stray, nr);
}

static char state_of(pid_t pid)
{
	char path[40], text[400] = "", *after;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_file(path, text, sizeof(text));
	after = strrchr(text, ')');
	return after ? after[2] : 0;
}

static bool await_stopped(pid_t pid, bool stopped)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if ((state_of(pid) == 'T') == stopped)
			return true;
		sleep_ms(1);
	}
	return false;
}

static bool waits_for_good(const char *pid)
{
	char path[300], stat[300];
	int polls = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	for (; polls < HANG_POLLS; polls++) {
		read_file(path, stat, sizeof(stat));
		if (!strstr(stat, "(kworker") || !strstr(stat, ") D "))
			break;
		sleep_ms(HANG_POLL_MS);
	}
	return polls == HANG_POLLS;
}

/* A thread of the kernel in the state of which it says that the thread hangs, if
 * that lasts two minutes.  Where emulated CPUs wait for real ones a short wait takes
 * a second. */
static bool a_kworker_hangs(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool hangs = false;

	while (dir && !hangs && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			hangs = waits_for_good(entry->d_name);
	if (dir)
		closedir(dir);
	return hangs;
}

/* Its helpers stop as well; nobody waits for what only goes on later. */
static void a_process_can_be_stopped_in_the_middle(void)
{
	pid_t pid = start_clearing();
	bool hangs = false;
	int i;

	for (i = 0; i < 20; i++) {
		sleep_ms(rand() % 30);
		kill(pid, SIGSTOP);
		if (!await_stopped(pid, true))
			break;
		hangs = a_kworker_hangs();
		if (hangs)
			break;
		kill(pid, SIGCONT);
		if (!await_stopped(pid, false))
			break;
	}
	kill_process(pid);
	if (i == 20)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "round %d%s", i,
			    hangs ? ": a kworker waits meanwhile" : "");
}

/* Pages of @addr on another node than @node. */
static long count_strays(char *addr, int node)
{
	size_t nr = RANGE / PAGE;
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes));
	long stray = 0;

	for (size_t i = 0; i < nr; i++)
		pages[i] = addr + i * PAGE;
	if (syscall(SYS_move_pages, 0, nr, pages, NULL, nodes, 0))
		stray = -1;
	for (size_t i = 0; i < nr && stray >= 0; i++)
		stray += nodes[i] != node;
	free(pages);
	free(nodes);
	return stray;
}

/* Twice: as a long request and, by way of the file that another process would
 * use, as short ones. */
static long populate_twice(int fd, int of, char *addr)
{
	uint64_t at = (uintptr_t)addr;
	long error = do_request(fd, KTASK_IOC_POPULATE, addr, RANGE / 2,
				KTASK_MEM_WRITE, NULL);

	for (size_t done = RANGE / 2; done < RANGE && !error; done += 8 * MIB)
		error = request_of(fd, KTASK_IOC_POPULATE, of, at + done,
				   8 * MIB, KTASK_MEM_WRITE, NULL);
	return error;
}

static void pages_follow_the_callers_memory_policy(void)
{
	unsigned long mask = 1ul << 1;
	long error, stray = 0;
	char *addr;
	int fd, of;

	if (access("/sys/devices/system/node/node1/meminfo", F_OK)) {
		say_verdict(true, __func__, "one node");
		return;
	}
	fd = open_device();
	of = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	addr = map_memory(RANGE);
	error = syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64);
	for (int i = 0; i < 10 && !error && !stray; i++) {
		madvise(addr, RANGE, MADV_DONTNEED);
		error = populate_twice(fd, of, addr);
		stray = count_strays(addr, 1);
	}
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	munmap(addr, RANGE);
	close(of);
	close(fd);
	if (!error && !stray)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "error %ld, %ld pages elsewhere",
			    error, stray);
}

/* ---- the CPU quota ---- */

#define TOP "/sys/fs/cgroup"
#define OUTER TOP "/outer"
#define INNER OUTER "/inner"

/* Threads that cleared the range: the most of some requests. */
static unsigned most_threads(unsigned requests)
{
	struct ktask_mem mem = { .size = sizeof(mem), .len = RANGE };
	unsigned most = 0;
	int fd = open_device();
	char *addr = map_memory(RANGE);

	mem.addr = (uintptr_t)addr;
	for (unsigned i = 0; i < requests; i++) {
		mem.threads = 0;
		if (ioctl(fd, KTASK_IOC_CLEAR, &mem) || !mem.threads)
			return 0;
		if (mem.threads > most)
			most = mem.threads;
	}
	munmap(addr, RANGE);
	close(fd);
	return most;
}

/* Helpers come when they get a CPU, which may be late. */
static bool gets_helpers(void)
{
	for (unsigned i = 0; i < 200; i++)
		if (most_threads(5) > 1)
			return true;
	return false;
}

/* In a child that is in the inner group.  Return: 0, or what was not so. */
static int try_quotas(void)
{
	if (!gets_helpers())
		return 1;
	/* One CPU, 1.1 CPUs and a half; of its own and of the group around it. */
	write_file(INNER "/cpu.max", "100000 100000");
	if (most_threads(20) != 1)
		return 2;
	write_file(INNER "/cpu.max", "1100000 1000000");
	if (most_threads(20) != 1)
		return 3;
	write_file(INNER "/cpu.max", "max");
	write_file(OUTER "/cpu.max", "50000 100000");
	if (most_threads(5) != 1)
		return 4;
	write_file(OUTER "/cpu.max", "200000 100000");
	if (!gets_helpers() || most_threads(20) > 2)
		return 5;
	write_file(OUTER "/cpu.max", "max");
	return gets_helpers() ? 0 : 6;
}

/* In a child as well: a job that finds its helper later heeds the quota of then.
 * Return: 0, or what was not so. */
static int try_started_jobs(void)
{
	int error = run_in_kernel("+start-for-quota");

	if (error)
		return 10;
	write_file(INNER "/cpu.max", "100000 100000");
	error = run_in_kernel("+end-for-quota");
	write_file(INNER "/cpu.max", "max");
	return error ? 11 : 0;
}

static int in_inner_group(void)
{
	int error;

	if (write_file(INNER "/cgroup.procs", "0"))
		return 100;
	error = try_quotas();
	return error ? error : try_started_jobs();
}

/* Whether they are in the group or, on older kernels, nobody's. */
static void helpers_are_no_more_than_the_quota_is_worth(void)
{
	pid_t pid;
	int status;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		say_verdict(true, __func__, "needs two CPUs");
		return;
	}
	CHECK(!mount("cgroup2", TOP, "cgroup2", 0, NULL));
	CHECK(!write_file(TOP "/cgroup.subtree_control", "+cpu"));
	CHECK(!mkdir(OUTER, 0755));
	CHECK(!write_file(OUTER "/cgroup.subtree_control", "+cpu"));
	CHECK(!mkdir(INNER, 0755));
	pid = fork();
	if (pid == 0)
		_exit(in_inner_group());
	status = status_of(pid);
	rmdir(INNER);
	rmdir(OUTER);
	umount(TOP);
	if (status == 0)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "step %d", status);
}

void test_process_helpers(void)
{
	helpers_are_threads_of_the_caller();
	short_requests_make_no_thread();
	cpu_time_of_helpers_is_the_callers();
	helpers_stay_on_the_callers_cpus();
	a_process_can_be_stopped_in_the_middle();
	pages_follow_the_callers_memory_policy();
	helpers_are_no_more_than_the_quota_is_worth();
}
