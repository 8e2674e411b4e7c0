/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that touch a mapping in many ways, upwards, downwards, in steps, in several
 * places at once, at random, here and there, leave pages out, and change their mind, beside a helper
 * that makes the windows of touch_frontier.c at any speed: at every moment what was
 * made and never touched is within the bound, and who touches in order is helped.
 */
#include <string.h>

#include "ktest.h"

#include "support/fast_helper.h"

#define PAGES_MAX ((size_t)96 * 512)
#define STREAMS 8
/* The thread sanitizer, which finds nothing in one thread, meets each pattern with each
 * unit once. */
#define ROUNDS (KTEST_TSAN ? 2 * NR_PATTERNS : KTEST_ASAN ? 60 : 400)

enum pattern {
	UP,
	DOWN,
	SEVERAL,
	BOTH,
	STEPS,
	RANDOM,
	SPARSE,
	LEAVES,
	FICKLE,
	NR_PATTERNS
};

static const char *const names[NR_PATTERNS] = { "up",	  "down",   "several",
						"both",	  "steps",  "random",
						"sparse", "leaves", "fickle" };

static unsigned char present[PAGES_MAX], touched[PAGES_MAX];

struct play {
	struct touch_tracker tracker;
	size_t nr_pages, phase, unit;
	bool first_marks;
	size_t fixed_streams; /* 0: any number */
	uint64_t random;
	enum pattern pattern;
	/* The program. */
	size_t streams[STREAMS], ends[STREAMS], nr_streams, step;
	size_t left_out; /* one of so many pages */
	size_t nr_touched, nr_made, nr_wasted;
	/* The helper. */
	bool working;
	struct touch_window window;
	size_t at;
	unsigned speed; /* pages a turn */
};

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	const struct play *play = arg;

	assert_true(first + nr <= play->nr_pages);
	memcpy(to, present + first, nr);
	return 0;
}

/* What a fault makes besides the page, within the mapping. */
static void fault_page(struct play *play, size_t page, bool made)
{
	size_t rest = (page + play->phase) % play->unit;
	size_t first = page > rest ? page - rest : 0;
	size_t end = page - rest + play->unit;

	if (present[page])
		return;
	for (size_t i = first; i < end && i < play->nr_pages; i++) {
		if (present[i])
			continue;
		present[i] = 1;
		/* Of a huge page all is touched with the first byte. */
		if (!made && play->unit > 1)
			touched[i] = 2;
		play->nr_made += made;
		play->nr_wasted += made;
		play->nr_touched += !made && play->unit > 1;
	}
}

static void touch_page_now(struct play *play, size_t page)
{
	size_t rest = (page + play->phase) % play->unit;
	size_t first = page > rest ? page - rest : 0;

	fault_page(play, page, false);
	for (size_t i = first;
	     i < page - rest + play->unit && i < play->nr_pages; i++) {
		if (touched[i])
			continue;
		touched[i] = 1;
		play->nr_touched++;
		play->nr_wasted -= play->nr_wasted > 0;
	}
}

/* ---- the program ---- */

static void choose_streams(struct play *play)
{
	play->nr_streams = 1;
	play->step = 1;
	if (play->pattern == SEVERAL)
		play->nr_streams =
			play->fixed_streams
				? play->fixed_streams
				: 2 + ktest_random_below(&play->random,
							 STREAMS - 1);
	if (play->pattern == BOTH)
		play->nr_streams = 2;
	play->left_out = 10 + ktest_random_below(&play->random, 200);
	if (play->pattern == STEPS)
		play->step = 2 + ktest_random_below(&play->random, 40);
	for (size_t i = 0; i < play->nr_streams; i++) {
		play->streams[i] = play->nr_pages * i / play->nr_streams;
		play->ends[i] = play->nr_pages * (i + 1) / play->nr_streams;
	}
}

static void touch_some(struct play *play, size_t nr)
{
	for (size_t turn = 0; turn < nr; turn++) {
		size_t i = turn % play->nr_streams, at = play->streams[i];

		if (play->pattern == RANDOM ||
		    (play->pattern == SPARSE &&
		     !ktest_random_below(&play->random, 50)))
			at = ktest_random_below(&play->random, play->nr_pages);
		else
			play->streams[i] += play->step;
		if (play->pattern == FICKLE &&
		    !ktest_random_below(&play->random, 3000))
			play->streams[i] = ktest_random_below(&play->random,
							      play->nr_pages);
		if (at >=
		    (play->pattern == FICKLE ? play->nr_pages : play->ends[i]))
			continue;
		if (play->pattern == LEAVES &&
		    !ktest_random_below(&play->random, play->left_out))
			continue;
		if (play->pattern == DOWN || (play->pattern == BOTH && i))
			at = play->ends[i] - 1 -
			     (at - play->nr_pages * i / play->nr_streams);
		touch_page_now(play, at);
	}
}

/* ---- the helper, as make_ahead.c works: towards the program ---- */

static void work_on_window(struct play *play)
{
	unsigned nr = play->speed;

	while (play->working && nr--) {
		if (play->at == play->window.start) {
			play->working = false;
			return;
		}
		play->at--;
		if (!helper_leaves_page(&play->window, play->unit, play->at))
			fault_page(play,
				   touch_page(play->nr_pages, play->window.down,
					      play->at),
				   true);
	}
}

static void check_window(const struct play *play)
{
	const struct touch_window *window = &play->window;
	size_t phase = touch_phase(play->nr_pages, play->phase, window->down);

	assert_true(window->start < window->end);
	assert_true(window->end <= play->nr_pages);
	assert_int_equal((window->start + phase) % AHEAD_BLOCK_PAGES, 0);
	assert_int_equal(play->unit > 1 && (window->end + phase) % play->unit,
			 0);
}

static void watch_touches(struct play *play)
{
	assert_true(touch_tracker_follow(&play->tracker) >= 0);
	assert_true(touch_tracker_probe(&play->tracker) >= 0);
	if (!ktest_random_below(&play->random, 4))
		assert_true(touch_tracker_scan(&play->tracker) >= 0);
	if (play->working ||
	    !touch_tracker_window(&play->tracker, &play->window))
		return;
	check_window(play);
	play->working = true;
	play->at = play->window.end;
}

/* Who jumps onto the mark of a window is taken for who has arrived there: then some
 * blocks more are made. */
static bool jumps_ahead(const struct play *play)
{
	return play->pattern == SPARSE || play->pattern == FICKLE;
}

/* A huge page at an edge is touched in part. */
static void check_bound(const struct play *play)
{
	size_t bound = ahead_first_pages(play->nr_pages) +
		       play->nr_touched * AHEAD_WASTE_PERCENT / 100 +
		       (jumps_ahead(play) ? 4 * AHEAD_BLOCK_PAGES : 0);

	if (play->nr_wasted > bound)
		fail_msg("%s: %zu of %zu pages wasted, %zu touched, unit %zu",
			 names[play->pattern], play->nr_wasted, play->nr_pages,
			 play->nr_touched, play->unit);
}

static bool is_over(const struct play *play)
{
	if (play->pattern == RANDOM || play->pattern == FICKLE)
		return play->nr_touched > play->nr_pages / 2;
	for (size_t i = 0; i < play->nr_streams; i++)
		if (play->streams[i] < play->ends[i])
			return false;
	return true;
}

static void play_pattern(struct play *play)
{
	memset(present, 0, sizeof(present));
	memset(touched, 0, sizeof(touched));
	touch_tracker_init(&play->tracker, play->nr_pages, play->phase,
			   read_present, play);
	play->tracker.unit = play->unit;
	play->tracker.first_marks = play->first_marks;
	choose_streams(play);
	for (unsigned turn = 0; turn < 20000 && !is_over(play); turn++) {
		touch_some(play, 1 + ktest_random_below(&play->random, 600));
		check_bound(play);
		watch_touches(play);
		work_on_window(play);
		check_bound(play);
	}
}

static struct play random_play(uint64_t *state, enum pattern pattern,
			       size_t unit)
{
	struct play play = { .pattern = pattern, .unit = unit };

	play.nr_pages = PAGES_MAX / 4 +
			ktest_random_below(state, PAGES_MAX * 3 / 4 + 1);
	play.phase = ktest_random_below(state, AHEAD_BLOCK_PAGES);
	play.random = ktest_random(state) | 1;
	play.speed = 1u << ktest_random_below(state, 14);
	return play;
}

static void waste_is_bounded(void **unused)
{
	uint64_t state = ktest_seed();

	for (int round = 0; round < ROUNDS; round++) {
		enum pattern pattern = (enum pattern)(round % NR_PATTERNS);
		size_t unit = round / NR_PATTERNS % 2 ? AHEAD_BLOCK_PAGES : 1;
		struct play play = random_play(&state, pattern, unit);

		play.first_marks = ktest_random_below(&state, 2);
		play_pattern(&play);
	}
}

/* With a helper that is twice as fast as the program. */
static struct play helped_play(uint64_t *state, enum pattern pattern,
			       size_t unit)
{
	struct play play = random_play(state, pattern, unit);

	play.nr_pages = PAGES_MAX;
	play.speed = 1200;
	play_pattern(&play);
	return play;
}

/* Several places share what there is for one mapping; of huge pages each of them has
 * ten, and most are touched before it is known where. */
static void in_order_is_helped(void **unused)
{
	static const enum pattern patterns[] = { UP, DOWN, BOTH, SEVERAL };
	static const size_t parts[][2] = {
		{ 3, 3 }, { 3, 3 }, { 6, 6 }, { 20, 48 }
	};
	uint64_t state = ktest_seed();

	for (size_t i = 0; i < 2 * KTEST_ARRAY_SIZE(patterns); i++) {
		size_t unit = i % 2 ? AHEAD_BLOCK_PAGES : 1;
		struct play play = helped_play(&state, patterns[i / 2], unit);

		if (play.nr_made < play.nr_pages / parts[i / 2][i % 2])
			fail_msg("%s: %zu of %zu pages made, unit %zu",
				 names[play.pattern], play.nr_made,
				 play.nr_pages, unit);
		if (play.nr_wasted)
			fail_msg("%s: %zu pages wasted", names[play.pattern],
				 play.nr_wasted);
	}
}

/* As the daemon has it: in a heap of 192 MiB each of two places has windows of one
 * block, of which no other is left out. */
static void windows_of_a_block_follow_one_another(void **unused)
{
	uint64_t state = ktest_seed();

	for (unsigned nr = 2; nr <= 3; nr++) {
		struct play play = random_play(&state, SEVERAL, 1);

		play.nr_pages = PAGES_MAX;
		play.phase = 0;
		play.speed = 4 * AHEAD_BLOCK_PAGES;
		play.first_marks = true;
		play.fixed_streams = nr;
		play_pattern(&play);
		if (play.nr_made < play.nr_pages / 5 * 4)
			fail_msg("%u: %zu of %zu pages made", nr, play.nr_made,
				 play.nr_pages);
		assert_int_equal(play.nr_wasted, 0);
	}
}

static void what_is_not_in_order_is_left_alone(void **unused)
{
	uint64_t state = ktest_seed();

	assert_int_equal(helped_play(&state, RANDOM, 1).nr_made, 0);
	assert_int_equal(helped_play(&state, STEPS, 1).nr_made, 0);
}

/* Nobody looks at all pages for that. */
static void who_begins_at_an_end_is_found_at_once(void **unused)
{
	for (int down = 0; down < 2; down++) {
		struct play play = { .nr_pages = PAGES_MAX, .unit = 1 };
		struct touch_tracker *tracker = &play.tracker;

		memset(present, 0, sizeof(present));
		touch_tracker_init(tracker, PAGES_MAX, 0, read_present, &play);
		assert_int_equal(touch_tracker_probe(tracker), 0);
		for (size_t i = 0; i < 1000; i++)
			present[touch_page(PAGES_MAX, down, i)] = 1;
		assert_int_equal(touch_tracker_probe(tracker), 1);
		assert_true(touch_tracker_wants(tracker));
		assert_int_equal(tracker->frontiers[0].at, 1000);
		assert_int_equal(tracker->frontiers[0].down, down);
		/* It is known from then on. */
		assert_int_equal(touch_tracker_probe(tracker), 0);
		assert_int_equal(tracker->touched, 1000);
	}
}

/* It is the last that anybody hears of the mapping, so nothing is left to watch. */
static void a_mapping_that_is_touched_is_done(void **unused)
{
	uint64_t state = ktest_seed();
	struct play play = helped_play(&state, UP, 1);

	assert_int_equal(touch_tracker_scan(&play.tracker) < 0, 0);
	touch_tracker_follow(&play.tracker);
	assert_true(touch_tracker_done(&play.tracker));
	assert_int_equal(touch_tracker_pending(&play.tracker), 0);
}

/* All of a window is pending; a part of it may be made. */
static void of_what_is_pending_the_present_is_known(void **unused)
{
	for (int down = 0; down < 2; down++) {
		struct play play = { .nr_pages = PAGES_MAX, .unit = 1 };
		struct touch_tracker *tracker = &play.tracker;
		size_t pending;

		memset(present, 0, sizeof(present));
		touch_tracker_init(tracker, PAGES_MAX, 0, read_present, &play);
		for (size_t i = 0; i < 1000; i++)
			present[touch_page(PAGES_MAX, down, i)] = 1;
		assert_int_equal(touch_tracker_probe(tracker), 1);
		assert_int_equal(touch_tracker_present(tracker), 0);
		assert_true(touch_tracker_window(tracker, &play.window));
		pending = touch_tracker_pending(tracker);
		assert_int_equal(pending, play.window.end - 1000);
		assert_int_equal(touch_tracker_present(tracker), 0);
		for (size_t i = 0; i < 300; i++)
			present[touch_page(PAGES_MAX, down,
					   play.window.end - 1 - i)] = 1;
		assert_int_equal(touch_tracker_present(tracker), 300);
		assert_int_equal(touch_tracker_pending(tracker), pending);
	}
}

KTEST_MAIN(KTEST(waste_is_bounded), KTEST(in_order_is_helped),
	   KTEST(windows_of_a_block_follow_one_another),
	   KTEST(what_is_not_in_order_is_left_alone),
	   KTEST(who_begins_at_an_end_is_found_at_once),
	   KTEST(a_mapping_that_is_touched_is_done),
	   KTEST(of_what_is_pending_the_present_is_known))
