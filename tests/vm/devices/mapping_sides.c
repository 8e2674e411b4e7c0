/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ways to map memory for a device behind an IOMMU: see mapping_sides.h.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "mapping_sides.h"
#include "side_times.h"

#define THREADS 2
#define PIECE (4 * MIB)
#define STEP (MIB / 4)
#define TIMED (256 * MIB)
#define PIECES_MAX 256

static const struct mapping_device *device;

/* Pieces of the last ktask_register(), by where they end. */
static size_t piece_ends[PIECES_MAX];
static size_t nr_pieces;

/* ---- what all ways share ---- */

static double seconds_since(uint64_t begin_ns)
{
	return (double)(ktest_now_ns() - begin_ns) / 1e9;
}

/* Return: seconds. */
static double map_part(char *at, size_t pos, size_t len)
{
	uint64_t begin_ns = ktest_now_ns();

	ktest_check(!device->map(at + pos, len, device->iommu.iova + pos));
	return seconds_since(begin_ns);
}

static void make_pages(char *at, size_t len)
{
	ktest_check(!madvise(at, len, MADV_POPULATE_WRITE));
}

static struct side_time end_side(char *at, size_t len, uint64_t begin_ns,
				 double longest)
{
	struct side_time took = { seconds_since(begin_ns), longest };

	assert_true(device->has(at, len, device->iommu.iova));
	assert_int_equal(device->unmap_all(), (int64_t)len);
	return took;
}

/* ---- one bare thread ---- */

static struct side_time run_one_call(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	return end_side(at, len, begin_ns, map_part(at, 0, len));
}

static struct side_time run_pages_then_call(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	make_pages(at, len);
	return end_side(at, len, begin_ns, map_part(at, 0, len));
}

static struct side_time run_call_alone(char *at, size_t len, size_t nr)
{
	make_pages(at, len);
	return run_one_call(at, len, nr);
}

static struct side_time run_pieces(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();
	double longest = 0, seconds;
	size_t pos = 0;

	for (size_t i = 0; i < nr_pieces; pos = piece_ends[i++]) {
		seconds = map_part(at, pos, piece_ends[i] - pos);
		if (seconds > longest)
			longest = seconds;
	}
	(void)nr;
	return end_side(at, len, begin_ns, longest);
}

/* ---- two bare threads ---- */

struct shared_work {
	char *at;
	size_t len;
	_Atomic size_t next; /* byte */
	pthread_mutex_t lock; /* of whoever maps */
	_Atomic bool maps;
	double longest;
};

/* Return: false once nothing is left. */
static bool take_part(struct shared_work *work, size_t part, size_t *pos)
{
	*pos = atomic_fetch_add(&work->next, part);
	return *pos < work->len;
}

static void map_locked(struct shared_work *work, size_t pos, size_t len)
{
	double seconds;

	pthread_mutex_lock(&work->lock);
	work->maps = true;
	seconds = map_part(work->at, pos, len);
	work->maps = false;
	if (seconds > work->longest)
		work->longest = seconds;
	pthread_mutex_unlock(&work->lock);
}

static void *make_half(void *arg)
{
	struct shared_work *work = arg;
	size_t half = work->len / 2, pos;

	if (take_part(work, half, &pos))
		make_pages(work->at + pos, half);
	return NULL;
}

static void *make_and_map_pieces(void *arg)
{
	struct shared_work *work = arg;
	size_t pos;

	while (take_part(work, PIECE, &pos)) {
		make_pages(work->at + pos, PIECE);
		map_locked(work, pos, PIECE);
	}
	return NULL;
}

static void touch_pages(char *at, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		*(volatile char *)(at + i) = 1;
}

/* A touch leaves the lock of mappings to the thread that maps. */
static void *touch_and_map_pieces(void *arg)
{
	struct shared_work *work = arg;
	size_t pos;

	while (take_part(work, PIECE, &pos)) {
		for (size_t i = 0; i < PIECE; i += STEP)
			if (work->maps)
				touch_pages(work->at + pos + i, STEP);
			else
				make_pages(work->at + pos + i, STEP);
		map_locked(work, pos, PIECE);
	}
	return NULL;
}

static void *map_half(void *arg)
{
	struct shared_work *work = arg;
	size_t half = work->len / 2, pos;

	if (take_part(work, half, &pos))
		map_part(work->at, pos, half);
	return NULL;
}

static double run_by_two(char *at, size_t len, void *(*part)(void *work))
{
	struct shared_work work = { .at = at, .len = len };
	pthread_t other;

	pthread_mutex_init(&work.lock, NULL);
	assert_int_equal(pthread_create(&other, NULL, part, &work), 0);
	part(&work);
	assert_int_equal(pthread_join(other, NULL), 0);
	pthread_mutex_destroy(&work.lock);
	return work.longest;
}

static struct side_time run_two_make(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	run_by_two(at, len, make_half);
	return end_side(at, len, begin_ns, map_part(at, 0, len));
}

static struct side_time run_one_at_a_time(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	return end_side(at, len, begin_ns,
			run_by_two(at, len, make_and_map_pieces));
}

static struct side_time run_touching(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	return end_side(at, len, begin_ns,
			run_by_two(at, len, touch_and_map_pieces));
}

static struct side_time run_halves(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();

	(void)nr;
	run_by_two(at, len, map_half);
	return end_side(at, len, begin_ns, seconds_since(begin_ns));
}

/* ---- ktask ---- */

static void note_pieces(struct ktask_registration *registration,
			const char *base)
{
	void *start, *end;

	for (nr_pieces = 0;
	     !ktask_registration_piece(registration, nr_pieces, &start, &end);
	     nr_pieces++) {
		assert_true(nr_pieces < PIECES_MAX);
		piece_ends[nr_pieces] = (size_t)((char *)end - base);
	}
}

static struct side_time run_ktask(char *at, size_t len, size_t cleared_flags)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_iommu iommu = device->iommu;
	struct ktask_registration *registration;
	uint64_t begin_ns = ktest_now_ns();
	struct side_time took;

	iommu.addr = at;
	opts.max_threads = THREADS;
	assert_int_equal(device->prepare(&ctl, &iommu), 0);
	ctl.flags &= ~(unsigned)cleared_flags;
	assert_int_equal(ktask_register(&registration, at, len, &ctl, &opts),
			 0);
	took.seconds = seconds_since(begin_ns);
	ktask_registration_info_get(registration, &info);
	took.longest = (double)info.longest_ns / 1e9;
	assert_true(device->has(at, len, iommu.iova));
	note_pieces(registration, at);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	return took;
}

/* ---- turns ---- */

/* In the order of absent_sides. */
enum { ONE_CALL, PAGES_THEN_CALL, CALL_ALONE };

static const struct timed_side absent_sides[] = {
	[ONE_CALL] = { "one call", run_one_call, 1 },
	[PAGES_THEN_CALL] = { "one bare thread makes pages, then one call",
			      run_pages_then_call, 1 },
	[CALL_ALONE] = { "that call alone", run_call_alone, 1 },
	{ "two bare threads make pages, then one call", run_two_make, 1 },
	{ "two bare threads, pieces, one maps at a time", run_one_at_a_time,
	  1 },
	{ "the same, touching beside calls", run_touching, 1 },
	{ "two bare halves", run_halves, 1 },
	{ "ktask_register()", run_ktask, 0 },
	{ "ktask_register() in order", run_ktask, KTASK_REGISTER_PARALLEL },
};

static const struct timed_side present_sides[] = {
	{ "one call", run_one_call, 1 },
	{ "one call again", run_one_call, 1 },
	{ "one bare thread, pieces", run_pieces, 1 },
	{ "two bare halves", run_halves, 1 },
	{ "ktask_register()", run_ktask, 0 },
	{ "ktask_register() in order", run_ktask, KTASK_REGISTER_PARALLEL },
};

/* Also notes pieces for run_pieces(). */
static void warm_up(size_t len, bool present)
{
	const struct timed_side side = { "", run_ktask, 0 };

	run_side(&side, len, present);
}

/* Little, unless somebody asked for times. */
static size_t mapped_bytes(void)
{
	return getenv("KTASK_BENCH_ROUNDS") ? TIMED : 16 * MIB;
}

static void absent_memory_is_mapped_each_way(void **state)
{
	size_t len = mapped_bytes();
	const double *seconds;
	double least;

	(void)state;
	warm_up(len, false);
	seconds = time_sides(absent_sides, KTEST_ARRAY_SIZE(absent_sides), len,
			     false);
	least = seconds[PAGES_THEN_CALL] / 2;
	if (least < seconds[CALL_ALONE])
		least = seconds[CALL_ALONE];
	printf("# time: %zu MiB, absent, two threads of which one maps at a "
	       "time, at best: %.1f ms, %.2f times as fast\n",
	       len / MIB, least * 1e3, seconds[ONE_CALL] / least);
}

static void present_memory_is_mapped_each_way(void **state)
{
	size_t len = mapped_bytes();

	(void)state;
	warm_up(len, true);
	time_sides(present_sides, KTEST_ARRAY_SIZE(present_sides), len, true);
}

int time_mappings(const struct mapping_device *timed)
{
	const struct CMUnitTest tests[] = {
		KTEST(absent_memory_is_mapped_each_way),
		KTEST(present_memory_is_mapped_each_way),
	};

	device = timed;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
