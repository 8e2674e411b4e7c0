/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The file of the autotune cache: where it lies, how it is read without trust, and how
 * it is replaced while others may do the same.
 *
 *	$XDG_CACHE_HOME/ktask/threads.HASH	where that is set
 *	/var/cache/ktask/threads.HASH		of root
 *	$HOME/.cache/ktask/threads.HASH		of everybody else
 *
 * HASH stands for the kind of machine, because many machines may share a home.  A new
 * kernel or library begins a new file.  The owner and the mode of the directory are
 * checked first; then everything is opened relative to it.
 *
 * Locking: writers hold flock(2) on the file "lock" in the directory.  Readers take no
 * lock: a file is replaced as a whole, by rename(2).
 *
 * Behaves badly on a file system that hangs: the job that reads hangs too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "util/file.h"
#include "user/history/autotune.h"
#include "user/machine/topo.h"

#define DIRECTORY "ktask"
#define ROOTS_BASE "/var/cache"
#define LOCK "lock"
#define CPUINFO_BYTES 4096
#define FILE_NAME 48

/* ---- the machine ---- */

/* The value behind the first line of /proc/cpuinfo that begins with @key. */
static const char *cpuinfo_value(const char *text, const char *key, char *value,
				 size_t size)
{
	const char *line = text;
	size_t len;

	while (line && strncmp(line, key, strlen(key))) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	line = line ? strchr(line, ':') : NULL;
	if (!line)
		return NULL;
	line += 1 + strspn(line + 1, " \t");
	len = KT_MIN(strcspn(line, "\n"), size - 1);
	memcpy(value, line, len);
	value[len] = '\0';
	return value;
}

/* By what x86, Arm, POWER, RISC-V and s390 say. */
static void read_model(char *model, size_t size)
{
	static const char *const keys[] = { "model name", "CPU part", "cpu\t",
					    "uarch", "processor 0" };
	char *text = malloc(CPUINFO_BYTES);

	snprintf(model, size, "unknown CPU");
	if (text && system_text(text, CPUINFO_BYTES, "/proc/cpuinfo") <= 0)
		text[0] = '\0';
	for (unsigned i = 0; text && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (cpuinfo_value(text, keys[i], model, size))
			break;
	free(text);
	for (char *c = model; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

void autotune_machine(char machine[AUTOTUNE_MACHINE])
{
	const struct topo *topo = topo_get();
	char model[96], release[65];

	read_model(model, sizeof(model));
	/* Not uname(2): the fewer calls, the fewer filters object. */
	system_text(release, sizeof(release), "/proc/sys/kernel/osrelease");
	release[strcspn(release, "\n")] = '\0';
	snprintf(machine, AUTOTUNE_MACHINE,
		 "%s; %u CPUs; %u nodes; Linux %s; ktask %s", model,
		 topo->nr_cpus, topo->nr_nodes, release, ktask_version());
}

/* From the machine without its kernel and library. */
static void file_name(const char *machine, char name[FILE_NAME])
{
	const char *end = strstr(machine, "; Linux ");
	uint32_t hash = 2166136261u;

	for (; *machine && machine != end; machine++)
		hash = (hash ^ (unsigned char)*machine) * 16777619u;
	snprintf(name, FILE_NAME, "threads.%08" PRIx32, hash);
}

/* ---- the directory ---- */

/* The directory of the calling user's caches, without a slash at the end.  Return:
 * false if there is none. */
static bool find_base(char *base, size_t size)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	int len;

	if (cache && cache[0] == '/')
		len = snprintf(base, size, "%s", cache);
	else if (!geteuid())
		len = snprintf(base, size, "%s" ROOTS_BASE, file_root);
	else if (home && home[0] == '/')
		len = snprintf(base, size, "%s/.cache", home);
	else
		return false;
	if (len <= 0 || (size_t)len >= size)
		return false;
	while (len > 1 && base[len - 1] == '/')
		base[--len] = '\0';
	return true;
}

static bool is_safe(int fd, mode_t type, uid_t owner, mode_t bad)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type &&
	       st.st_uid == owner && !(st.st_mode & bad);
}

/* The directory in which @base is. */
static int open_above(const char *base)
{
	char above[FILE_PATH];
	char *slash;

	strcpy(above, base);
	slash = strrchr(above, '/');
	slash[slash == above] = '\0';
	return open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Make nothing in another user's directory: root would leave a directory of its own in a
 * user's home. */
static bool may_make_below(int fd, uid_t owner)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_uid == owner || !st.st_uid);
}

/* Return: 0 or -errno; it may be there already. */
static int make_base(const char *base, uid_t owner, mode_t mode)
{
	int fd, error = 0;

	if (!access(base, F_OK))
		return 0;
	fd = open_above(base);
	if (fd < 0)
		return -errno;
	if (!may_make_below(fd, owner))
		error = -EPERM;
	else if (mkdirat(fd, strrchr(base, '/') + 1, mode) && errno != EEXIST)
		error = -errno;
	close(fd);
	return error;
}

/* The base may be a link, and sticky; what is below must belong to @owner. */
static int open_directory(const char *base, uid_t owner, bool make)
{
	mode_t mode = owner ? 0700 : 0755;
	int base_fd, fd = -1, error = 0;

	if (make)
		error = make_base(base, owner, mode);
	if (error)
		return error;
	base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0)
		return -errno;
	if (!is_safe(base_fd, S_IFDIR, owner, 0))
		error = -EPERM;
	if (!error && make)
		mkdirat(base_fd, DIRECTORY, mode);
	if (!error)
		fd = openat(base_fd, DIRECTORY,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!error && fd < 0)
		error = -errno;
	close(base_fd);
	if (error)
		return error;
	if (is_safe(fd, S_IFDIR, owner, S_IWGRP | S_IWOTH))
		return fd;
	close(fd);
	return -EPERM;
}

/* ---- reading ---- */

static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	do {
		got = pread(fd, text + len, size - len, (off_t)len);
		if (got > 0)
			len += (size_t)got;
	} while ((got > 0 && len < size) || (got < 0 && errno == EINTR));
	return got < 0 ? -errno : (ssize_t)len;
}

/* O_NONBLOCK: a FIFO under the file's name must not hold a job. */
static bool read_from(int directory, const char *name, uid_t owner,
		      const char *machine, struct autotune_cache *cache)
{
	int fd = openat(directory, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				O_CLOEXEC);
	/* Not on the stack: a job may be run from a small one. */
	char *text = fd < 0 ? NULL : malloc(AUTOTUNE_BYTES + 1);
	ssize_t len = 0;
	bool right;

	cache->nr = 0;
	if (text && is_safe(fd, S_IFREG, owner, S_IWGRP | S_IWOTH))
		len = read_all(fd, text, AUTOTUNE_BYTES + 1);
	right = len > 0 && autotune_parse(text, (size_t)len, machine, cache);
	free(text);
	if (fd >= 0)
		close(fd);
	return right;
}

/* The directory of root's file or of the calling user's own; negative: there is none. */
static int open_cache(bool roots, uid_t *owner)
{
	char base[FILE_PATH];

	*owner = roots ? 0 : geteuid();
	if (roots)
		snprintf(base, sizeof(base), "%s" ROOTS_BASE, file_root);
	else if (!find_base(base, sizeof(base)))
		return -ENOENT;
	return open_directory(base, *owner, false);
}

bool autotune_has_directory(bool roots)
{
	uid_t owner;
	int directory = open_cache(roots, &owner);

	if (directory >= 0)
		close(directory);
	return directory >= 0;
}

bool autotune_read(bool roots, const char *machine,
		   struct autotune_cache *cache)
{
	char name[FILE_NAME];
	uid_t owner;
	bool found;
	int directory;

	cache->nr = 0;
	directory = open_cache(roots, &owner);
	if (directory < 0)
		return false;
	file_name(machine, name);
	found = read_from(directory, name, owner, machine, cache);
	close(directory);
	return found;
}

/* ---- writing ---- */

static int wait_for_lock(int fd, unsigned wait_ms)
{
	const struct timespec ms = { 0, 1000000 };

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EINTR && errno != EWOULDBLOCK)
			return -errno;
		if (!wait_ms--)
			return -EBUSY;
		nanosleep(&ms, NULL);
	}
	return 0;
}

/* A file of its own: other programs may open the directory and lock that. */
static int take_lock(int directory, unsigned wait_ms)
{
	int fd = openat(directory, LOCK,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				O_CLOEXEC,
			0600);
	int error;

	if (fd < 0)
		return -errno;
	error = is_safe(fd, S_IFREG, geteuid(), S_IRWXG | S_IRWXO)
			? wait_for_lock(fd, wait_ms)
			: -EPERM;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Unlocked explicitly: a child that was forked meanwhile has the lock as well. */
static void drop_lock(int fd)
{
	flock(fd, LOCK_UN);
	close(fd);
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t put = write(fd, text, len);

		if (put < 0 && errno != EINTR)
			return -errno;
		if (!put)
			return -EIO;
		if (put > 0) {
			text += put;
			len -= (size_t)put;
		}
	}
	return 0;
}

/* Not flushed to disk: half a file after a crash lacks its sum. */
static int replace_file(int directory, const char *name, const char *text,
			size_t len)
{
	char fresh[FILE_NAME + 8];
	int fd, error;

	if (!file_may_have(len))
		return -EFBIG;
	snprintf(fresh, sizeof(fresh), "%s.new", name);
	/* Left by a process that was killed.  The lock is held. */
	unlinkat(directory, fresh, 0);
	fd = openat(directory, fresh,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	error = write_all(fd, text, len);
	if (close(fd) && !error)
		error = -errno;
	if (!error && renameat(directory, fresh, directory, name))
		error = -errno;
	if (error)
		unlinkat(directory, fresh, 0);
	return error;
}

static int rewrite_file(int directory, const char *name,
			const struct autotune_entry *entry, const char *machine)
{
	struct autotune_cache *cache = malloc(sizeof(*cache) + AUTOTUNE_BYTES);
	char *text = (char *)(cache + 1);
	int error = -EFBIG;
	size_t len;

	if (!cache)
		return -ENOMEM;
	read_from(directory, name, geteuid(), machine, cache);
	autotune_put(cache, entry);
	len = autotune_format(cache, machine, text, AUTOTUNE_BYTES);
	if (len)
		error = replace_file(directory, name, text, len);
	free(cache);
	return error;
}

static int may_make_files(int at, const char *directory)
{
	return faccessat(at, directory, W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

/* May the missing directory be made in its base, or the base in what is above? */
static int may_make_directory(const char *base)
{
	int fd, error;

	if (!access(base, F_OK))
		return may_make_files(AT_FDCWD, base);
	fd = open_above(base);
	if (fd < 0)
		return -errno;
	error = may_make_below(fd, geteuid()) ? may_make_files(fd, ".")
					      : -EPERM;
	close(fd);
	return error;
}

/* Return: false if there is no directory for it. */
static bool find_file(const char *machine, char base[FILE_PATH],
		      char name[FILE_NAME], char *path, size_t size)
{
	if (!find_base(base, FILE_PATH))
		return false;
	file_name(machine, name);
	if (path)
		snprintf(path, size, "%s/" DIRECTORY "/%s", base, name);
	return true;
}

int autotune_verify(const char *machine, char *path, size_t size)
{
	char base[FILE_PATH], name[FILE_NAME];
	int directory, error;

	if (!find_file(machine, base, name, path, size))
		return -ENOENT;
	directory = open_directory(base, geteuid(), false);
	if (directory == -ENOENT)
		return may_make_directory(base);
	if (directory < 0)
		return directory;
	error = may_make_files(directory, ".");
	close(directory);
	return error;
}

int autotune_write(const struct autotune_entry *entry, const char *machine,
		   unsigned wait_ms, char *path, size_t size)
{
	char base[FILE_PATH], name[FILE_NAME];
	int directory, lock, error;

	if (!find_file(machine, base, name, path, size))
		return -ENOENT;
	directory = open_directory(base, geteuid(), true);
	if (directory < 0)
		return directory;
	lock = take_lock(directory, wait_ms);
	error = lock < 0 ? lock : rewrite_file(directory, name, entry, machine);
	if (lock >= 0)
		drop_lock(lock);
	close(directory);
	return error;
}
