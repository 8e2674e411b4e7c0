/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine as this process knows it now, and when to refresh that.
 *
 * Each state of the machine has a struct, which is used again when CPUs that went offline
 * come back.  So there are few structs.  After STATES_MAX of them the last state is kept.
 *
 * Locking: readers take no lock and no reference, because what was published stays
 * for ever.  For known_machines:
 *	A: one word, written by compare-and-swap or with release order, read with
 *	   acquire order.  A fork finds the old value or the new one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/deps.h"
#include "util/file.h"
#include "user/machine/topo.h"
#include "util/large_static.h"
#include "util/scoped.h"

#define STATES_MAX 32

static struct topo first_machine LARGE_STATIC;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static struct {
	/* In the order in which they were met, then NULL; A. */
	struct topo *states[STATES_MAX];
	struct topo *now; /* A */
	uint64_t due_ns; /* A */
} known_machines;

/*
 * Return: false if a CPU or a node came or went while the machine was read.  What
 * was read is then not the machine with @mark.
 */
static bool read_whole(struct topo *topo, const struct topo *before,
		       uint64_t mark)
{
	topo_read(topo, before);
	topo->mark = mark;
	return topo_mark() == mark;
}

static void load_machine(void)
{
	/* No machine has this mark: the next refresh reads anew. */
	if (!read_whole(&first_machine, NULL, topo_mark()))
		first_machine.mark = TOPO_MARK_NONE;
	kt_store_release(&known_machines.states[0], &first_machine);
	kt_store_release(&known_machines.now, &first_machine);
}

const struct topo *topo_get(void)
{
	int saved = errno;

	pthread_once(&load_once, load_machine);
	errno = saved;
	return kt_load_acquire(&known_machines.now);
}

/* Before the machine is read, counted once a process: that takes 40 us. */
unsigned topo_nr_cpus(void)
{
	static uint32_t counted;
	const struct topo *topo = kt_load_acquire(&known_machines.now);

	if (topo || *file_root)
		return topo_get()->nr_cpus;
	if (!kt_load(&counted))
		kt_store(&counted, topo_count_cpus());
	return kt_load(&counted);
}

/* Return: the state with @mark, read if it is new; NULL without memory, or if
 * another thread has added a state meanwhile. */
static struct topo *state_of(uint64_t mark)
{
	struct topo *topo, *none = NULL;
	unsigned i = 0;

	for (; i < STATES_MAX &&
	       (topo = kt_load_acquire(&known_machines.states[i]));
	     i++)
		if (topo->mark == mark)
			return topo;
	if (i == STATES_MAX)
		return NULL;
	topo = malloc(sizeof(*topo));
	if (!topo)
		return NULL;
	if (read_whole(topo, kt_load_acquire(&known_machines.now), mark) &&
	    kt_cas(&known_machines.states[i], &none, topo))
		return topo;
	free(topo);
	return NULL;
}

static bool refresh_machine(void)
{
	struct topo *was = kt_load_acquire(&known_machines.now);
	struct topo *topo = state_of(topo_mark());

	if (!topo || topo == was)
		return false;
	kt_store_release(&known_machines.now, topo);
	return true;
}

bool topo_refresh(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&known_machines.due_ns);
	keep_errno();

	topo_get();
	/* The first refresh is for the second job at the earliest. */
	if (now_ns < due_ns ||
	    !kt_cas(&known_machines.due_ns, &due_ns,
		    now_ns + TOPO_REFRESH_NS) ||
	    !due_ns)
		return false;
	return refresh_machine();
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
