/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Users: reading the directory of registries, seldom and cheaply.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "core/deps.h"
#include "lib/registry.h"
#include "lib/users.h"

/* They are looked at this often, and at most for a 64th of the time; but at
 * least each second: the thread may have been stopped while it looked. */
#define USERS_LOOK_NS 5000000
#define USERS_PART 64
#define USERS_LIST_NS 1000000000ull
static struct {
	/* While one thread looks, and alone touches what comes after, this is
	 * not due for a second: for ever would be too long, as the thread may
	 * vanish in a fork. */
	uint64_t due_ns;
	uint32_t wants[USERS_MAX]; /* in the order of user ids, */
	uid_t uids[USERS_MAX]; /* these */
	uint32_t nr;
	uint32_t
		before; /* whose id is less than that of our registry's owner */
	uint32_t nr_registries; /* of other users, by their names */
	uint64_t listed_ns;
	off_t dir_size;
	struct timespec dir_time;
} users;

static uint32_t user_wanted(const char *name, uid_t uid, uint64_t now_ns)
{
	struct registry_head *head = registry_read(name, uid);
	uint32_t wanted = 0;

	if (head)
		wanted = registry_wanted(head, now_ns);
	free(head);
	return wanted;
}

/*
 * Has nothing come or gone since the last look?  A file that came in the tick
 * of that look shows in the directory's size, or at the next look into it.
 */
static bool users_unchanged(uint64_t now_ns)
{
	struct stat st;

	if (stat(REGISTRY_DIR, &st))
		return false;
	if (!users.nr_registries && now_ns < users.listed_ns + USERS_LIST_NS &&
	    st.st_size == users.dir_size &&
	    st.st_mtim.tv_sec == users.dir_time.tv_sec &&
	    st.st_mtim.tv_nsec == users.dir_time.tv_nsec)
		return true;
	users.dir_size = st.st_size;
	users.dir_time = st.st_mtim;
	users.listed_ns = now_ns;
	return false;
}

/* Every process must have users in the same order, since what does not divide goes
 * round in that order.  Another thread may see two users swapped for a moment. */
static void insert(uint32_t nr, uid_t uid, uint32_t wanted)
{
	for (; nr && users.uids[nr - 1] > uid; nr--) {
		users.uids[nr] = users.uids[nr - 1];
		kt_store(&users.wants[nr], kt_load(&users.wants[nr - 1]));
	}
	users.uids[nr] = uid;
	kt_store(&users.wants[nr], wanted);
}

/* A second registry is that of other programs of the same user (of 32 bits).
 * Return: false if this is the first. */
static bool add_to(uint32_t nr, uid_t uid, uint32_t wanted)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t before = users.wants[i];

		if (users.uids[i] != uid)
			continue;
		kt_store(&users.wants[i],
			 before + KT_MIN(wanted, UINT32_MAX - before));
		return true;
	}
	return false;
}

/* What is found in a look. */
struct found {
	uint64_t now_ns;
	uid_t own;
	uint32_t nr, before, nr_registries; /* as in users */
};

static void look_at(const char *name, uid_t uid, void *arg)
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
	insert(found->nr++, uid, wanted);
}

static void read_users(uint64_t now_ns)
{
	struct found found = { .now_ns = now_ns, .own = registry_owner() };

	registry_for_each(look_at, &found);
	kt_store(&users.nr, found.nr);
	kt_store(&users.before, found.before);
	users.nr_registries = found.nr_registries;
}

/*
 * One thread at a time looks; the others use what was found before.  While no
 * other user has a registry, a look is one system call (2 us): going through the
 * directory took 35 us, at the start of a job too.
 */
void users_look(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&users.due_ns);
	uint64_t pause_ns;

	if (!now_ns || now_ns < due_ns ||
	    !kt_cas(&users.due_ns, &due_ns, now_ns + USERS_LIST_NS))
		return;
	if (!users_unchanged(now_ns))
		read_users(now_ns);
	pause_ns = KT_MIN((kt_now_ns() - now_ns) * USERS_PART, USERS_LIST_NS);
	kt_store_release(&users.due_ns,
			 now_ns + KT_MAX(USERS_LOOK_NS, pause_ns));
}

uint32_t users_want(uint32_t *wants, uint32_t own, uint32_t *self)
{
	uint32_t nr = KT_MIN(kt_load(&users.nr), USERS_MAX);

	*self = KT_MIN(kt_load(&users.before), nr);
	wants[*self] = own;
	for (uint32_t i = 0; i < nr; i++)
		wants[i + (i >= *self)] = kt_load(&users.wants[i]);
	return nr + 1;
}
