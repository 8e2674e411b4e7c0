/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that touch one page of every so many, upwards or downwards, with a pause or a
 * change of mind, beside a helper of any speed: only pages that they will touch are made,
 * at every moment what was made and never touched is within the bound, and who goes on is
 * helped.  Who touches at random, in order or two pages at a time gets nothing.  The blocks
 * of a window are those of 2 MiB, of which the first and the last may be in it in part.
 */
#include <string.h>

#include "ktest.h"

#include "ahead/touch_steps.h"
#include "ahead/window_blocks.h"

#define PAGES_MAX ((size_t)64 * 512)
#define ROUNDS (KTEST_TSAN ? 12 : KTEST_ASAN ? 60 : 400)

enum walk { STEADY, STOPS, JUMPS, RANDOM, IN_ORDER, TWO_AT_A_TIME, NR_WALKS };

static unsigned char present[PAGES_MAX], touched[PAGES_MAX];

struct play {
	struct touch_steps steps;
	size_t nr_pages, phase, step, at, nr_touched, nr_made, nr_wasted, speed;
	size_t work;
	enum walk walk;
	bool down, working, jumped;
	uint64_t random;
	struct touch_window window;
};

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	const struct play *play = arg;

	assert_true(first + nr <= play->nr_pages);
	memcpy(to, present + first, nr);
	return 0;
}

static void touch_one(struct play *play, size_t at)
{
	size_t page = touch_page(play->nr_pages, play->down, at);

	if (touched[page])
		return;
	play->nr_wasted -= present[page];
	play->nr_touched++;
	touched[page] = present[page] = 1;
}

static size_t jump_pages(const struct play *play)
{
	return play->nr_pages / 8 + play->step / 2;
}

static void touch_some(struct play *play, size_t nr)
{
	for (; nr && play->at < play->nr_pages; nr--) {
		if (play->walk == STOPS && play->at > play->nr_pages / 2)
			return;
		if (play->walk == JUMPS && play->at > play->nr_pages / 2 &&
		    !play->jumped) {
			play->jumped = true;
			play->at += jump_pages(play);
			continue;
		}
		if (play->walk == RANDOM) {
			touch_one(play, ktest_random_below(&play->random,
							   play->nr_pages));
			play->at += play->step;
			continue;
		}
		touch_one(play, play->at);
		if (play->walk == TWO_AT_A_TIME &&
		    play->at + 1 < play->nr_pages)
			touch_one(play, play->at + 1);
		play->at += play->walk == IN_ORDER ? 1 : play->step;
	}
}

/* From the far end, as make_ahead.c does. */
static void run_helper(struct play *play)
{
	size_t nr = play->speed;

	while (play->working && nr--) {
		size_t page;

		if (play->work <= play->window.start) {
			play->working = false;
			return;
		}
		play->work -= play->window.step;
		if (!touch_window_has(&play->window, play->work))
			continue;
		page = touch_page(play->nr_pages, play->window.down,
				  play->work);
		play->nr_made += !present[page];
		play->nr_wasted += !present[page];
		present[page] = 1;
	}
}

static void check_blocks(const struct play *play)
{
	const struct touch_window *window = &play->window;
	size_t nr = window_count_blocks(window), next = window->end;

	/* The last one comes first. */
	for (size_t at = 1; at <= nr; at++) {
		struct window_block block =
			window_get_block(window, at * WINDOW_BLOCK_UNITS);
		size_t low = window->down ? block.edge + AHEAD_BLOCK_PAGES - 1
					  : block.edge;
		size_t page = touch_page(play->nr_pages, window->down, low);
		bool within = page < play->nr_pages &&
			      play->nr_pages - page >= AHEAD_BLOCK_PAGES;

		assert_int_equal(block.end, next);
		assert_true(block.start < block.end);
		assert_true(block.end - block.edge <= AHEAD_BLOCK_PAGES);
		assert_int_equal((page + play->phase) % AHEAD_BLOCK_PAGES, 0);
		assert_int_equal(window_block_is_within(&block, play->nr_pages),
				 within);
		next = block.start;
	}
	assert_int_equal(next, window->start);
}

static void watch_steps(struct play *play)
{
	assert_true(touch_steps_follow(&play->steps) >= 0);
	if (!ktest_random_below(&play->random, 4))
		assert_true(touch_steps_find(&play->steps) >= 0);
	if (play->working || !touch_steps_wants(&play->steps) ||
	    !touch_steps_window(&play->steps, &play->window))
		return;
	assert_true(play->window.start < play->window.end);
	assert_true(play->window.end <= play->nr_pages);
	assert_int_equal(
		(play->window.end - play->window.start) % play->window.step, 0);
	check_blocks(play);
	play->working = true;
	play->work = play->window.end;
}

/*
 * Who jumps a multiple of his steps comes upon pages that were made for him, and upon the
 * mark of that window: he is taken for who has touched what he left out.
 */
static bool jumps_in_step(const struct play *play)
{
	return play->walk == JUMPS && !(jump_pages(play) % play->step);
}

static void check_bound(const struct play *play)
{
	size_t bound = ahead_first_pages(play->nr_pages) +
		       play->nr_touched * AHEAD_WASTE_PERCENT / 100 +
		       (jumps_in_step(play) ? 4 * AHEAD_BLOCK_PAGES : 0);

	if (play->nr_wasted > bound)
		fail_msg(
			"walk %d in steps of %zu: %zu pages wasted, %zu touched",
			(int)play->walk, play->step, play->nr_wasted,
			play->nr_touched);
}

static struct play play_walk(uint64_t *state, enum walk walk, size_t speed)
{
	struct play play = { .walk = walk, .speed = speed };

	memset(present, 0, sizeof(present));
	memset(touched, 0, sizeof(touched));
	play.nr_pages =
		PAGES_MAX / 2 + ktest_random_below(state, PAGES_MAX / 2 + 1);
	play.step = 2 + ktest_random_below(state, 40);
	play.at = ktest_random_below(state, 2000);
	play.down = ktest_random_below(state, 2);
	play.random = ktest_random(state) | 1;
	play.phase = ktest_random_below(state, AHEAD_BLOCK_PAGES);
	touch_steps_init(&play.steps, play.nr_pages, play.phase, read_present,
			 &play);
	for (int turn = 0; turn < 3000 && play.at < play.nr_pages; turn++) {
		touch_some(&play, 1 + ktest_random_below(&play.random, 40));
		check_bound(&play);
		watch_steps(&play);
		run_helper(&play);
		check_bound(&play);
	}
	return play;
}

static void waste_is_bounded(void **unused)
{
	uint64_t state = ktest_seed();

	for (int round = 0; round < ROUNDS; round++)
		play_walk(&state, (enum walk)(round % NR_WALKS),
			  (size_t)1 << ktest_random_below(&state, 10));
}

static void who_goes_on_is_helped(void **unused)
{
	uint64_t state = ktest_seed();

	for (int round = 0; round < ROUNDS / 10; round++) {
		struct play play = play_walk(&state, STEADY, 80);
		size_t all = play.nr_touched;

		if (all > 800 && play.nr_made < all / 4)
			fail_msg("steps of %zu: %zu of %zu pages made",
				 play.step, play.nr_made, all);
	}
}

static void what_is_no_walk_is_left_alone(void **unused)
{
	uint64_t state = ktest_seed();

	for (int round = 0; round < ROUNDS / 10; round++) {
		assert_int_equal(play_walk(&state, RANDOM, 80).nr_made, 0);
		assert_int_equal(play_walk(&state, IN_ORDER, 80).nr_made, 0);
		assert_int_equal(play_walk(&state, TWO_AT_A_TIME, 80).nr_made,
				 0);
	}
}

KTEST_MAIN(KTEST(waste_is_bounded), KTEST(who_goes_on_is_helped),
	   KTEST(what_is_no_walk_is_left_alone))
