/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Permits: taking them and giving them back, entries of jobs, fair shares.
 *
 * Why robust mutexes: taking one is a compare-and-swap, while an OFD lock is a system
 * call.  They need no descriptor, which a program that closes all descriptors would close
 * or, worse, reuse.  Helper threads own them, so that nothing is put on the robust list of
 * a thread of the program.
 *
 * Locking: struct permit and struct registry_entry (user/limits/registry.h) say for each field
 * who writes it.  For shared_permits:
 *	I: set by permits_open(), before the first job
 *	A: written by any thread, read by any: kt_load() and kt_store()
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/share.h"
#include "user/pool/user_prio.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"
#include "user/limits/users.h"

/* An entry that was silent for so long is free. */
#define ENTRY_DEAD_NS 10000000000ull
/* While all permits are taken, their holders are checked this often. */
#define DEAD_POLL_NS 1000000000
/* The most passes over all permits that try to see one moment. */
#define USED_PASSES 64
/* A second job shall have its turn within 10 ms. */
#define TURN_NS 8000000

static struct {
	struct registry *registry; /* NULL: caps are the process's own; I */
	unsigned limit; /* A */
} shared_permits;

void permits_set_limit(unsigned limit)
{
	kt_store(&shared_permits.limit, KT_MIN(limit, REGISTRY_PERMITS));
}

static void open_registry(void)
{
	kt_store_release(&shared_permits.registry, registry_open());
}

static pthread_once_t open_once = PTHREAD_ONCE_INIT;

void permits_open(unsigned limit)
{
	permits_set_limit(limit);
	pthread_once(&open_once, open_registry);
}

bool permits_shared(void)
{
	return shared_permits.registry != NULL;
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

/* Takes the lowest free permit.  So a process with a lower limit than others gets one
 * only while fewer than that are taken. */
static int take_lowest(struct registry *registry, uint32_t self)
{
	unsigned end = kt_load(&shared_permits.limit);

	for (unsigned i = 0; registry && i < KT_MIN(end, REGISTRY_PERMITS);
	     i++) {
		struct permit *permit = &registry->permits[i];

		if (!lock_permit(permit)) {
			end += is_yielded(permit);
			continue;
		}
		kt_store(&permit->yielded_by, 0);
		kt_store(&permit->holder, self);
		return (int)i;
	}
	return registry ? -1 : 0;
}

void permits_put(int index)
{
	struct permit *permit;
	int error;

	if (!shared_permits.registry)
		return;
	permit = &shared_permits.registry->permits[index];
	kt_store(&permit->holder, 0);
	/* A robust mutex knows its owner: this thread, once for each time that
	 * it was taken. */
	error = pthread_mutex_unlock(&permit->mutex);
	kt_assert(!error);
}

/* The permit of a thread that is gone.  Return: false if that cannot be had. */
static bool put_for_dead(int index)
{
	bool had = lock_permit(&shared_permits.registry->permits[index]);

	if (had)
		permits_put(index);
	return had;
}

/*
 * When a process is killed for want of memory, the kernel frees its memory after two
 * seconds, and with it the lists of robust mutexes.  If a helper has not got a CPU to die
 * on by then, it never frees its permit.  That permit counts as yielded for ever.  A
 * thread of another PID namespace may look dead although it lives; it then leaves and
 * takes another permit.
 *
 * Return: true if there is one more to take.
 */
static bool pass_over_dead(struct registry *registry)
{
	static uint64_t polled_ns;
	uint64_t now_ns = kt_now_ns(), last_ns = kt_load(&polled_ns);
	unsigned end = kt_load(&shared_permits.limit);
	bool any = false;

	if (now_ns - last_ns < DEAD_POLL_NS ||
	    !kt_cas(&polled_ns, &last_ns, now_ns))
		return false;
	for (unsigned i = 0; i < KT_MIN(end, REGISTRY_PERMITS); i++) {
		struct permit *permit = &registry->permits[i];
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
	struct registry *registry = shared_permits.registry;
	int permit = take_lowest(registry, self);

	return permit < 0 && pass_over_dead(registry)
		       ? take_lowest(registry, self)
		       : permit;
}

void permits_yield(int index, uint32_t holder)
{
	if (index >= 0 && shared_permits.registry)
		kt_store(&shared_permits.registry->permits[index].yielded_by,
			 holder);
}

bool permits_must_leave(int index, uint32_t self)
{
	struct registry *registry = shared_permits.registry;
	unsigned end = kt_load(&shared_permits.limit);

	if (!registry)
		return false;
	if (kt_load(&registry->permits[index].yielded_by) == self)
		return true;
	for (unsigned i = 0; i < (unsigned)index && end <= (unsigned)index; i++)
		end += is_yielded(&registry->permits[i]);
	return (unsigned)index >= end;
}

/*
 * Read which thread holds each permit.
 * @holders: the result of the pass before; replaced
 *
 * Return: true if both passes have read the same.
 */
static bool read_holders(const struct registry *registry, uint32_t *holders)
{
	bool same = true;

	for (unsigned i = 0; i < REGISTRY_PERMITS; i++) {
		uint32_t holder = kt_load_acquire(&registry->permits[i].holder);
		uint32_t yielded_by =
			kt_load_acquire(&registry->permits[i].yielded_by);

		holder = holder == yielded_by ? 0 : holder;
		same &= holders[i] == holder;
		holders[i] = holder;
	}
	return same;
}

/*
 * If two passes read the same, that was the state at the moment between them.  A pass
 * takes a few microseconds.  If permits change hands faster, the result of the last pass
 * is used, and a permit that moved may be counted twice.
 *
 * A helper beyond the limit only ends its chunk, and another helper has its permit
 * already.  Like a helper that yielded its permit, it is not counted.
 */
static unsigned count_holders(void)
{
	uint32_t holders[REGISTRY_PERMITS] = { 0 };
	struct registry *registry = shared_permits.registry;
	unsigned nr = 0;

	/* The first pass has none before it. */
	for (int i = 0; registry && i < USED_PASSES; i++)
		if (read_holders(registry, holders) && i)
			break;
	for (unsigned i = 0; i < REGISTRY_PERMITS; i++) {
		if (!holders[i])
			continue;
		/* Free the permit of a killed thread, which may stay taken for ever. */
		if (!prio_thread_gone(holders[i]) || !put_for_dead((int)i))
			nr++;
	}
	return nr;
}

unsigned permits_used(void)
{
	return KT_MIN(count_holders(), kt_load(&shared_permits.limit));
}

unsigned permits_running(void)
{
	pthread_once(&open_once, open_registry);
	return count_holders();
}

/* ---- entries of jobs ---- */

/* Only the owner of an entry writes it; readers may see half of a name. */
static void describe_job(struct registry_entry *entry, const char *name,
			 uint64_t units_total, uint64_t now_ns)
{
	entry->pid = (uint32_t)getpid();
	strncpy(entry->name, name ? name : "job", sizeof(entry->name));
	entry->start_ns = now_ns;
	kt_store(&entry->helpers, 0);
	entry->units_done = 0;
	entry->units_total = units_total;
}

int permits_entry_begin(unsigned wanted, const char *name, uint64_t units_total,
			uint64_t now_ns)
{
	struct registry *registry = shared_permits.registry;

	for (unsigned i = 0; registry && i < REGISTRY_ENTRIES; i++) {
		struct registry_entry *entry = &registry->head.entries[i];
		uint64_t seen_ns = kt_load(&entry->seen_ns);
		uint32_t nr = kt_load(&registry->head.nr_entries);

		if (!registry_entry_silent(seen_ns, now_ns, ENTRY_DEAD_NS) ||
		    !kt_cas(&entry->seen_ns, &seen_ns, now_ns))
			continue;
		kt_store(&entry->wanted, wanted);
		kt_add(&registry->head.changes, 1);
		describe_job(entry, name, units_total, now_ns);
		while (nr <= i &&
		       !kt_cas(&registry->head.nr_entries, &nr, i + 1))
			;
		return (int)i;
	}
	return -1;
}

void permits_entry_end(int entry)
{
	kt_assert(entry < REGISTRY_ENTRIES);
	if (entry < 0 || !shared_permits.registry)
		return;
	kt_store_release(&shared_permits.registry->head.entries[entry].seen_ns,
			 (uint64_t)0);
	kt_add(&shared_permits.registry->head.changes, 1);
}

void permits_entry_touch(int entry, uint64_t now_ns)
{
	uint64_t *seen_ns, seen;

	if (entry < 0 || !shared_permits.registry)
		return;
	seen_ns = &shared_permits.registry->head.entries[entry].seen_ns;
	seen = kt_load(seen_ns);
	if (seen && seen < now_ns)
		kt_cas(seen_ns, &seen, now_ns);
}

void permits_show_helpers(int entry, unsigned helpers)
{
	if (entry >= 0 && shared_permits.registry)
		__atomic_store_n(
			&shared_permits.registry->head.entries[entry].helpers,
			helpers, __ATOMIC_SEQ_CST);
}

void permits_show_units(int entry, uint64_t units_done)
{
	if (entry >= 0 && shared_permits.registry)
		kt_store(&shared_permits.registry->head.entries[entry]
				  .units_done,
			 units_done);
}

const uint32_t *permits_changes(void)
{
	return shared_permits.registry ? &shared_permits.registry->head.changes
				       : NULL;
}

/*
 * The share of this user, if its jobs want @wanted helpers in all.
 * @turn: set to the turn of its jobs.  It advances only after all users had their turn;
 *	otherwise the turn of a job might always coincide with that of another user.
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

/*
 * Read what the jobs of this user want.  Job @entry is one of them and counts as wanting
 * @wanted, even if another process overwrites its entry.  Return: the number of jobs.
 */
static uint32_t jobs_want(uint32_t *wants, unsigned entry, unsigned wanted,
			  uint64_t now_ns, uint32_t *self)
{
	const struct registry_head *head = &shared_permits.registry->head;
	uint32_t all = KT_MAX(registry_nr_entries(head), entry + 1);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < all; i++) {
		const struct registry_entry *other = &head->entries[i];

		if (i == entry) {
			*self = nr;
			wants[nr++] = wanted;
			continue;
		}
		if (!registry_entry_silent(kt_load(&other->seen_ns), now_ns,
					   ENTRY_SILENT_NS))
			wants[nr++] = kt_load(&other->wanted);
	}
	return nr;
}

static void say_wanted(struct registry_entry *entry, unsigned wanted,
		       uint64_t now_ns)
{
	kt_store(&entry->seen_ns, now_ns);
	if (kt_load(&entry->wanted) == wanted)
		return;
	kt_store(&entry->wanted, wanted);
	kt_add(&shared_permits.registry->head.changes, 1);
}

unsigned permits_share(int entry, unsigned wanted, uint64_t now_ns,
		       uint64_t *until_ns)
{
	struct registry *registry = shared_permits.registry;
	uint64_t turn = now_ns / TURN_NS;
	uint32_t wants[REGISTRY_ENTRIES];
	uint32_t self = 0, nr;
	unsigned limit;
	uint32_t sum;

	*until_ns = UINT64_MAX;
	kt_assert(entry < REGISTRY_ENTRIES);
	if (entry < 0 || !registry)
		return wanted;
	say_wanted(&registry->head.entries[entry], wanted, now_ns);
	sum = registry_wanted(&registry->head, now_ns);
	limit = user_share(sum, &turn);
	if (sum > limit)
		*until_ns = (now_ns / TURN_NS + 1) * TURN_NS;
	nr = jobs_want(wants, (unsigned)entry, wanted, now_ns, &self);
	return kt_share(limit, wants, nr, self, turn);
}
