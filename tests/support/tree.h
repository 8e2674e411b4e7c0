/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A tree of small files in a temporary directory, in place of /proc, /sys and
 * /etc.  Owns the directory: made by tree_begin(), gone after tree_end().  Does
 * not know what the files mean.
 */
#ifndef TREE_H
#define TREE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktest.h"

struct tree {
	char root[64];
};

static inline void tree_begin(struct tree *tree)
{
	snprintf(tree->root, sizeof(tree->root), "/tmp/ktask-tree.XXXXXX");
	assert_non_null(mkdtemp(tree->root));
}

static inline int tree_remove_one(const char *path, const struct stat *st,
				  int type, struct FTW *ftw)
{
	return remove(path);
}

/* tree_remove - a file, or a directory and all in it */
static inline void tree_remove(const struct tree *tree, const char *path)
{
	char full[8192 + 64];

	snprintf(full, sizeof(full), "%s%s", tree->root, path);
	nftw(full, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_end(const struct tree *tree)
{
	tree_remove(tree, "");
}

static inline void tree_make_parents(char *full, size_t root_len)
{
	char *slash = full + root_len;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
}

/* tree_put_bytes - a file with this content, and the directories above it */
static inline void tree_put_bytes(const struct tree *tree, const char *path,
				  const void *bytes, size_t size)
{
	char full[8192 + 64];
	int fd;

	snprintf(full, sizeof(full), "%s%s", tree->root, path);
	tree_make_parents(full, strlen(tree->root));
	/* Truncated instead, some file systems would write it to disk. */
	unlink(full);
	fd = open(full, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static inline void tree_put(const struct tree *tree, const char *path,
			    const char *text)
{
	tree_put_bytes(tree, path, text, strlen(text));
}

/* tree_put_cpus - say that the machine has the CPUs that it has: a tree without
 * any is a machine of one, on which no job gets a helper */
static inline void tree_put_cpus(const struct tree *tree)
{
	char text[32];

	snprintf(text, sizeof(text), "0-%ld\n",
		 sysconf(_SC_NPROCESSORS_ONLN) - 1);
	tree_put(tree, "/sys/devices/system/cpu/online", text);
}

/* tree_put_idle - say that each of so many CPUs has idled for so many ticks since boot */
static inline void tree_put_idle(const struct tree *tree, long nr_cpus,
				 unsigned long ticks)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	fputs("cpu  9 9 9 9 9 9 0 0 0 0\n", out);
	for (long cpu = 0; cpu < nr_cpus; cpu++)
		fprintf(out, "cpu%ld 7 0 7 %lu 0 0 0 0 0 0\n", cpu, ticks);
	fclose(out);
	tree_put_bytes(tree, "/proc/stat", text, size);
	free(text);
}

/* tree_fds - descriptors that this process has open */
static inline int tree_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}

#endif /* TREE_H */
