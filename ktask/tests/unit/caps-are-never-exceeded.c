/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Permits are handed out up to the limit and no further, by any number of
 * threads; a full node unbinds a helper, a full machine refuses it.
 */
#include "ktest.h"

#include "core/caps.h"

#include <pthread.h>

#define NR_THREADS 8
#define LIMIT 3
#define ROUNDS (KTEST_TSAN ? 5000 : 50000)

static void permits_end_at_the_limit(void **state)
{
	struct kt_cap cap = { 0, 2 };

	assert_true(kt_cap_get(&cap));
	assert_true(kt_cap_get(&cap));
	assert_false(kt_cap_get(&cap));
	assert_false(kt_cap_get(&cap));
	kt_cap_put(&cap);
	assert_true(kt_cap_get(&cap));
	assert_false(kt_cap_get(&cap));
	assert_int_equal(cap.used, 2);
	cap.limit = 0;
	kt_cap_put(&cap);
	kt_cap_put(&cap);
	assert_int_equal(cap.used, 0);
	assert_false(kt_cap_get(&cap));
}

/* CPUs went away: permits in use stay, no new one until it fits again. */
static void lowered_limit_lets_permits_drain(void **state)
{
	struct kt_cap cap = { 0, 4 };

	for (unsigned i = 0; i < 4; i++)
		assert_true(kt_cap_get(&cap));
	cap.limit = 2;
	assert_false(kt_cap_get(&cap));
	kt_cap_put(&cap);
	kt_cap_put(&cap);
	assert_false(kt_cap_get(&cap));
	kt_cap_put(&cap);
	assert_true(kt_cap_get(&cap));
	assert_int_equal(cap.used, 2);
}

static void full_node_unbinds_full_machine_refuses(void **state)
{
	struct kt_cap machine = { 0, 3 };
	struct kt_cap node = { 0, 1 };
	struct kt_cap other = { 0, 1 };

	assert_int_equal(kt_caps_get(&machine, &node), 1);
	assert_int_equal(kt_caps_get(&machine, &node), 0);
	assert_int_equal(node.used, 1);
	assert_int_equal(kt_caps_get(&machine, &other), 1);
	kt_cap_put(&other);
	/* The machine is full; the node's free permit stays free. */
	assert_int_equal(kt_caps_get(&machine, &other), -EAGAIN);
	assert_int_equal(other.used, 0);
	assert_int_equal(machine.used, 3);
	kt_cap_put(&machine);
	assert_int_equal(kt_caps_get(&machine, NULL), 0);
	assert_int_equal(kt_caps_get(&machine, NULL), -EAGAIN);
	assert_int_equal(machine.used, 3);
}

static struct kt_cap machine_cap = { 0, 2 * LIMIT };
static struct kt_cap node_cap = { 0, LIMIT };
static uint32_t holders, bound_holders, too_many;

/* Counts holders itself, so as not to believe the cap. */
static void enter_cap(uint32_t *counter, uint32_t limit)
{
	if (__atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST) >= limit)
		kt_add(&too_many, 1);
}

static void leave_cap(uint32_t *counter)
{
	__atomic_fetch_sub(counter, 1, __ATOMIC_SEQ_CST);
}

static void *take_and_return(void *unused)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		int bound = kt_caps_get(&machine_cap, &node_cap);

		if (bound < 0)
			continue;
		enter_cap(&holders, 2 * LIMIT);
		if (bound) {
			enter_cap(&bound_holders, LIMIT);
			leave_cap(&bound_holders);
			kt_cap_put(&node_cap);
		}
		leave_cap(&holders);
		kt_cap_put(&machine_cap);
	}
	return NULL;
}

static void threads_do_not_exceed_it_together(void **state)
{
	pthread_t threads[NR_THREADS];

	for (unsigned i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						take_and_return, NULL),
				 0);
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(too_many, 0);
	assert_int_equal(machine_cap.used, 0);
	assert_int_equal(node_cap.used, 0);
}

KTEST_MAIN(KTEST(permits_end_at_the_limit),
	   KTEST(lowered_limit_lets_permits_drain),
	   KTEST(full_node_unbinds_full_machine_refuses),
	   KTEST(threads_do_not_exceed_it_together))
