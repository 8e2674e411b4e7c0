/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The shared registries of users in /dev/shm: made, found, checked, read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/deps.h"
#include "user/limits/guarded.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"
#include "util/directory_names.h"
#include "util/file.h"

#define REGISTRY_MAGIC 0x6b7461736b2d3103ull
#define REGISTRY_NAMES 8 /* tried, should somebody squat the first */
#define PREFIX "ktask-slots-"
/* A signal interrupts the allocation of a file.  A process that gets signals all
 * the time gives up after so many tries. */
#define MAX_TRIES 100
/* Entries of a registry that are read by one call: 2 KiB on the stack. */
#define ENTRIES_AT_ONCE 32

/* Libraries of other versions read it; those of 32 bits use the next name. */
_Static_assert(sizeof(void *) != 8 ||
		       (sizeof(struct registry_entry) == 64 &&
			offsetof(struct registry_head, entries) == 24),
	       "the layout of the shared registry must not change");

static bool init_permits(struct registry *registry)
{
	pthread_mutexattr_t attr;
	bool done = true;

	if (pthread_mutexattr_init(&attr))
		return false;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (unsigned i = 0; i < REGISTRY_PERMITS && done; i++)
		done = !pthread_mutex_init(&registry->permits[i].mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

static bool allocate_file(int fd)
{
	int tries = 0, error;

	do
		error = posix_fallocate(fd, 0, sizeof(struct registry));
	while (error == EINTR && ++tries < MAX_TRIES);
	return !error;
}

/* A complete registry appears under its name at once, or not at all. */
static struct registry *make_registry(const char *path)
{
	struct registry *registry = NULL;
	char self[32];
	int fd;

	if (!file_may_have(sizeof(*registry)))
		return NULL;
	fd = open(REGISTRY_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0)
		return NULL;
	if (fchmod(fd, 0644) || !allocate_file(fd) ||
	    !(registry = guarded_map(fd, sizeof(*registry))))
		goto close;
	registry->head.magic = REGISTRY_MAGIC;
	registry->head.mutex_bytes = sizeof(pthread_mutex_t);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!init_permits(registry) ||
	    linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) {
		guarded_unmap(registry, sizeof(*registry));
		registry = NULL;
	}
close:
	close(fd);
	return registry;
}

static bool is_registry(const struct stat *st, uid_t uid)
{
	return S_ISREG(st->st_mode) && st->st_uid == uid &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) &&
	       st->st_size == sizeof(struct registry);
}

/* The caller may become another user, and keeps its registry. */
static uid_t registry_user; /* constant once the registry is open */

uid_t registry_owner(void)
{
	return registry_user;
}

static int open_checked(const char *path, uid_t uid, int mode)
{
	int fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && is_registry(&st, uid))
		return fd;
	close(fd);
	return -1;
}

static struct registry *find_registry(const char *path)
{
	int fd = open_checked(path, registry_user, O_RDWR);
	struct registry *registry;

	if (fd < 0)
		return NULL;
	registry = guarded_map(fd, sizeof(*registry));
	close(fd);
	if (!registry)
		return NULL;
	if (registry->head.magic == REGISTRY_MAGIC &&
	    registry->head.mutex_bytes == sizeof(pthread_mutex_t))
		return registry;
	guarded_unmap(registry, sizeof(*registry));
	return NULL;
}

static bool is_free(const char *path)
{
	struct stat st;

	return lstat(path, &st) && errno == ENOENT;
}

struct registry *registry_open(void)
{
	struct registry *registry = NULL;
	char path[64];

	registry_user = geteuid();
	for (int n = 0; n < REGISTRY_NAMES && !registry; n++) {
		snprintf(path, sizeof(path), REGISTRY_DIR "/" PREFIX "%u.%d",
			 (unsigned)registry_user, n);
		registry = find_registry(path);
		if (!registry)
			registry = make_registry(path);
		/* Another process was quicker. */
		if (!registry)
			registry = find_registry(path);
		/* The next name is for those who cannot have this one. */
		if (!registry && is_free(path))
			break;
	}
	return registry;
}

/* The user that a registry of this file @name should be of, or -1. */
static int64_t user_of(const char *name)
{
	unsigned long uid;
	char *end;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return -1;
	uid = strtoul(name + strlen(PREFIX), &end, 10);
	if (end[0] != '.' || end[1] < '0' || end[1] >= '0' + REGISTRY_NAMES ||
	    end[2] || uid > UINT32_MAX)
		return -1;
	return (int64_t)uid;
}

bool registry_for_each(void (*use)(const char *name, uid_t uid, void *arg),
		       void *arg)
{
	unsigned nr_names = 0, nr_registries = 0;
	struct directory_names names;
	const char *name;
	bool all = true;

	directory_names_begin(&names, REGISTRY_DIR);
	while (all && (name = directory_names_next(&names))) {
		int64_t uid = user_of(name);

		nr_registries += uid >= 0;
		all = nr_names++ < REGISTRY_NAMES_MOST &&
		      nr_registries <= REGISTRIES_MOST;
		if (all && uid >= 0)
			use(name, (uid_t)uid, arg);
	}
	directory_names_end(&names);
	return all;
}

static bool read_all(int fd, void *to, size_t size, off_t from)
{
	return pread(fd, to, size, from) == (ssize_t)size;
}

/*
 * No memory is mapped for that: to map takes the lock of the process's mappings for
 * writing, and threads of a job that populates memory hold it for reading all the time.
 * A helper of the lowest priority waited 4 ms for it, twice for each registry.
 */
static bool read_entries(int fd, uint32_t nr, registry_entry_func use,
			 void *arg)
{
	struct registry_entry entries[ENTRIES_AT_ONCE];
	off_t from = offsetof(struct registry_head, entries);

	while (nr) {
		uint32_t part = KT_MIN(nr, ENTRIES_AT_ONCE);
		size_t size = part * sizeof(entries[0]);

		if (!read_all(fd, entries, size, from))
			return false;
		for (uint32_t i = 0; i < part; i++)
			use(&entries[i], arg);
		nr -= part;
		from += (off_t)size;
	}
	return true;
}

static bool read_used(int fd, registry_entry_func use, void *arg)
{
	struct {
		uint64_t magic;
		uint32_t mutex_bytes;
		uint32_t nr_entries;
	} head;

	_Static_assert(offsetof(struct registry_head, nr_entries) == 12,
		       "begins as a registry does");
	return read_all(fd, &head, sizeof(head), 0) &&
	       head.magic == REGISTRY_MAGIC &&
	       read_entries(fd, KT_MIN(head.nr_entries, REGISTRY_ENTRIES), use,
			    arg);
}

bool registry_read(const char *name, uid_t uid, registry_entry_func use,
		   void *arg)
{
	char path[300];
	bool valid;
	int fd;

	snprintf(path, sizeof(path), REGISTRY_DIR "/%s", name);
	fd = open_checked(path, uid, O_RDONLY);
	if (fd < 0)
		return false;
	valid = read_used(fd, use, arg);
	close(fd);
	return valid;
}

bool registry_entry_silent(uint64_t seen_ns, uint64_t now_ns, uint64_t bound_ns)
{
	/* A time ahead of ours is another CPU's, or garbage. */
	return !seen_ns || (now_ns > seen_ns && now_ns - seen_ns > bound_ns) ||
	       (seen_ns > now_ns && seen_ns - now_ns > bound_ns);
}

uint32_t registry_nr_entries(const struct registry_head *head)
{
	uint32_t nr = kt_load(&head->nr_entries);

	return KT_MIN(nr, REGISTRY_ENTRIES);
}

uint32_t registry_entry_wanted(const struct registry_entry *entry,
			       uint64_t now_ns)
{
	return registry_entry_silent(kt_load(&entry->seen_ns), now_ns,
				     ENTRY_SILENT_NS)
		       ? 0
		       : kt_load(&entry->wanted);
}

uint32_t registry_wanted(const struct registry_head *head, uint64_t now_ns)
{
	uint32_t nr = registry_nr_entries(head);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += registry_entry_wanted(&head->entries[i], now_ns);
	return (uint32_t)KT_MIN(sum, UINT32_MAX);
}
