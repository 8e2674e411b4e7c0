/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Placement: counting and choosing CPUs.  One pass over the allowed CPUs; none on
 * machines whose cores are all alike and have no siblings.
 */
#include "core/placement.h"

#define WORD_BITS 64

static bool in_set(const uint64_t *set, unsigned cpu)
{
	return set[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1;
}

static void put_in_set(uint64_t *set, unsigned cpu)
{
	set[cpu / WORD_BITS] |= 1ull << (cpu % WORD_BITS);
}

static bool is_cpu(const struct kt_cores *cores, int cpu)
{
	return cpu >= 0 && (unsigned)cpu < cores->nr_words * WORD_BITS;
}

static unsigned core_of(const struct kt_cores *cores, unsigned cpu)
{
	return cores->core ? cores->core[cpu] : cpu;
}

/* Is no lower CPU of its core allowed?  Siblings are few, but their numbers may be
 * any: search from the core's lowest CPU up to this one. */
static bool first_of_core(const struct kt_cores *cores, const uint64_t *allowed,
			  unsigned cpu)
{
	unsigned core = core_of(cores, cpu);

	if (core == cpu)
		return true;
	if (in_set(allowed, core))
		return false;
	for (unsigned other = core + 1; other < cpu; other++)
		if (core_of(cores, other) == core && in_set(allowed, other))
			return false;
	return true;
}

/* The preferred level that has @cpu. */
static enum kt_placement_level level_of(const struct kt_cores *cores,
					const uint64_t *allowed, int caller,
					unsigned cpu)
{
	if (is_cpu(cores, caller) &&
	    core_of(cores, cpu) == core_of(cores, (unsigned)caller))
		return KT_PLACEMENT_ANY;
	if (!first_of_core(cores, allowed, cpu))
		return KT_PLACEMENT_BESIDE;
	if (cores->slow && in_set(cores->slow, cpu))
		return KT_PLACEMENT_CORES;
	return KT_PLACEMENT_FAST;
}

void kt_placement_capacity(const struct kt_cores *cores,
			   const uint64_t *allowed, int caller,
			   struct kt_placement_capacity *capacity)
{
	for (unsigned i = 0; i < KT_PLACEMENT_ANY; i++)
		capacity->nr[i] = 0;
	if (!kt_placement_matters(cores))
		return;
	for (unsigned w = 0; w < cores->nr_words; w++) {
		for (uint64_t left = allowed[w]; left; left &= left - 1) {
			unsigned cpu =
				w * WORD_BITS + (unsigned)__builtin_ctzll(left);

			for (unsigned level =
				     level_of(cores, allowed, caller, cpu);
			     level < KT_PLACEMENT_ANY; level++)
				capacity->nr[level]++;
		}
	}
}

enum kt_placement_level
kt_placement_level(const struct kt_placement_capacity *capacity,
		   unsigned others)
{
	unsigned level = KT_PLACEMENT_FAST;

	while (level < KT_PLACEMENT_ANY && others >= capacity->nr[level])
		level++;
	return (enum kt_placement_level)level;
}

static bool all_but(const struct kt_cores *cores, const uint64_t *allowed,
		    int caller, uint64_t *cpus)
{
	uint64_t any = 0;

	for (unsigned w = 0; w < cores->nr_words; w++) {
		cpus[w] = allowed[w];
		if (caller >= 0 && (unsigned)caller / WORD_BITS == w)
			cpus[w] &= ~(1ull << ((unsigned)caller % WORD_BITS));
		any |= cpus[w];
	}
	return any;
}

static bool fill_level(const struct kt_cores *cores, const uint64_t *allowed,
		       int caller, enum kt_placement_level level,
		       uint64_t *cpus)
{
	bool any = false;

	for (unsigned w = 0; w < cores->nr_words; w++) {
		cpus[w] = 0;
		for (uint64_t left = allowed[w]; left; left &= left - 1) {
			unsigned cpu =
				w * WORD_BITS + (unsigned)__builtin_ctzll(left);

			if (level_of(cores, allowed, caller, cpu) > level)
				continue;
			put_in_set(cpus, cpu);
			any = true;
		}
	}
	return any;
}

void kt_placement_cpus(const struct kt_cores *cores, const uint64_t *allowed,
		       int caller, enum kt_placement_level level,
		       uint64_t *cpus)
{
	if (level < KT_PLACEMENT_ANY && kt_placement_matters(cores) &&
	    fill_level(cores, allowed, caller, level, cpus))
		return;
	if (all_but(cores, allowed, caller, cpus))
		return;
	for (unsigned w = 0; w < cores->nr_words; w++)
		cpus[w] = allowed[w];
}

/* ---- nodes ---- */

/* The @turn-th of the nodes with CPUs that are at @distance. */
static int nth_at(unsigned distance, int wanted, const int *ids,
		  const unsigned *nr_cpus, unsigned nr, unsigned turn)
{
	for (unsigned i = 0; i < nr; i++)
		if (nr_cpus[i] &&
		    kt_node_distance(ids[i], wanted) == distance && !turn--)
			return (int)i;
	return -1;
}

int kt_placement_node(int wanted, const int *ids, const unsigned *nr_cpus,
		      unsigned nr, unsigned turn)
{
	unsigned best = 0, ties = 0;
	bool known = false;

	for (unsigned i = 0; i < nr; i++) {
		if (ids[i] != wanted)
			continue;
		known = true;
		if (nr_cpus[i])
			return (int)i;
	}
	for (unsigned i = 0; known && i < nr; i++) {
		/* From the CPUs to the memory. */
		unsigned distance = kt_node_distance(ids[i], wanted);

		if (!nr_cpus[i] || (ties && distance > best))
			continue;
		ties = ties && distance == best ? ties + 1 : 1;
		best = distance;
	}
	return ties ? nth_at(best, wanted, ids, nr_cpus, nr, turn % ties) : -1;
}

/* The range with the most left to do for each thread that it would have.
 * Return: false if nothing is left in ranges of nodes with capacity. */
static bool find_work(const struct kt_job *job,
		      bool (*has_capacity)(const struct kt_job *job, int node),
		      unsigned *found)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < job->nr_ranges; i++) {
		const struct kt_range *range = &job->ranges[i];
		uint64_t left = range->units - kt_load(&range->next);
		uint64_t threads = (uint64_t)range->dealt + 1;
		/* Rounded up: one unit is work. */
		uint64_t each = left / threads + (left % threads > 0);

		if (each <= most ||
		    (has_capacity && !has_capacity(job, range->node)))
			continue;
		most = each;
		*found = i;
	}
	return most > 0;
}

/* The node with capacity whose range is used up and was dealt the fewest threads.  From
 * there a helper takes chunks of the nearest range with work. */
static bool find_capacity(const struct kt_job *job,
			  bool (*has_capacity)(const struct kt_job *job,
					       int node),
			  unsigned *found)
{
	uint32_t least = UINT32_MAX;

	for (unsigned i = 0; i < job->nr_ranges; i++) {
		const struct kt_range *range = &job->ranges[i];

		if (range->node == KT_NO_NODE || range->dealt >= least ||
		    !has_capacity(job, range->node))
			continue;
		least = range->dealt;
		*found = i;
	}
	return least < UINT32_MAX;
}

unsigned kt_placement_deal(struct kt_job *job,
			   bool (*has_capacity)(const struct kt_job *job,
						int node))
{
	unsigned found = 0;

	/* Nothing to choose from. */
	if (job->nr_ranges == 1) {
		job->ranges[0].dealt++;
		return 0;
	}
	if (!has_capacity || (!find_work(job, has_capacity, &found) &&
			      !find_capacity(job, has_capacity, &found)))
		find_work(job, NULL, &found);
	if (job->nr_ranges)
		job->ranges[found].dealt++;
	return found;
}

void kt_placement_undeal(struct kt_job *job, unsigned range)
{
	kt_assert(job->ranges[range].dealt > 0);
	job->ranges[range].dealt--;
}
