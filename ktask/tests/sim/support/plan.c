/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See plan.h.
 */
#include <string.h>

#include "tests/sim/support/plan.h"

/* Nothing takes so long, but what never ends. */
#define NO_END_NS 3600000000000ull

const struct kt_pace all_paces[NR_PACES] = {
	{ 500000, 500000, 5000000, 1000000, 1000000, 0 },
	{ 50000, 500000, 5000000, 50000, 2000000, 5000000 },
	{ 2000, 10000, 50000, 5000, 10000, 0 },
};

struct world the_world;

/* Apart from the machine's own numbers: what a thread draws depends on how far
 * others are. */
static uint64_t plan_state;

uint64_t draw_below(uint64_t bound)
{
	uint64_t random = sim_next_random(&plan_state);

	return bound ? random % bound : 0;
}

bool draw_chance(unsigned percent)
{
	return draw_below(100) < percent;
}

void begin_plan(uint64_t seed, struct schedule_stats *stats)
{
	plan_state = seed * 2654435761u + 1;
	tracked_free_all();
	memset(&the_world, 0, sizeof(the_world));
	the_world.stats = stats;
}

static void end_of_time(void *arg)
{
	sim_fail("no end is seen");
}

void fail_without_end(void)
{
	sim_at(sim_now() + NO_END_NS, end_of_time, NULL);
}

static void hog_main(void *arg)
{
	const struct hog *hog = arg;

	if (sim_now() < hog->from_ns)
		sim_block(hog->from_ns - sim_now());
	while (sim_now() < hog->to_ns)
		sim_spend(500000);
}

unsigned plan_hogs(struct hog *list, unsigned nr, unsigned percent)
{
	static const unsigned weights[] = { SIM_WEIGHT_IDLE, SIM_WEIGHT_NORMAL,
					    SIM_WEIGHT_NORMAL,
					    SIM_WEIGHT_HIGH };
	unsigned made = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct hog *hog = &list[made];

		if (!draw_chance(percent))
			continue;
		hog->weight = weights[draw_below(4)];
		hog->from_ns = draw_chance(50)
				       ? 0
				       : SIM_START_NS + draw_below(30000000);
		hog->to_ns = draw_chance(70)
				     ? SIM_NEVER
				     : SIM_START_NS + draw_below(60000000);
		made++;
	}
	return made;
}

void start_hogs(const struct hog *list, unsigned nr, unsigned nr_cpus)
{
	for (unsigned i = 0; i < nr; i++) {
		struct sim_cpus cpus = { 0 };

		sim_put_in(&cpus, i % nr_cpus);
		sim_spawn("hog", hog_main, (void *)&list[i], list[i].weight,
			  &cpus, true);
	}
}
