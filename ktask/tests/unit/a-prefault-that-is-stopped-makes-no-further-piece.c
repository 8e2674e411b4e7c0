/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever stops a job of --prefault waits for the piece, or the short nap, that each helper is
 * in, and for nothing else: not for the rest of a block, nor for helpers that go on giving way
 * to calls of the program, nor until a new job begins.  What was not made is not reported as
 * made.
 */
#include <string.h>

#include "ktest.h"

#include "preload/prefault/prefault.c"

#define START ((uintptr_t)0x10000000)
#define LEN (2 * BLOCK_BYTES)
#define PIECES_PER_BLOCK (BLOCK_BYTES / PIECE_BYTES)

/* What the code asks of the rest of the shim and of the library. */
bool shim_prefault_waits;
size_t shim_min_bytes = 1;
_Atomic size_t shim_largest_small;
static size_t counted_bytes;

bool shim_memory_is_watched(void)
{
	return false;
}

bool shim_is_ours(void)
{
	return true;
}

bool shim_busy(void)
{
	return false;
}

void shim_set_busy(bool value)
{
}

bool shim_wants(enum shim_call call, size_t len, const void *from)
{
	return true;
}

bool shim_takes(enum shim_call call, size_t len)
{
	return true;
}

void shim_decline(enum shim_why why, size_t bytes)
{
}

void shim_count(enum shim_call call, const struct shim_work *work)
{
	counted_bytes += work->bytes;
}

bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags)
{
	return true;
}

bool shim_made_add(void *base, size_t len, enum shim_made_kind kind)
{
	return true;
}

void shim_made_drop(const void *addr, size_t len)
{
}

void shim_made_drop_segment(const void *addr)
{
}

size_t shim_made_untouched(void)
{
	return 0;
}

void shim_made_forked(void)
{
}

bool real_knows_advice(int advice)
{
	return true;
}

static unsigned nr_lent;

int lent_threads_enter(struct lent_threads *threads)
{
	return 0;
}

void lent_threads_leave(struct lent_threads *threads, int index)
{
}

void lent_threads_lend(struct lent_threads *threads)
{
	nr_lent++;
}

void lent_threads_forked(struct lent_threads *threads)
{
}

int ktask_start(struct ktask_job **job, void *start, size_t task_size,
		const struct ktask_ctl *ctl)
{
	return 0;
}

void ktask_cancel(struct ktask_job *job)
{
}

int ktask_wait(struct ktask_job *job)
{
	return 0;
}

int ktask_poll(struct ktask_job *job, struct ktask_progress *progress)
{
	return 1;
}

/* What the helper below does, and what happens to it meanwhile. */
static unsigned nr_pieces, stop_at_piece;
static unsigned nr_naps, stop_at_nap;
static unsigned most_making_in_nap, lent_before_nap;

static void unmap_all(void)
{
	shim_prefault_stop((void *)START, LEN, false);
}

int real_madvise(void *addr, size_t len, int advice)
{
	if (++nr_pieces == stop_at_piece)
		unmap_all();
	return 0;
}

/* The program maps all the time: however late a helper reads the clock, it gives way. */
static void map_all_the_time(void)
{
	shim_prefault_hurry();
	atomic_store(&hurried_ns, clock_ns(CLOCK_MONOTONIC) + 60000000000u);
}

void real_sleep(long ns)
{
	struct prefault *job = prefault_jobs;
	unsigned making = atomic_load(&job->nr_making);

	if (making > most_making_in_nap)
		most_making_in_nap = making;
	/* Of a thread that waits for a job that is DOOMED. */
	if (atomic_load(&job->state) == DOOMED)
		atomic_store(&job->nr_making, 0);
	lent_before_nap = nr_lent;
	if (++nr_naps == stop_at_nap)
		unmap_all();
	map_all_the_time();
}

static struct prefault *begin_job(void)
{
	struct prefault *job = prefault_jobs;

	memset(prefault_jobs, 0, sizeof(prefault_jobs));
	atomic_store(&nr_jobs, 0);
	atomic_store(&hurried_ns, 0);
	nr_pieces = stop_at_piece = nr_naps = stop_at_nap = 0;
	most_making_in_nap = lent_before_nap = nr_lent = 0;
	counted_bytes = 0;
	assert_true(start_job(START, LEN));
	assert_int_equal(job->state, RUNNING);
	atomic_store(&job->delayed, true);
	return job;
}

static void help_with_all(struct prefault *job)
{
	prefault_chunk((void *)1, (void *)(1 + job->nr_blocks), job);
}

static void a_job_that_goes_on_makes_all(void **unused)
{
	struct prefault *job = begin_job();

	help_with_all(job);
	assert_int_equal(nr_pieces, 2 * PIECES_PER_BLOCK);
	job->result.units = job->nr_blocks;
	unmap_all();
	assert_int_equal(counted_bytes, LEN);
}

static void a_stopped_job_makes_no_further_piece(void **unused)
{
	struct prefault *job = begin_job();

	stop_at_piece = 3;
	help_with_all(job);
	assert_int_equal(nr_pieces, 3);
	assert_int_equal(job->state, FREE);
}

/* The library counts chunks that have returned, whatever they did. */
static void what_a_stopped_job_left_is_not_reported(void **unused)
{
	struct prefault *job = begin_job();

	job->result.units = job->nr_blocks;
	stop_at_piece = 3;
	help_with_all(job);
	assert_in_range(counted_bytes, 2 * PIECE_BYTES, 3 * PIECE_BYTES);
}

static void a_job_that_begins_again_makes_all(void **unused)
{
	struct prefault *job = begin_job();

	shim_prefault_stop((void *)START, LEN, true);
	assert_int_equal(job->state, RUNNING);
	atomic_store(&job->delayed, true);
	help_with_all(job);
	assert_int_equal(nr_pieces, 2 * PIECES_PER_BLOCK);
}

static void a_helper_that_gives_way_is_not_waited_for(void **unused)
{
	struct prefault *job = begin_job();

	map_all_the_time();
	stop_at_nap = 2;
	help_with_all(job);
	assert_int_equal(nr_naps, 2);
	assert_int_equal(nr_pieces, 0);
	assert_int_equal(most_making_in_nap, 0);
}

static void a_helper_that_waits_to_begin_is_not_waited_for(void **unused)
{
	struct prefault *job = begin_job();

	atomic_store(&job->delayed, false);
	stop_at_nap = 2;
	help_with_all(job);
	assert_int_equal(nr_naps, 2);
	assert_int_equal(nr_pieces, 0);
}

/* Another thread may call between a helper's read of the clock and its check. */
static void a_call_after_the_clock_was_read_counts(void **unused)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	atomic_store(&hurried_ns, now + 60000000000u);
	assert_true(program_has_just_called());
	atomic_store(&hurried_ns, now - HURRY_NS);
	assert_false(program_has_just_called());
}

/* The starter ends that job; whoever stops it waits for the pieces, by helpers that may have
 * no CPU. */
static void who_waits_for_a_piece_lends_its_priority(void **unused)
{
	struct prefault *job = begin_job();

	atomic_store(&job->state, STARTING);
	atomic_store(&job->nr_making, 1);
	unmap_all();
	assert_int_equal(job->state, DOOMED);
	assert_int_equal(nr_naps, 1);
	assert_int_equal(lent_before_nap, 1);
}

KTEST_MAIN(KTEST(a_job_that_goes_on_makes_all),
	   KTEST(a_stopped_job_makes_no_further_piece),
	   KTEST(what_a_stopped_job_left_is_not_reported),
	   KTEST(a_job_that_begins_again_makes_all),
	   KTEST(a_helper_that_gives_way_is_not_waited_for),
	   KTEST(a_helper_that_waits_to_begin_is_not_waited_for),
	   KTEST(a_call_after_the_clock_was_read_counts),
	   KTEST(who_waits_for_a_piece_lends_its_priority))
