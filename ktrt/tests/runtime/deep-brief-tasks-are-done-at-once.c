/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * If a worker's queue holds plenty, a brief task is done on the stack of its maker, and
 * what that makes on top of it, as deep as the stack suffices.  Deeper ones are queued.
 */
#include "support/runs.h"

#include "runtime/func_kinds.h"

/* More than fill a queue, and no more than caches hold. */
#define FILLING 1000
#define NESTING 300l
/* Each level takes some of the stack: many more than fit. */
#define NESTING_MOST 100000l

static unsigned long done;

static int do_nothing(void *arg)
{
	return 0;
}

/* Makes the one below, and does not wait for it. */
static int descend_further(void *arg)
{
	long left = (long)arg;

	if (left && ktrt_spawn(descend_further, (void *)(left - 1)))
		return -ENOMEM;
	more(done);
	return 0;
}

/* How many levels were done when the call that made the first one had returned? */
static int fill_and_descend(void *arg)
{
	unsigned long *at_once = arg;
	long nesting = (long)*at_once;

	func_classify(do_nothing, true);
	func_classify(descend_further, true);
	/* There is one core. */
	func_note_tried(do_nothing);
	func_note_tried(descend_further);
	for (int i = 0; i < FILLING; i++)
		if (ktrt_spawn(do_nothing, NULL))
			return -ENOMEM;
	if (ktrt_spawn(descend_further, (void *)nesting))
		return -ENOMEM;
	*at_once = get(done);
	return ktrt_wait();
}

/*
 * Return: as above.  Another thread may do the filling first, or half of it meanwhile, so
 * that no more are done at once.  So it is tried again until at least @wanted were.
 */
static unsigned long descend_once(size_t stack_bytes, long nesting,
				  unsigned long wanted)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	unsigned long at_once = 0;

	options.workers = 1;
	options.stack_bytes = stack_bytes;
	assert_int_equal(ktrt_start(&options), 0);
	for (int i = 0; i < 100 && at_once < wanted; i++) {
		at_once = (unsigned long)nesting;
		set(done, 0);
		assert_int_equal(ktrt_run(fill_and_descend, &at_once), 0);
	}
	assert_int_equal(ktrt_stop(), 0);
	printf("# of %ld levels at once: %lu\n", nesting + 1, at_once);
	return at_once;
}

static void many_levels_fit(void **state)
{
	assert_int_equal(descend_once(8 << 20, NESTING, NESTING + 1),
			 NESTING + 1);
}

static void a_small_stack_suffices(void **state)
{
	unsigned long most = 256 << 10;

	assert_true(descend_once(most, NESTING_MOST, 1) <
		    most / 8 / sizeof(void *));
	assert_int_equal(get(done), NESTING_MOST + 1);
}

KTEST_MAIN(KTEST(many_levels_fit), KTEST(a_small_stack_suffices))
