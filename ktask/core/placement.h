/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Placement: which range the next helper works on first, which node's CPUs serve
 * that range, and which of these CPUs the helper gets.
 *
 * Owns the choices only: the host reads the machine and binds threads.  A CPU set
 * is an array of 64-bit words, CPU n being bit n % 64 of word n / 64; all sets of
 * one machine have the same length.
 *
 * Cores come before SMT siblings, and fast cores before slow ones.  A slow core takes
 * longer for a chunk.  Two siblings share one core's memory ports: 4 threads reach 31.7
 * GB/s on 4 cores, and 22.2 on 2.  If a machine shall save the energy of fast cores,
 * the energy policy allows no helpers at all.
 *
 * Behaves badly where other work keeps the chosen sibling of each core busy while the
 * other one idles.  Then a helper gets no CPU, and the host must place it again with
 * KT_PLACEMENT_ANY.
 */
#ifndef KTASK_CORE_PLACEMENT_H
#define KTASK_CORE_PLACEMENT_H

#include "core/job.h"

/* What matters of the machine; filled in by the host. */
struct kt_cores {
	unsigned nr_words; /* of every CPU set */
	const uint16_t *core; /* by CPU: the lowest CPU of its core; NULL: no
				 core has siblings */
	const uint64_t *slow; /* CPUs of slow cores; NULL: all are alike */
};

/* From the preferred set to the widest. */
enum kt_placement_level {
	KT_PLACEMENT_FAST, /* one CPU of each fast core, none of the caller's core */
	KT_PLACEMENT_CORES, /* the same of all cores */
	KT_PLACEMENT_BESIDE, /* all CPUs but those of the caller's core */
	KT_PLACEMENT_ANY, /* all CPUs but the caller's */
};

/* CPUs that the first three levels have. */
struct kt_placement_capacity {
	unsigned nr[KT_PLACEMENT_ANY];
};

/* kt_placement_matters - may the levels differ on this machine? */
static inline bool kt_placement_matters(const struct kt_cores *cores)
{
	return cores->core || cores->slow;
}

/*
 * kt_placement_capacity - count what each level has
 * @allowed: CPUs that helpers may use
 * @caller: CPU that the caller runs on; -1 unknown
 */
void kt_placement_capacity(const struct kt_cores *cores,
			   const uint64_t *allowed, int caller,
			   struct kt_placement_capacity *capacity);

/* kt_placement_level - the preferred level with a CPU for one beside @others */
enum kt_placement_level
kt_placement_level(const struct kt_placement_capacity *capacity,
		   unsigned others);

/*
 * kt_placement_cpus - the CPUs of a level
 * @cpus: set; all of @allowed where the level would have none
 */
void kt_placement_cpus(const struct kt_cores *cores, const uint64_t *allowed,
		       int caller, enum kt_placement_level level,
		       uint64_t *cpus);

/*
 * kt_placement_node - find the node whose CPUs serve node @wanted
 * @ids: the nodes there are, @nr of them
 * @nr_cpus: how many usable CPUs each has; memory-only nodes have none
 * @turn: any number; it chooses between equally near nodes
 *
 * That is the node itself if it has CPUs, else the nearest node that has some.
 *
 * Return: index into @ids; -1 if there is no such node, or none has CPUs.
 */
int kt_placement_node(int wanted, const int *ids, const unsigned *nr_cpus,
		      unsigned nr, unsigned turn);

/*
 * kt_placement_deal - choose the range that the next thread works on first
 * @has_capacity: may a helper of @job be bound to that node now?  NULL: to any
 *
 * Among ranges whose node has capacity, chooses the one with the most left per thread.  If
 * all of these are used up it chooses one of them nevertheless: it is better to bind a
 * helper to another node than to overload a full one.  If no node has capacity, it chooses
 * among all ranges.  One thread at a time may call this.
 *
 * Return: its index; 0 if nothing is left anywhere.
 */
unsigned kt_placement_deal(struct kt_job *job,
			   bool (*has_capacity)(const struct kt_job *job,
						int node));

/* kt_placement_undeal - a thread that was dealt @range has left, or did not come */
void kt_placement_undeal(struct kt_job *job, unsigned range);

#endif /* KTASK_CORE_PLACEMENT_H */
