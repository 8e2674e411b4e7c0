/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An address and a range that has its first byte are the same data, in whatever
 * order they are named: random tasks name parts of an array both ways, against
 * a sequential model.  A range of other bytes of the object there is other data.
 */
#include "support/runs.h"

#define CELLS 40
#define DEPS 3
#define TASKS (KTEST_TSAN || KTEST_ASAN ? 300 : 1500)

static uint64_t cells[CELLS]; /* plain: dependences alone must order it */
static uint64_t model[CELLS];

struct part {
	unsigned from, to;
	unsigned mode;
	uint64_t expected; /* of its cells together */
};

struct step {
	uint64_t mark;
	size_t nr;
	struct part parts[DEPS];
};

static unsigned wrong;

static uint64_t sum_up(const uint64_t *of, const struct part *part)
{
	uint64_t sum = 0;

	for (unsigned i = part->from; i < part->to; i++)
		sum = (sum ^ of[i]) * 0x9e3779b97f4a7c15u + 1;
	return sum;
}

static void derive_values(uint64_t *of, const struct part *part, uint64_t mark)
{
	for (unsigned i = part->from; i < part->to; i++)
		of[i] = (of[i] ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

static void use_parts(uint64_t *of, const struct step *step)
{
	for (size_t i = 0; i < step->nr; i++)
		if (step->parts[i].mode & KTRT_OUT)
			derive_values(of, &step->parts[i], step->mark);
}

static int do_step(void *arg)
{
	const struct step *step = arg;

	for (size_t i = 0; i < step->nr; i++)
		if (sum_up(cells, &step->parts[i]) != step->parts[i].expected)
			more(wrong);
	use_parts(cells, step);
	return 0;
}

/* One cell by its address, or some by their bytes. */
static void name_part(struct part *part, struct ktrt_dep *dep, bool as_range,
		      uint64_t *random)
{
	part->from = (unsigned)ktest_random_below(random, CELLS);
	part->to = part->from + 1;
	if (as_range)
		part->to += (unsigned)ktest_random_below(random,
							 CELLS - part->from);
	part->mode = 1 + (unsigned)ktest_random_below(random, 3);
	part->expected = sum_up(model, part);
	dep->addr = &cells[part->from];
	dep->len = as_range ? (part->to - part->from) * sizeof(cells[0]) : 0;
	dep->mode = part->mode;
}

/* @ranges: one in so many names a range. */
static void make_step(struct step *step, uint64_t *random, unsigned ranges)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[DEPS];

	step->mark = ktest_random(random);
	step->nr = 1 + ktest_random_below(random, DEPS);
	for (size_t i = 0; i < step->nr; i++)
		name_part(&step->parts[i], &deps[i],
			  ranges && !ktest_random_below(random, ranges),
			  random);
	use_parts(model, step);
	attr.deps = deps;
	attr.nr_deps = step->nr;
	assert_int_equal(ktrt_spawn_attr(do_step, step, &attr), 0);
}

static struct step steps[1500];

/* Addresses first, so that the first range finds them in use. */
static void mix_steps(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	for (int i = 0; i < TASKS; i++)
		make_step(&steps[i], &random, i < TASKS / 5 ? 0 : 3);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(wrong), 0);
	assert_memory_equal(cells, model, sizeof(cells));
}

static unsigned gate;
static uint64_t seen;

static int await_gate(void *arg)
{
	return holds_soon(get(gate)) ? 0 : -EIO;
}

static int write_range(void *arg)
{
	if (await_gate(NULL))
		return -EIO;
	for (int i = 0; i < CELLS; i++)
		cells[i] = 7;
	return 0;
}

static int read_cell(void *arg)
{
	set(seen, *(uint64_t *)arg);
	return 0;
}

/* A reader of one cell after a writer of all, which is held. */
static void a_cell_after_all(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { cells, sizeof(cells), KTRT_OUT };

	set(gate, 0);
	set(seen, 0);
	memset(cells, 0, sizeof(cells));
	memset(model, 0, sizeof(model));
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(write_range, NULL, &attr), 0);
	dep = (struct ktrt_dep){ &cells[5], 0, KTRT_IN };
	assert_int_equal(ktrt_spawn_attr(read_cell, &cells[5], &attr), 0);
	/* Long enough for a worker to take it, if one may. */
	nap_us(20000);
	set(gate, 1);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(seen), 7);
	memset(cells, 0, sizeof(cells));
}

static void cells_and_all(void **state)
{
	in_each_way(a_cell_after_all);
}

/* The object is the whole array, named by its address; it is used while the half is held. */
static void all_beside_its_second_half(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &cells[CELLS / 2], sizeof(cells) / 2,
				KTRT_OUT };

	set(gate, 0);
	set(seen, 1);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(await_gate, NULL, &attr), 0);
	dep = (struct ktrt_dep){ cells, 0, KTRT_IN };
	assert_int_equal(ktrt_spawn_attr(read_cell, cells, &attr), 0);
	assert_true(holds_soon(!get(seen)));
	set(gate, 1);
	assert_int_equal(ktrt_wait(), 0);
}

static void all_and_other_bytes(void **state)
{
	in_each_way(all_beside_its_second_half);
}

static void random_parts(void **state)
{
	in_each_way(mix_steps);
}

KTEST_MAIN(KTEST(cells_and_all), KTEST(all_and_other_bytes),
	   KTEST(random_parts))
