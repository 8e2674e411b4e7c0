/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tables of users in /dev/shm: made, found, checked, read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/deps.h"
#include "lib/guarded.h"
#include "lib/permits.h"
#include "lib/table.h"

#define TABLE_MAGIC 0x6b7461736b2d3103ull
#define TABLE_NAMES 8 /* tried, should somebody squat the first */
#define PREFIX "ktask-slots-"
/* A signal ends the allocation of a file, before it has begun or in the middle;
 * so that a process that gets one all the time ends it, too. */
#define MAX_TRIES 100

static bool init_permits(struct table *table)
{
	pthread_mutexattr_t attr;
	bool done = true;

	if (pthread_mutexattr_init(&attr))
		return false;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (unsigned i = 0; i < TABLE_PERMITS && done; i++)
		done = !pthread_mutex_init(&table->permits[i].mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

/* A file beyond this limit would end the program (SIGXFSZ). */
static bool may_make_file(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) &&
	       limit.rlim_cur >= sizeof(struct table);
}

static bool allocate(int fd)
{
	int tries = 0, error;

	do
		error = posix_fallocate(fd, 0, sizeof(struct table));
	while (error == EINTR && ++tries < MAX_TRIES);
	return !error;
}

/* A complete table appears under its name at once, or not at all. */
static struct table *make_table(const char *path)
{
	struct table *table = NULL;
	char self[32];
	int fd;

	if (!may_make_file())
		return NULL;
	fd = open(TABLE_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0)
		return NULL;
	if (fchmod(fd, 0644) || !allocate(fd) ||
	    !(table = guarded_map(fd, sizeof(*table))))
		goto close;
	table->head.magic = TABLE_MAGIC;
	table->head.mutex_bytes = sizeof(pthread_mutex_t);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!init_permits(table) ||
	    linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) {
		guarded_unmap(table, sizeof(*table));
		table = NULL;
	}
close:
	close(fd);
	return table;
}

static bool is_table(const struct stat *st, uid_t uid)
{
	return S_ISREG(st->st_mode) && st->st_uid == uid &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) &&
	       st->st_size == sizeof(struct table);
}

/* The caller may become another user, and keeps its table. */
static uid_t owner;

uid_t table_owner(void)
{
	return owner;
}

static int open_checked(const char *path, uid_t uid, int mode)
{
	int fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && is_table(&st, uid))
		return fd;
	close(fd);
	return -1;
}

static struct table *find_table(const char *path)
{
	int fd = open_checked(path, owner, O_RDWR);
	struct table *table;

	if (fd < 0)
		return NULL;
	table = guarded_map(fd, sizeof(*table));
	close(fd);
	if (!table)
		return NULL;
	if (table->head.magic == TABLE_MAGIC &&
	    table->head.mutex_bytes == sizeof(pthread_mutex_t))
		return table;
	guarded_unmap(table, sizeof(*table));
	return NULL;
}

static bool is_free(const char *path)
{
	struct stat st;

	return lstat(path, &st) && errno == ENOENT;
}

struct table *table_open(void)
{
	struct table *table = NULL;
	char path[64];

	owner = geteuid();
	for (int n = 0; n < TABLE_NAMES && !table; n++) {
		snprintf(path, sizeof(path), TABLE_DIR "/" PREFIX "%u.%d",
			 (unsigned)owner, n);
		table = find_table(path);
		if (!table)
			table = make_table(path);
		/* Another process was quicker. */
		if (!table)
			table = find_table(path);
		/* The next name is for those who cannot have this one. */
		if (!table && is_free(path))
			break;
	}
	return table;
}

/* The user that a table of this file @name should be of, or -1. */
static int64_t user_of(const char *name)
{
	unsigned long uid;
	char *end;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return -1;
	uid = strtoul(name + strlen(PREFIX), &end, 10);
	if (end[0] != '.' || end[1] < '0' || end[1] >= '0' + TABLE_NAMES ||
	    end[2] || uid > UINT32_MAX)
		return -1;
	return (int64_t)uid;
}

bool table_each(void (*use)(const char *name, uid_t uid, void *arg), void *arg)
{
	unsigned names = 0, tables = 0;
	DIR *dir = opendir(TABLE_DIR);
	struct dirent *entry;
	bool all = true;

	while (dir && all && (entry = readdir(dir))) {
		int64_t uid = user_of(entry->d_name);

		tables += uid >= 0;
		all = names++ < TABLE_NAMES_MOST && tables <= TABLES_MOST;
		if (all && uid >= 0)
			use(entry->d_name, (uid_t)uid, arg);
	}
	if (dir)
		closedir(dir);
	return all;
}

static bool read_all(int fd, void *to, size_t size, off_t from)
{
	return pread(fd, to, size, from) == (ssize_t)size;
}

/* Only the entries that were ever used. */
static struct table_head *read_used(int fd)
{
	const size_t fixed = offsetof(struct table_head, demands);
	struct table_head *head = malloc(sizeof(*head));

	if (!head)
		return NULL;
	if (read_all(fd, head, fixed, 0) && head->magic == TABLE_MAGIC) {
		head->nr_demands = KT_MIN(head->nr_demands, TABLE_DEMANDS);
		if (read_all(fd, head->demands,
			     head->nr_demands * sizeof(head->demands[0]),
			     (off_t)fixed))
			return head;
	}
	free(head);
	return NULL;
}

struct table_head *table_read(const char *name, uid_t uid)
{
	struct table_head *head;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), TABLE_DIR "/%s", name);
	fd = open_checked(path, uid, O_RDONLY);
	if (fd < 0)
		return NULL;
	head = read_used(fd);
	close(fd);
	return head;
}

bool table_silent(uint64_t seen_ns, uint64_t now_ns, uint64_t bound_ns)
{
	/* A time ahead of ours is another CPU's, or garbage. */
	return !seen_ns || (now_ns > seen_ns && now_ns - seen_ns > bound_ns) ||
	       (seen_ns > now_ns && seen_ns - now_ns > bound_ns);
}

uint32_t table_nr_demands(const struct table_head *head)
{
	uint32_t nr = kt_load(&head->nr_demands);

	return KT_MIN(nr, TABLE_DEMANDS);
}

uint32_t table_wanted(const struct table_head *head, uint64_t now_ns)
{
	uint32_t nr = table_nr_demands(head);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct demand *demand = &head->demands[i];

		if (!table_silent(kt_load(&demand->seen_ns), now_ns,
				  PERMITS_SILENT_NS))
			sum += kt_load(&demand->wanted);
	}
	return (uint32_t)KT_MIN(sum, UINT32_MAX);
}
