/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Slots: taking and returning them, demands, and the fair share.
 *
 * Why robust mutexes: taking one is a compare-and-swap (OFD locks are system
 * calls), and they need no descriptor, which programs that close all of theirs
 * would close or, worse, reuse.  Owned by the helper threads, so that nothing
 * is put on the robust list of a thread of the program.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/share.h"
#include "lib/prio.h"
#include "lib/slots.h"
#include "lib/table.h"
#include "lib/users.h"

/* An entry that was silent for so long is free. */
#define DEMAND_DEAD_NS 10000000000ull
/* Threads that hold slots are looked for so often, while all are taken. */
#define DEAD_LOOK_NS 1000000000
/* So often all slots are read, at most, to see them at one moment. */
#define USED_PASSES 64
/* A second job shall have its turn within 10 ms. */
#define TURN_NS 8000000

static struct {
	struct table *table; /* NULL: caps are the process's own */
	unsigned limit;
} slots;

void slots_set_limit(unsigned limit)
{
	kt_store(&slots.limit, KT_MIN(limit, TABLE_SLOTS));
}

void slots_open(unsigned limit)
{
	slots_set_limit(limit);
	slots.table = table_open();
}

bool slots_shared(void)
{
	return slots.table != NULL;
}

/* ---- a helper's slot ---- */

static bool lock(struct slot *slot)
{
	int error = pthread_mutex_trylock(&slot->mutex);

	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(&slot->mutex);
	return !error;
}

static bool stands_aside(const struct slot *slot)
{
	uint32_t holder = kt_load(&slot->held);

	return holder && kt_load(&slot->aside) == holder;
}

/* The lowest that is free: who wants none above its share, counts on it. */
static int take(struct table *table, uint32_t self)
{
	unsigned end = kt_load(&slots.limit);

	for (unsigned i = 0; table && i < KT_MIN(end, TABLE_SLOTS); i++) {
		struct slot *slot = &table->slots[i];

		if (!lock(slot)) {
			end += stands_aside(slot);
			continue;
		}
		kt_store(&slot->aside, 0);
		kt_store(&slot->held, self);
		return (int)i;
	}
	return table ? -1 : 0;
}

void slots_put(int index)
{
	struct slot *slot;

	if (!slots.table)
		return;
	slot = &slots.table->slots[index];
	kt_store(&slot->held, 0);
	pthread_mutex_unlock(&slot->mutex);
}

/* The slot of a thread that is gone.  Return: false if that cannot be had. */
static bool put_for_dead(int index)
{
	bool had = lock(&slots.table->slots[index]);

	if (had)
		slots_put(index);
	return had;
}

/*
 * Of a process that is killed for want of memory the kernel takes the memory
 * after two seconds, with the lists of robust mutexes in it.  A helper, which
 * may get no CPU to die on for so long, then never frees its slot: it stands
 * aside for ever.  A thread of another PID namespace may look dead and is not;
 * it leaves, and takes another slot.
 *
 * Return: true if there is one more to take.
 */
static bool pass_over_dead(struct table *table)
{
	static uint64_t looked_ns;
	uint64_t now_ns = kt_now_ns(), last_ns = kt_load(&looked_ns);
	unsigned end = kt_load(&slots.limit);
	bool any = false;

	if (now_ns - last_ns < DEAD_LOOK_NS ||
	    !kt_cas(&looked_ns, &last_ns, now_ns))
		return false;
	for (unsigned i = 0; i < KT_MIN(end, TABLE_SLOTS); i++) {
		struct slot *slot = &table->slots[i];
		uint32_t holder = kt_load(&slot->held);

		end += stands_aside(slot);
		if (!holder || stands_aside(slot) || !prio_thread_gone(holder))
			continue;
		any = true;
		if (!put_for_dead((int)i))
			kt_store(&slot->aside, holder);
	}
	return any;
}

int slots_take(uint32_t self)
{
	struct table *table = slots.table;
	int slot = take(table, self);

	return slot < 0 && pass_over_dead(table) ? take(table, self) : slot;
}

void slots_stand_aside(int index, uint32_t holder)
{
	if (index >= 0 && slots.table)
		kt_store(&slots.table->slots[index].aside, holder);
}

bool slots_must_leave(int index, uint32_t self)
{
	struct table *table = slots.table;
	unsigned end = kt_load(&slots.limit);

	if (!table)
		return false;
	if (kt_load(&table->slots[index].aside) == self)
		return true;
	for (unsigned i = 0; i < (unsigned)index && end <= (unsigned)index; i++)
		end += stands_aside(&table->slots[i]);
	return (unsigned)index >= end;
}

/*
 * Read who works with which slot.
 * @holders: what the pass before has read, replaced
 *
 * Return: true if it has read the same.
 */
static bool read_holders(const struct table *table, uint32_t *holders)
{
	bool same = true;

	for (unsigned i = 0; i < TABLE_SLOTS; i++) {
		uint32_t holder = kt_load_acquire(&table->slots[i].held);
		uint32_t aside = kt_load_acquire(&table->slots[i].aside);

		holder = holder == aside ? 0 : holder;
		same &= holders[i] == holder;
		holders[i] = holder;
	}
	return same;
}

/*
 * Two passes that read the same saw one moment: the one between them.  A pass
 * takes a few microseconds; where slots go from hand to hand faster the last
 * pass has to do, and may count a slot that moved twice.
 *
 * Helpers beyond the limit end their chunk while others have their slots
 * already; they use none, like those that stand aside.
 */
unsigned slots_used(void)
{
	uint32_t holders[TABLE_SLOTS] = { 0 };
	struct table *table = slots.table;
	unsigned nr = 0;

	for (int i = 0; table && i < USED_PASSES; i++)
		if (read_holders(table, holders))
			break;
	for (unsigned i = 0; i < TABLE_SLOTS; i++) {
		if (!holders[i])
			continue;
		/* What a killed thread left nobody else may ever take. */
		if (!prio_thread_gone(holders[i]) || !put_for_dead((int)i))
			nr++;
	}
	return KT_MIN(nr, kt_load(&slots.limit));
}

/* ---- demands ---- */

/* Only the owner of an entry writes it; readers may see half of a name. */
static void describe(struct demand *demand, const char *name,
		     uint64_t units_total, uint64_t now_ns)
{
	demand->pid = (uint32_t)getpid();
	strncpy(demand->name, name ? name : "job", sizeof(demand->name));
	demand->start_ns = now_ns;
	demand->helpers = 0;
	demand->units_done = 0;
	demand->units_total = units_total;
}

int slots_demand_begin(unsigned wanted, const char *name, uint64_t units_total,
		       uint64_t now_ns)
{
	struct table *table = slots.table;

	for (unsigned i = 0; table && i < TABLE_DEMANDS; i++) {
		struct demand *demand = &table->head.demands[i];
		uint64_t seen_ns = kt_load(&demand->seen_ns);
		uint32_t nr = kt_load(&table->head.nr_demands);

		if (!table_silent(seen_ns, now_ns, DEMAND_DEAD_NS) ||
		    !kt_cas(&demand->seen_ns, &seen_ns, now_ns))
			continue;
		kt_store(&demand->wanted, wanted);
		kt_add(&table->head.changes, 1);
		describe(demand, name, units_total, now_ns);
		while (nr <= i && !kt_cas(&table->head.nr_demands, &nr, i + 1))
			;
		return (int)i;
	}
	return -1;
}

void slots_demand_end(int demand)
{
	if (demand < 0 || !slots.table)
		return;
	kt_store_release(&slots.table->head.demands[demand].seen_ns,
			 (uint64_t)0);
	kt_add(&slots.table->head.changes, 1);
}

void slots_demand_alive(int demand, uint64_t now_ns)
{
	uint64_t *seen_ns, seen;

	if (demand < 0 || !slots.table)
		return;
	seen_ns = &slots.table->head.demands[demand].seen_ns;
	seen = kt_load(seen_ns);
	if (seen && seen < now_ns)
		kt_cas(seen_ns, &seen, now_ns);
}

void slots_report(int demand, unsigned helpers, uint64_t units_done)
{
	if (demand < 0 || !slots.table)
		return;
	kt_store(&slots.table->head.demands[demand].helpers, helpers);
	kt_store(&slots.table->head.demands[demand].units_done, units_done);
}

const uint32_t *slots_changes(void)
{
	return slots.table ? &slots.table->head.changes : NULL;
}

/*
 * Helpers that this user may have, when its jobs want @wanted in all.
 * @turn: set to that of its jobs: the next of them is due when all users had
 *	their turn, or one job would always find that of another user
 */
static unsigned user_share(uint32_t wanted, uint64_t *turn)
{
	uint32_t wants[USERS_MAX + 1];
	uint32_t self;
	uint32_t nr = users_want(wants, wanted, &self);
	unsigned share =
		kt_share(kt_load(&slots.limit), wants, nr, self, *turn);

	*turn /= nr;
	return share;
}

/* What the jobs of this user want.  Return: how many they are. */
static uint32_t jobs_want(uint32_t *wants, unsigned demand, uint64_t now_ns,
			  uint32_t *self)
{
	const struct table_head *head = &slots.table->head;
	uint32_t all = table_nr_demands(head);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < all; i++) {
		const struct demand *other = &head->demands[i];

		if (i == demand)
			*self = nr;
		else if (table_silent(kt_load(&other->seen_ns), now_ns,
				      SLOTS_SILENT_NS))
			continue;
		wants[nr++] = kt_load(&other->wanted);
	}
	return nr;
}

static void say_wanted(struct demand *demand, unsigned wanted, uint64_t now_ns)
{
	kt_store(&demand->seen_ns, now_ns);
	if (kt_load(&demand->wanted) == wanted)
		return;
	kt_store(&demand->wanted, wanted);
	kt_add(&slots.table->head.changes, 1);
}

unsigned slots_share(int demand, unsigned wanted, uint64_t now_ns,
		     uint64_t *until_ns)
{
	struct table *table = slots.table;
	uint64_t turn = now_ns / TURN_NS;
	uint32_t wants[TABLE_DEMANDS];
	uint32_t self = 0, nr;
	unsigned limit;
	uint32_t sum;

	*until_ns = UINT64_MAX;
	if (demand < 0 || !table)
		return wanted;
	say_wanted(&table->head.demands[demand], wanted, now_ns);
	sum = table_wanted(&table->head, now_ns);
	limit = user_share(sum, &turn);
	if (sum > limit)
		*until_ns = (now_ns / TURN_NS + 1) * TURN_NS;
	nr = jobs_want(wants, (unsigned)demand, now_ns, &self);
	return kt_share(limit, wants, nr, self, turn);
}
