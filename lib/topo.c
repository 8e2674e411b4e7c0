/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine as this process knows it now, and when to look again.
 *
 * Readers take no lock and no reference: what was published stays.  CPUs that
 * go and come again lead back to a struct that is there already, so that there
 * are few; after STATES_MAX different machines the last is kept.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/deps.h"
#include "lib/topo.h"

#define STATES_MAX 32

static struct topo first;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
	/* In the order in which they were met, then NULL.  One word each: what a
	 * fork finds is there, or is not. */
	struct topo *states[STATES_MAX];
	struct topo *now;
	uint64_t due_ns;
} mine;

/*
 * Return: is it the machine with @mark?  Not if a CPU or a node came or went while
 * it was read: it would be taken for that machine for ever.
 */
static bool read_whole(struct topo *topo, const struct topo *before,
		       uint64_t mark)
{
	topo_read(topo, before);
	topo->mark = mark;
	return topo_mark() == mark;
}

static void load(void)
{
	/* No machine has this mark: the next look reads anew. */
	if (!read_whole(&first, NULL, topo_mark()))
		first.mark = TOPO_MARK_NONE;
	kt_store_release(&mine.states[0], &first);
	kt_store_release(&mine.now, &first);
}

const struct topo *topo_get(void)
{
	int saved = errno;

	pthread_once(&once, load);
	errno = saved;
	return kt_load_acquire(&mine.now);
}

/* The state with @mark, read if it is new; NULL if it cannot be had, or if a
 * thread that fell asleep while it looked is quicker after all. */
static struct topo *state_of(uint64_t mark)
{
	struct topo *topo, *none = NULL;
	unsigned i = 0;

	for (; i < STATES_MAX && (topo = kt_load_acquire(&mine.states[i])); i++)
		if (topo->mark == mark)
			return topo;
	if (i == STATES_MAX)
		return NULL;
	topo = malloc(sizeof(*topo));
	if (!topo)
		return NULL;
	if (read_whole(topo, kt_load_acquire(&mine.now), mark) &&
	    kt_cas(&mine.states[i], &none, topo))
		return topo;
	free(topo);
	return NULL;
}

static bool renew(void)
{
	struct topo *was = kt_load_acquire(&mine.now);
	struct topo *topo = state_of(topo_mark());

	if (!topo || topo == was)
		return false;
	kt_store_release(&mine.now, topo);
	return true;
}

bool topo_renew(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&mine.due_ns);
	int saved = errno;
	bool changed;

	topo_get();
	/* The first look is for the second job at the earliest. */
	if (now_ns < due_ns ||
	    !kt_cas(&mine.due_ns, &due_ns, now_ns + TOPO_LOOK_NS) || !due_ns)
		return false;
	changed = renew();
	errno = saved;
	return changed;
}

int topo_node_index(const struct topo *topo, int id)
{
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		if (topo->ids[i] == id)
			return (int)i;
	return -1;
}

int topo_here(void)
{
	unsigned cpu, node;

	return getcpu(&cpu, &node) ? KT_NO_NODE : (int)node;
}

unsigned kt_node_distance(int a, int b)
{
	const struct topo *topo = topo_get();
	int i = topo_node_index(topo, a), j = topo_node_index(topo, b);

	if (i < 0 || j < 0)
		return a == b ? 10 : 20;
	return topo->distance[i][j];
}
