/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Naming one more range costs a search in a tree, in whatever order ranges are
 * named: the segments that are looked at are counted.
 */
#include "ktest.h"

#include <string.h>

#include "runtime/dependences.h"

#define FEW 10000ul
#define MANY 80000ul
#define BYTES 64

static struct worker worker;

typedef uintptr_t (*order)(uintptr_t i, uintptr_t nr);

static uintptr_t order_ascending(uintptr_t i, uintptr_t nr)
{
	return i;
}

static uintptr_t order_descending(uintptr_t i, uintptr_t nr)
{
	return nr - 1 - i;
}

/* From both ends to the middle. */
static uintptr_t order_inwards(uintptr_t i, uintptr_t nr)
{
	return i % 2 ? nr - 1 - i / 2 : i / 2;
}

/* Every place once; no prime factor of it is one of the numbers used. */
static uintptr_t order_scattered(uintptr_t i, uintptr_t nr)
{
	return i * 7919 % nr;
}

/* Segments looked at for each of @nr ranges that are in use at once. */
static double steps_for(order index_of, uintptr_t nr)
{
	struct ranges *ranges = ranges_new();
	struct ready none;
	double steps;

	assert_non_null(ranges);
	ready_init(&none);
	for (uintptr_t i = 0; i < nr; i++) {
		uintptr_t at = (1 + index_of(i, nr)) * BYTES;

		ranges_tidy(&worker, ranges, 0);
		assert_int_equal(ranges_cut(&worker, ranges, at, at + BYTES),
				 0);
		/* In use: no sweep forgets it. */
		ranges_at(ranges, at)->epoch = epoch_new(&worker, KTRT_INOUT);
		assert_non_null(ranges_at(ranges, at)->epoch);
	}
	steps = (double)ranges_steps(ranges) / (double)nr;
	for (uintptr_t i = 0; i < nr; i++)
		epoch_put(&worker, ranges_at(ranges, (1 + i) * BYTES)->epoch,
			  &none);
	ranges_free(&worker, ranges);
	return steps;
}

static void costs_alike(void **state)
{
	static const struct {
		const char *name;
		order index_of;
	} orders[] = { { "ascending", order_ascending },
		       { "descending", order_descending },
		       { "inwards", order_inwards },
		       { "scattered", order_scattered } };

	memset(&rt, 0, sizeof(rt));
	pool_init(&rt.smalls, sizeof(struct epoch));
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		double few = steps_for(orders[i].index_of, FEW);
		double many = steps_for(orders[i].index_of, MANY);

		printf("# %s: %.1f of %lu, %.1f of %lu\n", orders[i].name, few,
		       FEW, many, MANY);
		/* Three levels more; a list would be eight times as long. */
		assert_true(many < 2 * few);
		assert_true(many < 500);
	}
	pool_destroy(&rt.smalls);
}

KTEST_MAIN(KTEST(costs_alike))
