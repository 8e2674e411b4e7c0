/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Slots: the shared table of a user, and a look at those of other users.
 *
 * Why robust mutexes: taking one is a compare-and-swap (OFD locks are system
 * calls), and they need no descriptor, which programs that close all of theirs
 * would close or, worse, reuse.  Owned by the helper threads, so that nothing
 * is put on the robust list of a thread of the program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "core/share.h"
#include "lib/pool.h"
#include "lib/slots.h"

#define TABLE_MAGIC 0x6b7461736b2d3102ull
#define TABLE_SLOTS 1024
#define TABLE_DEMANDS 512
#define TABLE_NAMES 8 /* tried, should somebody squat the first */
#define USERS_MAX 64
/* An entry that was silent for so long is free. */
#define DEMAND_DEAD_NS 10000000000ull
/* Other users are looked at this often, and at most for a 64th of the time. */
#define USERS_LOOK_NS 20000000
#define USERS_LIST_NS 1000000000ull
#define TURN_NS 20000000

#define SHM "/dev/shm"
#define PREFIX "ktask-slots-"

struct demand {
	uint64_t seen_ns; /* CLOCK_MONOTONIC; 0 free */
	uint32_t wanted;
	uint32_t pid;
	/* For people. */
	uint32_t helpers;
	char name[16]; /* may lack its end */
	uint64_t start_ns;
	uint64_t units_done, units_total;
};

struct slot {
	pthread_mutex_t mutex;
	uint32_t held; /* hint for counting; the mutex decides */
};

/* What other users read. */
struct table_head {
	uint64_t magic;
	uint32_t mutex_bytes; /* of this C library */
	uint32_t nr_demands; /* entries that were ever used */
	struct demand demands[TABLE_DEMANDS];
};

struct table {
	struct table_head head;
	struct slot slots[TABLE_SLOTS];
};

static struct {
	struct table *table; /* NULL: caps are the process's own */
	unsigned limit;
	/* What other users demand, and when to look again: while one thread
	 * looks, and alone touches what comes after, not for a second (for
	 * ever would be too long: it may vanish in a fork). */
	uint64_t users_due_ns;
	uint32_t user_wants[USERS_MAX];
	uint32_t nr_users;
	uint32_t nr_tables; /* of other users */
	uint64_t listed_ns;
	off_t shm_size;
	struct timespec shm_time;
} slots;

/* ---- making and finding the table ---- */

static bool init_slots(struct table *table)
{
	pthread_mutexattr_t attr;
	bool done = true;

	if (pthread_mutexattr_init(&attr))
		return false;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (unsigned i = 0; i < TABLE_SLOTS && done; i++)
		done = !pthread_mutex_init(&table->slots[i].mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

static struct table *map_table(int fd)
{
	void *map = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* A complete table appears under its name at once, or not at all. */
static struct table *make_table(const char *path)
{
	int fd = open(SHM, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	struct table *table = NULL;
	char self[32];

	if (fd < 0)
		return NULL;
	if (fchmod(fd, 0644) || posix_fallocate(fd, 0, sizeof(struct table)) ||
	    !(table = map_table(fd)))
		goto close;
	table->head.magic = TABLE_MAGIC;
	table->head.mutex_bytes = sizeof(pthread_mutex_t);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!init_slots(table) ||
	    linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) {
		munmap(table, sizeof(*table));
		table = NULL;
	}
close:
	close(fd);
	return table;
}

static bool is_table(const struct stat *st, uid_t owner)
{
	return S_ISREG(st->st_mode) && st->st_uid == owner &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) &&
	       st->st_size == sizeof(struct table);
}

static int open_checked(const char *path, uid_t owner, int mode)
{
	int fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && is_table(&st, owner))
		return fd;
	close(fd);
	return -1;
}

static struct table *find_table(const char *path)
{
	int fd = open_checked(path, geteuid(), O_RDWR);
	struct table *table;

	if (fd < 0)
		return NULL;
	table = map_table(fd);
	close(fd);
	if (!table)
		return NULL;
	if (table->head.magic == TABLE_MAGIC &&
	    table->head.mutex_bytes == sizeof(pthread_mutex_t))
		return table;
	munmap(table, sizeof(*table));
	return NULL;
}

void slots_open(unsigned limit)
{
	char path[64];

	slots.limit = KT_MIN(limit, TABLE_SLOTS);
	for (int n = 0; n < TABLE_NAMES && !slots.table; n++) {
		snprintf(path, sizeof(path), SHM "/" PREFIX "%u.%d",
			 (unsigned)geteuid(), n);
		slots.table = find_table(path);
		if (!slots.table)
			slots.table = make_table(path);
		/* Another process was quicker. */
		if (!slots.table)
			slots.table = find_table(path);
	}
}

/* ---- a helper's slot ---- */

/* The lowest that is free: who wants none above its share, counts on it. */
int slots_take(void)
{
	struct table *table = slots.table;

	for (unsigned i = 0; table && i < slots.limit; i++) {
		struct slot *slot = &table->slots[i];
		int error = pthread_mutex_trylock(&slot->mutex);

		if (error == EOWNERDEAD)
			error = pthread_mutex_consistent(&slot->mutex);
		if (error)
			continue;
		kt_store(&slot->held, 1);
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

unsigned slots_used(void)
{
	unsigned nr = 0;

	for (unsigned i = 0; slots.table && i < slots.limit; i++)
		nr += kt_load(&slots.table->slots[i].held);
	return nr;
}

/* ---- demands ---- */

static bool silent(uint64_t seen_ns, uint64_t now_ns, uint64_t bound_ns)
{
	/* A time ahead of ours is another CPU's, or garbage. */
	return !seen_ns || (now_ns > seen_ns && now_ns - seen_ns > bound_ns) ||
	       (seen_ns > now_ns && seen_ns - now_ns > bound_ns);
}

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

		if (!silent(seen_ns, now_ns, DEMAND_DEAD_NS) ||
		    !kt_cas(&demand->seen_ns, &seen_ns, now_ns))
			continue;
		kt_store(&demand->wanted, wanted);
		describe(demand, name, units_total, now_ns);
		while (nr <= i && !kt_cas(&table->head.nr_demands, &nr, i + 1))
			;
		return (int)i;
	}
	return -1;
}

void slots_demand_end(int demand)
{
	if (demand >= 0 && slots.table)
		kt_store_release(&slots.table->head.demands[demand].seen_ns,
				 (uint64_t)0);
}

void slots_report(int demand, unsigned helpers, uint64_t units_done)
{
	if (demand < 0 || !slots.table)
		return;
	kt_store(&slots.table->head.demands[demand].helpers, helpers);
	kt_store(&slots.table->head.demands[demand].units_done, units_done);
}

/* Sum of what the jobs in @demands want that have spoken lately. */
static uint32_t sum_wanted(const struct demand *demands, uint32_t nr,
			   uint64_t now_ns)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < KT_MIN(nr, TABLE_DEMANDS); i++)
		if (!silent(kt_load(&demands[i].seen_ns), now_ns,
			    SLOTS_SILENT_NS))
			sum += kt_load(&demands[i].wanted);
	return (uint32_t)KT_MIN(sum, UINT32_MAX);
}

/* The user that table @name should be of, or -1. */
static int64_t user_of(const char *name)
{
	unsigned long uid;
	char *end;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return -1;
	uid = strtoul(name + strlen(PREFIX), &end, 10);
	return *end != '.' || uid > UINT32_MAX ? -1 : (int64_t)uid;
}

/* The head of table @name of @uid; NULL if it is not in order; to be freed. */
static struct table_head *read_head(const char *name, uid_t uid)
{
	struct table_head *head = NULL;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), SHM "/%s", name);
	fd = open_checked(path, uid, O_RDONLY);
	if (fd < 0)
		return NULL;
	head = malloc(sizeof(*head));
	if (head &&
	    (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) ||
	     head->magic != TABLE_MAGIC)) {
		free(head);
		head = NULL;
	}
	close(fd);
	if (head)
		head->nr_demands = KT_MIN(head->nr_demands, TABLE_DEMANDS);
	return head;
}

static uint32_t user_wanted(const char *name, uid_t uid, uint64_t now_ns)
{
	struct table_head *head = read_head(name, uid);
	uint32_t wanted = 0;

	if (head)
		wanted = sum_wanted(head->demands, head->nr_demands, now_ns);
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

	if (stat(SHM, &st))
		return false;
	if (!slots.nr_tables && now_ns < slots.listed_ns + USERS_LIST_NS &&
	    st.st_size == slots.shm_size &&
	    st.st_mtim.tv_sec == slots.shm_time.tv_sec &&
	    st.st_mtim.tv_nsec == slots.shm_time.tv_nsec)
		return true;
	slots.shm_size = st.st_size;
	slots.shm_time = st.st_mtim;
	slots.listed_ns = now_ns;
	return false;
}

static void read_users(uint64_t now_ns)
{
	uint32_t nr = 0, nr_tables = 0;
	struct dirent *entry;
	DIR *dir = opendir(SHM);

	while (dir && nr < USERS_MAX - 1 && (entry = readdir(dir))) {
		int64_t uid = user_of(entry->d_name);
		uint32_t wanted;

		if (uid < 0 || uid == geteuid())
			continue;
		nr_tables++;
		wanted = user_wanted(entry->d_name, (uid_t)uid, now_ns);
		if (wanted)
			kt_store(&slots.user_wants[nr++], wanted);
	}
	if (dir)
		closedir(dir);
	kt_store(&slots.nr_users, nr);
	slots.nr_tables = nr_tables;
}

/*
 * One thread at a time looks; the others use what was found before.  While no
 * other user has a table, a look is one system call (2 us): going through the
 * directory took 35 us, at the start of a job too.
 */
void slots_look(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&slots.users_due_ns);
	uint64_t cost_ns;

	if (!slots.table || !now_ns || now_ns < due_ns ||
	    !kt_cas(&slots.users_due_ns, &due_ns, now_ns + USERS_LIST_NS))
		return;
	if (!users_unchanged(now_ns))
		read_users(now_ns);
	cost_ns = kt_now_ns() - now_ns;
	kt_store_release(&slots.users_due_ns,
			 now_ns + KT_MAX(USERS_LOOK_NS, cost_ns * 64));
}

/* Helpers that this user may have, when its jobs want @wanted in all. */
static unsigned user_share(uint32_t wanted, uint64_t now_ns)
{
	uint32_t wants[USERS_MAX];
	uint32_t nr;

	nr = KT_MIN(kt_load(&slots.nr_users), USERS_MAX - 1);
	for (uint32_t i = 0; i < nr; i++)
		wants[i] = kt_load(&slots.user_wants[i]);
	wants[nr] = wanted;
	return kt_share(slots.limit, wants, nr + 1, nr, now_ns / TURN_NS);
}

unsigned slots_share(int demand, unsigned wanted, uint64_t now_ns)
{
	struct table *table = slots.table;
	uint32_t wants[TABLE_DEMANDS];
	uint32_t nr_wants = 0, self = 0, nr;
	unsigned limit;

	if (demand < 0 || !table)
		return wanted;
	kt_store(&table->head.demands[demand].seen_ns, now_ns);
	kt_store(&table->head.demands[demand].wanted, wanted);
	nr = KT_MIN(kt_load(&table->head.nr_demands), TABLE_DEMANDS);
	limit = user_share(sum_wanted(table->head.demands, nr, now_ns), now_ns);
	for (uint32_t i = 0; i < nr; i++) {
		const struct demand *other = &table->head.demands[i];

		if ((int)i == demand)
			self = nr_wants;
		else if (silent(kt_load(&other->seen_ns), now_ns,
				SLOTS_SILENT_NS))
			continue;
		wants[nr_wants++] =
			(int)i == demand ? wanted : kt_load(&other->wanted);
	}
	return kt_share(limit, wants, nr_wants, self, now_ns / TURN_NS);
}

/* ---- for people ---- */

static void tell(struct ktask_job_info *info, const struct demand *demand,
		 uid_t uid, uint64_t now_ns)
{
	uint64_t left = demand->units_total - demand->units_done;

	memset(info, 0, sizeof(*info));
	info->pid = (int)demand->pid;
	info->uid = uid;
	memcpy(info->name, demand->name, sizeof(info->name) - 1);
	info->helpers = demand->helpers;
	info->wanted = demand->wanted;
	info->units_done = demand->units_done;
	info->units_total = demand->units_total;
	info->elapsed_ns = now_ns - demand->start_ns;
	if (demand->units_done && demand->units_done <= demand->units_total)
		info->remaining_ns =
			(uint64_t)((double)info->elapsed_ns /
				   (double)demand->units_done * (double)left);
}

unsigned ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
		    struct ktask_slots_info *info)
{
	uint64_t now_ns = kt_now_ns();
	int saved = errno;
	int cancel_state;
	struct dirent *entry;
	unsigned found = 0;
	DIR *dir;

	/* Reading may be a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	dir = opendir(SHM);

	while (dir && (entry = readdir(dir))) {
		int64_t uid = user_of(entry->d_name);
		struct table_head *head =
			uid < 0 ? NULL : read_head(entry->d_name, (uid_t)uid);

		for (uint32_t i = 0; head && i < head->nr_demands; i++) {
			if (silent(head->demands[i].seen_ns, now_ns,
				   SLOTS_SILENT_NS))
				continue;
			if (found++ < nr)
				tell(&jobs[found - 1], &head->demands[i],
				     (uid_t)uid, now_ns);
		}
		free(head);
	}
	if (dir)
		closedir(dir);
	if (info) {
		info->limit = pool_machine()->limit;
		info->used = slots_used();
		info->shared = slots.table != NULL;
	}
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return found;
}
