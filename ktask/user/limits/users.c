/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Users: reading the directory of registries, seldom and cheaply.
 *
 * Locking, for other_users:
 *	D: due_ns.  A thread that adds one second to it by compare-and-swap owns these
 *	   fields until it sets the time of the next refresh.  The second is a limit,
 *	   because the thread may vanish in a fork.
 *	A: written under D, read by any thread: kt_load() and kt_store()
 */
#include <sys/stat.h>
#include <time.h>

#include "core/deps.h"
#include "user/limits/registry.h"
#include "user/limits/users.h"

/* Their registries are read at most this often, and for at most a 64th of the time.  But
 * they are read at least every second: a refresh may have taken long only because the
 * thread was stopped. */
#define USERS_REFRESH_NS 5000000
#define USERS_PART 64
#define USERS_LIST_NS 1000000000ull
static struct {
	uint64_t due_ns; /* the lock D */
	uint32_t wants[USERS_MAX]; /* in the order of user ids; A */
	uid_t uids[USERS_MAX]; /* these; D */
	uint32_t nr; /* A */
	uint32_t
		before; /* whose id is less than that of our registry's owner */
	uint32_t nr_registries; /* of other users, by their names */
	uint64_t listed_ns;
	off_t dir_size;
	struct timespec dir_time;
} other_users;

/* What the jobs of one registry want. */
struct wanted {
	uint64_t now_ns, sum;
};

static void add_wanted(const struct registry_entry *entry, void *arg)
{
	struct wanted *wanted = arg;

	wanted->sum += registry_entry_wanted(entry, wanted->now_ns);
}

/* 0 of a registry that is not valid. */
static uint32_t user_wanted(const char *name, uid_t uid, uint64_t now_ns)
{
	struct wanted wanted = { .now_ns = now_ns };

	if (!registry_read(name, uid, add_wanted, &wanted))
		return 0;
	return (uint32_t)KT_MIN(wanted.sum, UINT32_MAX);
}

/*
 * Has no file come or gone since the last refresh?  A file that came in the same tick of
 * the clock shows in the size of the directory, or when the directory is read again.
 */
static bool users_unchanged(uint64_t now_ns)
{
	struct stat st;

	if (stat(REGISTRY_DIR, &st))
		return false;
	if (!other_users.nr_registries &&
	    now_ns < other_users.listed_ns + USERS_LIST_NS &&
	    st.st_size == other_users.dir_size &&
	    st.st_mtim.tv_sec == other_users.dir_time.tv_sec &&
	    st.st_mtim.tv_nsec == other_users.dir_time.tv_nsec)
		return true;
	other_users.dir_size = st.st_size;
	other_users.dir_time = st.st_mtim;
	other_users.listed_ns = now_ns;
	return false;
}

/* Every process must have the users in the same order, because helpers that do not divide
 * evenly go round in that order.  Another thread may see two users swapped for a moment. */
static void insert_user(uint32_t nr, uid_t uid, uint32_t wanted)
{
	for (; nr && other_users.uids[nr - 1] > uid; nr--) {
		other_users.uids[nr] = other_users.uids[nr - 1];
		kt_store(&other_users.wants[nr],
			 kt_load(&other_users.wants[nr - 1]));
	}
	other_users.uids[nr] = uid;
	kt_store(&other_users.wants[nr], wanted);
}

/* A second registry is that of other programs of the same user (of 32 bits).
 * Return: false if this is the first. */
static bool add_to(uint32_t nr, uid_t uid, uint32_t wanted)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t before = other_users.wants[i];

		if (other_users.uids[i] != uid)
			continue;
		kt_store(&other_users.wants[i],
			 before + KT_MIN(wanted, UINT32_MAX - before));
		return true;
	}
	return false;
}

/* What one refresh finds. */
struct found {
	uint64_t now_ns;
	uid_t own;
	uint32_t nr, before, nr_registries; /* as in other_users */
};

static void count_user(const char *name, uid_t uid, void *arg)
{
	struct found *found = arg;
	uint32_t wanted;

	if (uid == found->own || found->nr == USERS_MAX)
		return;
	found->nr_registries++;
	wanted = user_wanted(name, uid, found->now_ns);
	if (!wanted || add_to(found->nr, uid, wanted))
		return;
	found->before += uid < found->own;
	insert_user(found->nr++, uid, wanted);
}

static void read_users(uint64_t now_ns)
{
	struct found found = { .now_ns = now_ns, .own = registry_owner() };

	kt_assert(kt_load(&other_users.due_ns) > now_ns);
	registry_for_each(count_user, &found);
	kt_store(&other_users.nr, found.nr);
	kt_store(&other_users.before, found.before);
	other_users.nr_registries = found.nr_registries;
}

/*
 * One thread at a time refreshes; the others use what was found before.  While no other
 * user has a registry, a refresh is one system call (2 us), and not a walk through the
 * directory, which took 35 us, at the start of a job too.
 */
void users_refresh(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&other_users.due_ns);
	uint64_t pause_ns;

	if (!now_ns || now_ns < due_ns ||
	    !kt_cas(&other_users.due_ns, &due_ns, now_ns + USERS_LIST_NS))
		return;
	if (!users_unchanged(now_ns))
		read_users(now_ns);
	pause_ns = KT_MIN((kt_now_ns() - now_ns) * USERS_PART, USERS_LIST_NS);
	kt_store_release(&other_users.due_ns,
			 now_ns + KT_MAX(USERS_REFRESH_NS, pause_ns));
}

uint32_t users_want(uint32_t *wants, uint32_t own, uint32_t *self)
{
	uint32_t nr = KT_MIN(kt_load(&other_users.nr), USERS_MAX);

	*self = KT_MIN(kt_load(&other_users.before), nr);
	wants[*self] = own;
	for (uint32_t i = 0; i < nr; i++)
		wants[i + (i >= *self)] = kt_load(&other_users.wants[i]);
	return nr + 1;
}
