/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd is killed and started again, beside processes that it serves.
 *
 * Whoever it works for notices nothing, no memory is lost, nothing of it remains, and
 * the next one goes on.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define NAME "served"
#define REFERENCES "/sys/module/ktask/refcnt"
#define REGISTRY "/dev/shm"

/* What a process of the load maps, and how many there are. */
#define LOAD_LEN (40 * MIB)
#define LOAD_PAGES (LOAD_LEN / PAGE)
#define LOADS 2
#define KILLS 8
/* A daemon that has asked so often makes memory; the first request is a trial. */
#define REQUESTS 4
#define WAIT_SECONDS 60
#define WAIT_STEPS 100
#define PHASE_SECONDS 300
#define PATIENCE_SECONDS (PATIENCE_MS / 1000)
/* A piece for each kill would be more. */
#define LOST_PAGES_MAX 512l

/* Shared with the processes that are served. */
struct phases {
	volatile int phase;
	volatile int stop;
	volatile long faults;
};

static struct phases *share_phases(void)
{
	void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return shared == MAP_FAILED ? NULL : shared;
}

static bool await_phase(const struct phases *phases, int phase)
{
	double limit = seconds_now() + PHASE_SECONDS;

	while (phases->phase < phase && seconds_now() < limit)
		sleep_ms(10);
	return phases->phase >= phase;
}

/* ---- killed in the middle of one mapping ---- */

/* Return: pages that are there though the program has not touched them. */
static size_t count_untouched(char *memory, size_t touched)
{
	static unsigned char seen[TOUCH_PAGES];
	size_t nr = 0;

	if (mincore(memory, TOUCH_LEN, seen))
		return 0;
	for (size_t i = touched; i < TOUCH_PAGES; i++)
		nr += seen[i] & 1;
	return nr;
}

/* Return: 0; 1: there was something in a page; 2: the second daemon made too little;
 * 3: somebody made memory when there was no daemon; 4: nobody spoke. */
static int touch_by_phases(char *memory, void *arg)
{
	const size_t third = TOUCH_PAGES / 3 / 512 * 512;
	struct phases *phases = arg;
	long faults;
	size_t before;

	madvise(memory, TOUCH_LEN, MADV_NOHUGEPAGE);
	if (!touch_pages(memory, 0, third, false))
		return 1;
	phases->phase = 1;
	if (!await_phase(phases, 2))
		return 4;
	before = count_untouched(memory, third);
	sleep_ms(300);
	if (count_untouched(memory, third) != before)
		return 3;
	phases->phase = 3;
	if (!await_phase(phases, 4))
		return 4;
	faults = count_faults();
	if (!touch_pages(memory, third, TOUCH_PAGES, false) ||
	    !has_touched(memory, TOUCH_PAGES))
		return 1;
	phases->faults = count_faults() - faults;
	return phases->faults < (long)(TOUCH_PAGES - third) / 2 ? 0 : 2;
}

static void the_next_daemon_goes_on_where_one_was_killed(void)
{
	struct phases *phases = share_phases();
	pid_t daemon, toucher;
	int status;

	daemon = start_daemon("--name", NAME);
	toucher = start_named(NAME, touch_by_phases, phases);
	await_phase(phases, 1);
	kill_process(daemon);
	phases->phase = 2;
	await_phase(phases, 3);
	daemon = start_daemon("--name", NAME);
	phases->phase = 4;
	status = status_of(toucher);
	kill_process(daemon);
	if (status)
		say_verdict(false, __func__, "status %d, %ld faults", status,
			    phases->faults);
	else
		say_verdict(true, __func__, NULL);
	munmap(phases, PAGE);
}

/* ---- killed again and again, under load ---- */

/* Until something lies ahead: how fast the daemon is does not matter. */
static void wait_for_daemon(char *memory, size_t touched,
			    const struct phases *phases)
{
	static unsigned char seen[LOAD_PAGES];
	size_t nr = LOAD_PAGES - touched;

	for (int i = 0; i < WAIT_STEPS && !phases->stop; i++) {
		if (mincore(memory + touched * PAGE, nr * PAGE, seen) ||
		    memchr(seen, 1, nr))
			return;
		sleep_ms(10);
	}
}

static bool fill_load(char *memory, const struct phases *phases)
{
	for (size_t page = 0; page < LOAD_PAGES; page++) {
		uint64_t *words = (uint64_t *)(memory + page * PAGE);

		if (page == LOAD_PAGES / 4)
			wait_for_daemon(memory, page, phases);
		if (words[0] || words[PAGE / sizeof(*words) - 1])
			return false;
		words[0] = page + 1;
	}
	return true;
}

static bool is_load_kept(const char *memory)
{
	for (size_t page = 0; page < LOAD_PAGES; page++)
		if (*(const uint64_t *)(memory + page * PAGE) != page + 1)
			return false;
	return true;
}

/* Return: whether a child has what was there before it. */
static bool fork_load(char *memory)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(is_load_kept(memory) ? 0 : 1);
	return status_of(pid) == 0;
}

/* Return: 0; 1: there was something in a page; 2: something was lost. */
static int fill_again_and_again(char *unused, void *arg)
{
	const struct phases *phases = arg;

	(void)unused;
	for (int round = 0; !phases->stop; round++) {
		char *memory = map_memory(LOAD_LEN);

		if (!memory || !fill_load(memory, phases))
			return 1;
		if (!is_load_kept(memory) ||
		    (round % 3 == 1 && !fork_load(memory)))
			return 2;
		if (round % 3 == 2) {
			madvise(memory, LOAD_LEN, MADV_DONTNEED);
			if (!fill_load(memory, phases))
				return 1;
		}
		munmap(memory, LOAD_LEN);
	}
	return 0;
}

/* Free pages, and those that the CPUs keep for their next allocation. */
static long count_free_pages(void)
{
	static char text[1 << 16];
	char *line, *rest = text;
	long sum = 0, nr;

	write_file("/proc/sys/vm/drop_caches", "3");
	read_file("/proc/zoneinfo", text, sizeof(text));
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, " nr_free_pages %ld", &nr) == 1 ||
		    sscanf(line, " count: %ld", &nr) == 1)
			sum += nr;
	}
	return sum;
}

/* The kernel frees some of it later.  Return: pages that are missing for good. */
static long await_free_pages(long wanted)
{
	double limit = seconds_now() + PATIENCE_SECONDS;
	long lost = wanted - count_free_pages();

	while (lost > LOST_PAGES_MAX && seconds_now() < limit) {
		sleep_ms(100);
		lost = wanted - count_free_pages();
	}
	return lost;
}

static long count_references(void)
{
	char text[40];

	read_file(REFERENCES, text, sizeof(text));
	return strtol(text, NULL, 10);
}

/* Jobs and open devices, as they were before. */
static bool nothing_is_left(long references)
{
	double limit = seconds_now() + PATIENCE_SECONDS;
	char jobs[2048] = "";

	while (seconds_now() < limit) {
		read_file("/sys/kernel/debug/ktask/jobs", jobs, sizeof(jobs));
		if (!jobs[0] && count_references() == references)
			return true;
		sleep_ms(10);
	}
	note_line("'%s', %ld references", jobs, count_references());
	return false;
}

/* Requests of the daemon are jobs of one thread. */
static unsigned long long count_requests(void)
{
	return stat_of("jobs_alone");
}

/* Return: whether nothing of it is left; @nr_working: how many made memory then. */
static bool kill_one(long references, unsigned *nr_working)
{
	unsigned long long before = count_requests();
	double limit = seconds_now() + WAIT_SECONDS;
	pid_t daemon = start_daemon("--name", NAME);

	while (seconds_now() < limit) {
		if (count_requests() >= before + REQUESTS) {
			(*nr_working)++;
			break;
		}
		sleep_ms(5);
	}
	sleep_ms(rand() % 50);
	kill_process(daemon);
	return nothing_is_left(references);
}

/* Return: the worst status of all of them. */
static int end_loads(struct phases *phases, const pid_t *loads)
{
	int worst = 0;

	phases->stop = 1;
	for (int i = 0; i < LOADS; i++) {
		int status = status_of(loads[i]);

		worst = status > worst ? status : worst;
	}
	return worst;
}

/* Return: the worst status of a load; @nr_left: daemons that left something behind. */
static int kill_under_load(unsigned nr_kills, unsigned *nr_working,
			   unsigned *nr_left)
{
	struct phases *phases = share_phases();
	long references = count_references();
	pid_t loads[LOADS];
	int status;

	for (int i = 0; i < LOADS; i++)
		loads[i] = start_named(NAME, fill_again_and_again, phases);
	for (unsigned i = 0; i < nr_kills; i++)
		*nr_left += !kill_one(references, nr_working);
	status = end_loads(phases, loads);
	munmap(phases, PAGE);
	return status;
}

static void daemons_killed_under_load_leave_nothing_behind(void)
{
	unsigned nr_working = 0, nr_left = 0;
	int status;
	long before, lost;

	/* What the kernel needs for it once, it keeps. */
	status = kill_under_load(1, &nr_working, &nr_left);
	before = count_free_pages();
	nr_working = 0;
	status |= kill_under_load(scale_rounds(KILLS), &nr_working, &nr_left);
	lost = await_free_pages(before);
	note_line("%u daemons killed at work, %ld pages fewer", nr_working,
		  lost);
	if (status || nr_left || !nr_working || lost > LOST_PAGES_MAX)
		say_verdict(
			false, __func__,
			"status %d, %u left something, %u worked, %ld pages lost",
			status, nr_left, nr_working, lost);
	else
		say_verdict(true, __func__, NULL);
}

void test_killed_daemon(void)
{
	struct page_sizes sizes;

	if (!is_daemon_here("a-killed-daemon-is-not-missed"))
		return;
	/* Where processes register. */
	mkdir(REGISTRY, 01777);
	mount("tmpfs", REGISTRY, "tmpfs", 0, NULL);
	if (begin_small_pages(&sizes)) {
		the_next_daemon_goes_on_where_one_was_killed();
		daemons_killed_under_load_leave_nothing_behind();
	}
	end_small_pages(&sizes);
	umount(REGISTRY);
}
