/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Destinations of copies: see copy_plan.h.
 *
 * Sources are listed before the first destination is made, so that a copy into
 * a folder of its own source ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy_plan.h"
#include "open.h"
#include "say.h"
#include "walk.h"

struct seen {
	dev_t dev;
	ino_t ino;
};

static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* Return: false if it was in the tree. */
static bool note_seen(void **tree, const struct stat *stat)
{
	struct seen *key = malloc(sizeof(*key));
	struct seen **found;

	if (!key)
		return true;
	*key = (struct seen){ stat->st_dev, stat->st_ino };
	found = tsearch(key, tree, compare_seen);
	if (found && *found != key) {
		free(key);
		return false;
	}
	return true;
}

static bool is_source(const struct copy_plan *plan, const struct stat *stat)
{
	const struct seen key = { stat->st_dev, stat->st_ino };

	return tfind(&key, &plan->sources, compare_seen);
}

/* What is overwritten while it is copied would be neither. */
static void note_sources(struct copy_plan *plan, const struct walk *walk)
{
	struct stat stat_buf;

	for (size_t i = 0; i < walk->nr; i++)
		if (walk->entries[i].type == WALK_FILE &&
		    !stat(walk->entries[i].path, &stat_buf))
			note_seen(&plan->sources, &stat_buf);
}

static int fails(struct copy_plan *plan, int error, const char *from,
		 const char *to)
{
	plan->files->failed = true;
	return say_error(error, "copying %s to %s", from, to);
}

static int refuses(struct copy_plan *plan, const char *from, const char *to,
		   const char *why)
{
	plan->files->failed = true;
	return say_fail("copying %s to %s: %s", from, to, why);
}

/* TARGET, or TARGET/NAME; and behind it what @path has beyond its root.  "..",
 * as a name, is no place below TARGET: what is in that folder goes into it. */
static char *destination(const struct copy_plan *plan,
			 const struct walk_entry *entry)
{
	const char *rest = entry->path + entry->root_len;
	char *root, *name, *to;
	int len;

	if (!plan->into)
		len = asprintf(&to, "%s%s%s", plan->target,
			       *rest && *rest != '/' ? "/" : "", rest);
	else {
		root = strndup(entry->path, entry->root_len);
		if (!root)
			return NULL;
		name = basename(root);
		len = asprintf(&to, "%s/%s%s%s", plan->target,
			       strcmp(name, "..") ? name : ".",
			       *rest && *rest != '/' ? "/" : "", rest);
		free(root);
	}
	return len < 0 ? NULL : to;
}

static int make_folder(struct copy_plan *plan, const char *from, const char *to)
{
	struct stat stat_buf;

	if (!plan->files->recursive)
		return refuses(plan, from, to,
			       "is a folder (--recursive goes through it)");
	if (stat(from, &stat_buf))
		return fails(plan, errno, from, to);
	/* Its owner must be able to fill it. */
	if (!mkdir(to, (stat_buf.st_mode & 0777) | S_IRWXU))
		return 0;
	if (errno == EEXIST && !stat(to, &stat_buf) &&
	    S_ISDIR(stat_buf.st_mode))
		return 0;
	return fails(plan, errno == EEXIST ? ENOTDIR : errno, from, to);
}

static int make_link(struct copy_plan *plan, const char *from, const char *to)
{
	char text[PATH_MAX];
	ssize_t len = readlink(from, text, sizeof(text) - 1);

	if (len < 0)
		return fails(plan, errno, from, to);
	text[len] = '\0';
	return symlink(text, to) ? fails(plan, errno, from, to) : 0;
}

/* What whoever copies needs, who will open it once more. */
#define TO_COPY (S_IRUSR | S_IWUSR)

/* Not emptied: its own copy does that. */
static int open_destination(const char *to, mode_t mode, struct copy_made *made)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		      (mode & 0777) | TO_COPY);

	made->created = fd >= 0;
	made->spare = fd >= 0 ? TO_COPY & ~mode : 0;
	return fd < 0 && errno == EEXIST ? open_now(to, O_WRONLY) : fd;
}

static const char not_regular[] = "the destination is no regular file";

static const char *wrong_pair(struct copy_plan *plan, const struct stat *src,
			      const struct stat *dst)
{
	if (!S_ISREG(dst->st_mode))
		return not_regular;
	if (src->st_dev == dst->st_dev && src->st_ino == dst->st_ino)
		return "they are the same file";
	if (is_source(plan, dst))
		return "the destination is to be copied as well";
	if (!note_seen(&plan->seen, dst))
		return "another source was copied there";
	return NULL;
}

/* That it was no link is why its name may be none later. */
static unsigned no_link(const char *to, const struct copy_made *made)
{
	const char *slash = strrchr(to, '/');
	struct stat stat_buf;

	if (!made->created &&
	    (lstat(to, &stat_buf) || S_ISLNK(stat_buf.st_mode)))
		return 0;
	return (unsigned)strlen(slash ? slash + 1 : to);
}

static int add_pair(struct copy_plan *plan, const struct walk_entry *entry,
		    const char *to, const struct copy_made *made)
{
	struct ktask_file *file = files_add(plan->files);

	if (!file)
		return 1;
	file->path = entry->path;
	file->nofollow = walk_found(entry);
	file->dst_path = to;
	file->dst_nofollow = no_link(to, made);
	if (plan->files->nr > plan->room) {
		size_t room = plan->room ? 2 * plan->room : 64;
		struct copy_made *grown =
			realloc(plan->made, room * sizeof(*grown));

		if (!grown) {
			plan->files->nr--;
			return fails(plan, ENOMEM, entry->path, to);
		}
		plan->made = grown;
		plan->room = room;
	}
	plan->made[plan->files->nr - 1] = *made;
	return 0;
}

static int make_file(struct copy_plan *plan, const struct walk_entry *entry,
		     const char *to)
{
	const char *from = entry->path;
	const char *wrong = NULL;
	struct copy_made made;
	struct stat src, dst;
	int fd, error = 0;

	if (stat(from, &src))
		return fails(plan, errno, from, to);
	/* Opening a FIFO waits for its other end. */
	if (!stat(to, &dst) && !S_ISREG(dst.st_mode) && !S_ISDIR(dst.st_mode))
		return refuses(plan, from, to, not_regular);
	fd = open_destination(to, src.st_mode, &made);
	if (fd < 0)
		return fails(plan, errno, from, to);
	if (fstat(fd, &dst))
		error = errno;
	else
		wrong = wrong_pair(plan, &src, &dst);
	close(fd);
	if (!error && !wrong)
		return add_pair(plan, entry, to, &made);
	if (made.created)
		unlink(to);
	return wrong ? refuses(plan, from, to, wrong)
		     : fails(plan, error, from, to);
}

static int make(struct copy_plan *plan, const struct walk_entry *entry)
{
	char *to = destination(plan, entry);

	if (!to)
		return fails(plan, ENOMEM, entry->path, plan->target);
	if (entry->type == WALK_FILE)
		return make_file(plan, entry, to);
	if (entry->type == WALK_FOLDER)
		return make_folder(plan, entry->path, to);
	if (entry->type == WALK_LINK)
		return make_link(plan, entry->path, to);
	return refuses(plan, entry->path, to, "not a regular file");
}

/* Where many go, or one to a folder that is there, they go into it. */
static int look_at_target(struct copy_plan *plan, int nr)
{
	struct stat stat_buf;
	bool there = !stat(plan->target, &stat_buf);

	plan->into = there && S_ISDIR(stat_buf.st_mode);
	if (nr > 1 && !plan->into)
		return say_fail("copying to %s: %s", plan->target,
				there ? "not a folder" : strerror(ENOENT));
	return 0;
}

int copy_plan_make(struct copy_plan *plan, char **sources, int nr)
{
	struct walk walk = { .recursive = plan->files->recursive,
			     .command = plan->files->command };

	if (look_at_target(plan, nr))
		return 1;
	for (int i = 0; i < nr; i++)
		if (walk_add(&walk, sources[i]))
			return 1;
	plan->files->failed = walk.failed;
	note_sources(plan, &walk);
	for (size_t i = 0; i < walk.nr; i++)
		make(plan, &walk.entries[i]);
	return 0;
}

static int take_rights(const char *path, mode_t spare)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat stat_buf;
	int error = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &stat_buf) ||
	    fchmod(fd, stat_buf.st_mode & 07777 & ~spare))
		error = errno;
	close(fd);
	return error;
}

void copy_plan_finish(struct copy_plan *plan)
{
	for (size_t i = 0; i < plan->files->nr; i++) {
		const struct ktask_file *file = &plan->files->at[i];
		int error = 0;

		if (plan->made[i].spare && !file->error)
			error = take_rights(file->dst_path,
					    plan->made[i].spare);
		if (error)
			fails(plan, error, file->path, file->dst_path);
	}
}

void copy_plan_undo(struct copy_plan *plan, bool all)
{
	for (size_t i = 0; i < plan->files->nr; i++)
		if (plan->made[i].created && (all || plan->files->at[i].error))
			unlink(plan->files->at[i].dst_path);
}
