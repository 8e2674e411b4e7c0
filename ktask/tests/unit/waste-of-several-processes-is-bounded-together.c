/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Processes that make pages of the same memory ahead, pass some and are killed at any
 * moment: together they never count more than each of them may, what was made is counted
 * until somebody has passed it, and a block counts once, whoever makes it.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktest.h"

#include "ahead/shared_waste.h"
#include "support/fast_helper.h"

#define BLOCKS ((size_t)64)
#define PAGES (BLOCKS * AHEAD_BLOCK_PAGES)
#define MOST ((size_t)8 * AHEAD_BLOCK_PAGES)
#define CHILDREN 8
#define STEPS 20000

static struct shared_waste *map_waste(void)
{
	struct shared_waste *waste =
		mmap(NULL, shared_waste_bytes(BLOCKS), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(waste != MAP_FAILED);
	waste->nr_blocks = BLOCKS;
	return waste;
}

static void unmap_waste(struct shared_waste *waste)
{
	assert_int_equal(munmap(waste, shared_waste_bytes(BLOCKS)), 0);
}

static size_t count_blocks(const struct shared_waste *waste)
{
	size_t nr = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		assert_true(waste->blocks[i] <= AHEAD_BLOCK_PAGES);
		nr += waste->blocks[i];
	}
	return nr;
}

/* Return: false once more was counted than there may be. */
static bool make_and_pass(struct shared_waste *waste, uint64_t random)
{
	bool bounded = true;

	for (int i = 0; i < STEPS && bounded; i++) {
		size_t first = ktest_random_below(&random, PAGES);
		size_t end = first + 1 +
			     ktest_random_below(&random, 3 * AHEAD_BLOCK_PAGES);

		if (end > PAGES)
			end = PAGES;
		if (ktest_random_below(&random, 2))
			shared_waste_add(waste, first, end, MOST);
		else
			shared_waste_pass(waste, first, end);
		bounded = shared_waste_pages(waste) <= MOST;
	}
	return bounded;
}

static void processes_at_once(void **state)
{
	struct shared_waste *waste = map_waste();
	pid_t children[CHILDREN];

	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (!children[i])
			_exit(!make_and_pass(waste, (uint64_t)i + 1));
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_blocks(waste), shared_waste_pages(waste));
	unmap_waste(waste);
}

/* Whatever it was doing, no page is forgotten. */
static void killed_stay_counted(void **state)
{
	struct shared_waste *waste = map_waste();

	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child)
			for (uint64_t seed = 1;; seed++)
				make_and_pass(waste, seed);
		usleep(1000 * (unsigned)(i + 1));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_true(count_blocks(waste) <= shared_waste_pages(waste));
		assert_true(shared_waste_pages(waste) <= MOST);
	}
	unmap_waste(waste);
}

static void a_block_counts_once(void **state)
{
	struct shared_waste *waste = map_waste();
	const size_t block = AHEAD_BLOCK_PAGES;

	assert_true(shared_waste_add(waste, 0, 2 * block, MOST));
	assert_true(shared_waste_add(waste, block, 3 * block, MOST));
	assert_int_equal(shared_waste_pages(waste), 3 * block);
	/* A part of a block shows nothing of the rest. */
	shared_waste_pass(waste, 1, 2 * block - 1);
	assert_int_equal(shared_waste_pages(waste), 3 * block);
	shared_waste_pass(waste, 1, 2 * block);
	assert_int_equal(shared_waste_pages(waste), 2 * block);
	shared_waste_pass(waste, 0, PAGES);
	assert_int_equal(shared_waste_pages(waste), 0);
	unmap_waste(waste);
}

static void nothing_beyond_the_bound(void **state)
{
	struct shared_waste *waste = map_waste();

	assert_false(shared_waste_add(waste, 0, MOST + 1, MOST));
	assert_int_equal(shared_waste_pages(waste), 0);
	assert_true(shared_waste_add(waste, 0, MOST, MOST));
	assert_false(shared_waste_add(waste, PAGES - 1, PAGES, MOST));
	assert_false(shared_waste_add(waste, PAGES, PAGES + 1, 2 * MOST));
	assert_int_equal(shared_waste_pages(waste), MOST);
	unmap_waste(waste);
}

static void those_that_lasted(void **state)
{
	struct shared_waste *waste = map_waste();

	for (int i = 0; i < 5; i++)
		shared_waste_begin(waste);
	shared_waste_last(waste);
	assert_int_equal(waste->nr_young, 3);
	shared_waste_last(waste);
	shared_waste_last(waste);
	assert_int_equal(waste->nr_young, 0);
	shared_waste_begin(waste);
	shared_waste_help(waste);
	assert_int_equal(waste->nr_young, 0);
	unmap_waste(waste);
}

/* ---- processes that touch one memory in order, each seen by its own tracker ---- */

#define PROCESSES 6
#define LIVES 60

/* What there is, and what any process has touched. */
static unsigned char there[PAGES], touched[PAGES];

struct process {
	struct shared_waste *waste;
	struct touch_tracker tracker;
	unsigned char present[PAGES]; /* in its own page table */
	size_t nr_pages, phase, at, end;
	bool down;
};

static struct process processes[PROCESSES];

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	const struct process *process = arg;

	memcpy(to, process->present + first, nr);
	return 0;
}

static void note_passed(void *arg, size_t first, size_t end)
{
	const struct process *process = arg;

	shared_waste_pass(process->waste, process->phase + first,
			  process->phase + end);
}

/* It touches a part of the memory, upwards or downwards. */
static void begin_process(struct process *process, uint64_t *random)
{
	size_t first = ktest_random_below(random, process->nr_pages);

	memset(process->present, 0, sizeof(process->present));
	touch_tracker_init(&process->tracker, process->nr_pages, process->phase,
			   read_present, process);
	process->tracker.passed = note_passed;
	process->at = first;
	process->end = first + ktest_random_below(random, PAGES / 8);
	process->down = ktest_random_below(random, 2);
}

static bool touch_some(struct process *process, size_t nr)
{
	for (; nr && process->at < process->end &&
	       process->at < process->nr_pages;
	     nr--) {
		size_t page = touch_page(process->nr_pages, process->down,
					 process->at++);

		process->present[page] = there[page] = touched[page] = 1;
	}
	return !nr;
}

static void make_ahead(struct process *process)
{
	struct touch_tracker *tracker = &process->tracker;
	size_t own, all = shared_waste_pages(process->waste), nr, first;
	struct touch_window window;

	assert_true(touch_tracker_follow(tracker) >= 0);
	assert_true(touch_tracker_probe(tracker) >= 0);
	assert_true(touch_tracker_scan(tracker) >= 0);
	own = touch_tracker_pending(tracker);
	tracker->others = all > own ? all - own : 0;
	if (!touch_tracker_window(tracker, &window))
		return;
	nr = process->nr_pages;
	first = process->phase + (window.down ? nr - window.end : window.start);
	if (!shared_waste_add(
		    process->waste, first, first + window.end - window.start,
		    ahead_allowed_pages(tracker->first, tracker->touched)))
		return;
	helper_make_window(&window, 1, process->present, nr);
	for (size_t page = 0; page < nr; page++)
		there[page] |= process->present[page];
}

static void check_waste(const struct process *process)
{
	size_t nr_touched = 0, nr_wasted = 0, bound;

	for (size_t page = 0; page < process->nr_pages; page++) {
		nr_touched += touched[page];
		nr_wasted += there[page] && !touched[page];
	}
	bound = ahead_allowed_pages(ahead_first_pages(process->nr_pages),
				    nr_touched);
	if (nr_wasted > bound)
		fail_msg("%zu pages wasted, %zu allowed", nr_wasted, bound);
}

/* Return: pages that were made before their touch, in all. */
static size_t play_processes(struct shared_waste *waste, uint64_t *random)
{
	size_t nr_made = 0, phase = ktest_random_below(random, 512);

	memset(there, 0, sizeof(there));
	memset(touched, 0, sizeof(touched));
	for (size_t i = 0; i < PROCESSES; i++) {
		processes[i].waste = waste;
		processes[i].nr_pages = PAGES - 512;
		processes[i].phase = phase;
		begin_process(&processes[i], random);
	}
	for (int lives = 0; lives < LIVES;) {
		struct process *process =
			&processes[ktest_random_below(random, PROCESSES)];
		size_t before = shared_waste_pages(waste), after;

		if (touch_some(process, 1 + ktest_random_below(random, 2000)) &&
		    ktest_random_below(random, 50)) {
			make_ahead(process);
			after = shared_waste_pages(waste);
			nr_made += after > before ? after - before : 0;
			continue;
		}
		/* It ends, or is killed. */
		begin_process(process, random);
		check_waste(process);
		lives++;
	}
	return nr_made;
}

static void processes_share_one_bound(void **state)
{
	uint64_t random = ktest_seed();
	size_t nr_made = 0;

	for (int round = 0; round < (KTEST_TSAN ? 2 : 20); round++) {
		struct shared_waste *waste = map_waste();

		nr_made += play_processes(waste, &random);
		unmap_waste(waste);
	}
	assert_true(nr_made > 4 * AHEAD_BLOCK_PAGES);
}

KTEST_MAIN(KTEST(processes_at_once), KTEST(killed_stay_counted),
	   KTEST(a_block_counts_once), KTEST(nothing_beyond_the_bound),
	   KTEST(those_that_lasted), KTEST(processes_share_one_bound))
