/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Permits: taking and giving them back, demands, and the fair share.
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
#include "lib/permits.h"
#include "lib/table.h"
#include "lib/users.h"

/* An entry that was silent for so long is free. */
#define DEMAND_DEAD_NS 10000000000ull
/* While all permits are taken, their holders are checked this often. */
#define DEAD_LOOK_NS 1000000000
/* The most passes over all permits that try to see one moment. */
#define USED_PASSES 64
/* A second job shall have its turn within 10 ms. */
#define TURN_NS 8000000

static struct {
	struct table *table; /* NULL: caps are the process's own */
	unsigned limit;
} shared_permits;

void permits_set_limit(unsigned limit)
{
	kt_store(&shared_permits.limit, KT_MIN(limit, TABLE_PERMITS));
}

void permits_open(unsigned limit)
{
	permits_set_limit(limit);
	shared_permits.table = table_open();
}

bool permits_shared(void)
{
	return shared_permits.table != NULL;
}

/* ---- a helper's permit ---- */

static bool lock_permit(struct permit *permit)
{
	int error = pthread_mutex_trylock(&permit->mutex);

	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(&permit->mutex);
	return !error;
}

static bool is_yielded(const struct permit *permit)
{
	uint32_t holder = kt_load(&permit->holder);

	return holder && kt_load(&permit->yielded_by) == holder;
}

/* The lowest that is free: who wants none above its share, counts on it. */
static int take_lowest(struct table *table, uint32_t self)
{
	unsigned end = kt_load(&shared_permits.limit);

	for (unsigned i = 0; table && i < KT_MIN(end, TABLE_PERMITS); i++) {
		struct permit *permit = &table->permits[i];

		if (!lock_permit(permit)) {
			end += is_yielded(permit);
			continue;
		}
		kt_store(&permit->yielded_by, 0);
		kt_store(&permit->holder, self);
		return (int)i;
	}
	return table ? -1 : 0;
}

void permits_put(int index)
{
	struct permit *permit;

	if (!shared_permits.table)
		return;
	permit = &shared_permits.table->permits[index];
	kt_store(&permit->holder, 0);
	pthread_mutex_unlock(&permit->mutex);
}

/* The permit of a thread that is gone.  Return: false if that cannot be had. */
static bool put_for_dead(int index)
{
	bool had = lock_permit(&shared_permits.table->permits[index]);

	if (had)
		permits_put(index);
	return had;
}

/*
 * The kernel frees the memory of a process that is killed for want of memory
 * after two seconds, and with it the lists of robust mutexes.  A helper that got
 * no CPU to die on by then never frees its permit.  Its permit counts as yielded
 * for ever.  A thread of another PID namespace may look dead although it lives;
 * it leaves, and takes another permit.
 *
 * Return: true if there is one more to take.
 */
static bool pass_over_dead(struct table *table)
{
	static uint64_t looked_ns;
	uint64_t now_ns = kt_now_ns(), last_ns = kt_load(&looked_ns);
	unsigned end = kt_load(&shared_permits.limit);
	bool any = false;

	if (now_ns - last_ns < DEAD_LOOK_NS ||
	    !kt_cas(&looked_ns, &last_ns, now_ns))
		return false;
	for (unsigned i = 0; i < KT_MIN(end, TABLE_PERMITS); i++) {
		struct permit *permit = &table->permits[i];
		uint32_t holder = kt_load(&permit->holder);

		end += is_yielded(permit);
		if (!holder || is_yielded(permit) || !prio_thread_gone(holder))
			continue;
		any = true;
		if (!put_for_dead((int)i))
			kt_store(&permit->yielded_by, holder);
	}
	return any;
}

int permits_take(uint32_t self)
{
	struct table *table = shared_permits.table;
	int permit = take_lowest(table, self);

	return permit < 0 && pass_over_dead(table) ? take_lowest(table, self)
						   : permit;
}

void permits_yield(int index, uint32_t holder)
{
	if (index >= 0 && shared_permits.table)
		kt_store(&shared_permits.table->permits[index].yielded_by,
			 holder);
}

bool permits_must_leave(int index, uint32_t self)
{
	struct table *table = shared_permits.table;
	unsigned end = kt_load(&shared_permits.limit);

	if (!table)
		return false;
	if (kt_load(&table->permits[index].yielded_by) == self)
		return true;
	for (unsigned i = 0; i < (unsigned)index && end <= (unsigned)index; i++)
		end += is_yielded(&table->permits[i]);
	return (unsigned)index >= end;
}

/*
 * Read who works with which permit.
 * @holders: what the pass before has read, replaced
 *
 * Return: true if it has read the same.
 */
static bool read_holders(const struct table *table, uint32_t *holders)
{
	bool same = true;

	for (unsigned i = 0; i < TABLE_PERMITS; i++) {
		uint32_t holder = kt_load_acquire(&table->permits[i].holder);
		uint32_t yielded_by =
			kt_load_acquire(&table->permits[i].yielded_by);

		holder = holder == yielded_by ? 0 : holder;
		same &= holders[i] == holder;
		holders[i] = holder;
	}
	return same;
}

/*
 * Two passes that read the same saw one moment: the one between them.  A pass
 * takes a few microseconds.  Where permits change hands faster, the result of the
 * last pass is used, and a permit that moved may be counted twice.
 *
 * A helper beyond the limit only ends its chunk, and another helper has its permit
 * already.  Like a helper that yielded its permit, it is not counted.
 */
unsigned permits_used(void)
{
	uint32_t holders[TABLE_PERMITS] = { 0 };
	struct table *table = shared_permits.table;
	unsigned nr = 0;

	for (int i = 0; table && i < USED_PASSES; i++)
		if (read_holders(table, holders))
			break;
	for (unsigned i = 0; i < TABLE_PERMITS; i++) {
		if (!holders[i])
			continue;
		/* What a killed thread left nobody else may ever take. */
		if (!prio_thread_gone(holders[i]) || !put_for_dead((int)i))
			nr++;
	}
	return KT_MIN(nr, kt_load(&shared_permits.limit));
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

int permits_demand_begin(unsigned wanted, const char *name,
			 uint64_t units_total, uint64_t now_ns)
{
	struct table *table = shared_permits.table;

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

void permits_demand_end(int demand)
{
	if (demand < 0 || !shared_permits.table)
		return;
	kt_store_release(&shared_permits.table->head.demands[demand].seen_ns,
			 (uint64_t)0);
	kt_add(&shared_permits.table->head.changes, 1);
}

void permits_demand_alive(int demand, uint64_t now_ns)
{
	uint64_t *seen_ns, seen;

	if (demand < 0 || !shared_permits.table)
		return;
	seen_ns = &shared_permits.table->head.demands[demand].seen_ns;
	seen = kt_load(seen_ns);
	if (seen && seen < now_ns)
		kt_cas(seen_ns, &seen, now_ns);
}

void permits_report(int demand, unsigned helpers, uint64_t units_done)
{
	if (demand < 0 || !shared_permits.table)
		return;
	kt_store(&shared_permits.table->head.demands[demand].helpers, helpers);
	kt_store(&shared_permits.table->head.demands[demand].units_done,
		 units_done);
}

const uint32_t *permits_changes(void)
{
	return shared_permits.table ? &shared_permits.table->head.changes
				    : NULL;
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
	unsigned share = kt_share(kt_load(&shared_permits.limit), wants, nr,
				  self, *turn);

	*turn /= nr;
	return share;
}

/* What the jobs of this user want.  Return: how many they are. */
static uint32_t jobs_want(uint32_t *wants, unsigned demand, uint64_t now_ns,
			  uint32_t *self)
{
	const struct table_head *head = &shared_permits.table->head;
	uint32_t all = table_nr_demands(head);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < all; i++) {
		const struct demand *other = &head->demands[i];

		if (i == demand)
			*self = nr;
		else if (table_silent(kt_load(&other->seen_ns), now_ns,
				      PERMITS_SILENT_NS))
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
	kt_add(&shared_permits.table->head.changes, 1);
}

unsigned permits_share(int demand, unsigned wanted, uint64_t now_ns,
		       uint64_t *until_ns)
{
	struct table *table = shared_permits.table;
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
