/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finding control groups.
 *
 * A line of /proc/self/cgroup names the group G in its hierarchy.  A line of mountinfo
 * says which group R of the hierarchy is the root of a mount.  Both are relative to the
 * reader's cgroup namespace, where "/.." is its parent.  The directory is the mount point
 * followed by the part of G that is below R.
 *
 * The kernel makes each line of mountinfo when it is read, and a machine with many
 * containers has thousands.  No mount shows more than that of the whole hierarchy, which is
 * among the first as a rule: reading ends there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/limits/cgroup_find.h"
#include "util/word_list.h"

#define MOUNTINFO_MAX (8u << 20)

static const char *const controller_names[CGROUP_KINDS] = {
	[CGROUP_CPU] = "cpu",
	[CGROUP_USAGE] = "cpuacct",
	[CGROUP_PIDS] = "pids",
	[CGROUP_MEMORY] = "memory",
};

/* A collision only delays what is seen to the next move. */
static uint64_t mark_of(const char *text)
{
	uint64_t mark = text_mark(text, strlen(text), FILE_MARK);

	return mark ? mark : 1;
}

/* ---- /proc/self/cgroup ---- */

/* "7:cpu,cpuacct:/group"; version 2 is "0::/group". */
static void read_group(struct cgroup_finder *finder, char *line)
{
	char *list = strchr(line, ':');
	char *group = list ? strchr(list + 1, ':') : NULL;
	bool unified = !strncmp(line, "0::", 3);

	if (!group || group[1] != '/')
		return;
	*group++ = '\0';
	list++;
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		/* A controller of version 1 is not in version 2. */
		if (unified && finder->version[kind])
			continue;
		if (!unified && !word_list_has(list, controller_names[kind]))
			continue;
		finder->version[kind] = unified ? 2 : 1;
		finder->groups[kind] = group;
	}
}

static void read_groups(struct cgroup_finder *finder)
{
	char *line = finder->text;
	char *end;

	memset(finder->groups, 0, sizeof(finder->groups));
	memset(finder->version, 0, sizeof(finder->version));
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		read_group(finder, line);
	}
	/* Version 1 counts CPU time in a hierarchy that may be another one; it
	 * is the same group's only if the names agree. */
	if (finder->version[CGROUP_USAGE] != finder->version[CGROUP_CPU] ||
	    (finder->groups[CGROUP_CPU] &&
	     strcmp(finder->groups[CGROUP_USAGE], finder->groups[CGROUP_CPU])))
		finder->version[CGROUP_USAGE] = 0;
}

/* ---- /proc/self/mountinfo ---- */

struct mount {
	unsigned long long id;
	char *root; /* the group that it shows */
	char *point;
	char *options; /* of version 1: its controllers */
	unsigned version;
};

/* Cut off the word at *@rest; a word may be empty. */
static char *cut_word(char **rest)
{
	char *begin = *rest;
	char *end = begin ? strchr(begin, ' ') : NULL;

	if (end)
		*end = '\0';
	*rest = end ? end + 1 : NULL;
	return begin;
}

static bool is_octal(const char *text)
{
	return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' &&
	       text[1] <= '7' && text[2] >= '0' && text[2] <= '7';
}

/* "\040" is how the kernel writes a space. */
static void unescape_path(char *text)
{
	char *to = text;

	while (*text) {
		if (*text == '\\' && is_octal(text + 1)) {
			*to++ = (char)((text[1] - '0') * 64 +
				       (text[2] - '0') * 8 + (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* "36 35 0:31 /root /point rw,noatime shared:7 - cgroup2 none rw" */
static bool read_mount(char *line, struct mount *mount)
{
	char *rest = strstr(line, " - cgroup");
	char *type;

	if (!rest)
		return false;
	*rest = '\0';
	rest += strlen(" - ");
	type = cut_word(&rest);
	cut_word(&rest);
	mount->options = cut_word(&rest);
	mount->version = !strcmp(type, "cgroup2") ? 2 : 1;
	if (!mount->options || (strcmp(type, "cgroup") && mount->version == 1))
		return false;

	mount->id = strtoull(line, NULL, 10);
	rest = line;
	for (int skip = 0; skip < 3; skip++)
		cut_word(&rest);
	mount->root = cut_word(&rest);
	mount->point = cut_word(&rest);
	if (!mount->root || !mount->point)
		return false;
	unescape_path(mount->root);
	unescape_path(mount->point);
	return mount->root[0] == '/' && mount->point[0] == '/';
}

/* Only "/..", any number of times: parents of the namespace's root. */
static bool only_parents(const char *path)
{
	while (!strncmp(path, "/..", 3))
		path += 3;
	return !*path;
}

static bool goes_up(const char *path)
{
	return !strncmp(path, "/..", 3) && (path[3] == '/' || !path[3]);
}

/*
 * Return: the part of @group below @root; NULL if the mount does not show the group.
 */
static const char *path_beyond(const char *group, const char *root)
{
	size_t len = strcmp(root, "/") ? strlen(root) : 0;

	if (!strcmp(group, "/"))
		group = "";
	if (!strncmp(group, root, len) && (group[len] == '/' || !group[len]) &&
	    !goes_up(group + len))
		return group + len;
	/* The mount shows a parent, and we are below it under a name that is
	 * hidden: all that can be seen is the mount's own group. */
	if (len && only_parents(root) && !goes_up(group))
		return "";
	return NULL;
}

/* Return: false if it does not show the group, or less than what was found before. */
static bool use_mount(struct cgroup_dir *dir, const char *root,
		      const struct mount *mount, const char *group)
{
	const char *rest = path_beyond(group, mount->root);
	const char *point = strcmp(mount->point, "/") ? mount->point : "";
	size_t top_len, len;

	if (!rest)
		return false;
	top_len = strlen(root) + strlen(point);
	len = top_len + strlen(rest);
	/* The longer rest shows more of the tree; of equals the later mount
	 * lies on top. */
	if (len >= sizeof(dir->path) ||
	    (dir->version && strlen(dir->path + dir->top_len) > strlen(rest)))
		return false;
	snprintf(dir->path, sizeof(dir->path), "%s%s%s", root, point, rest);
	dir->top_len = (unsigned)top_len;
	dir->version = mount->version;
	return true;
}

/* Does @path lie in that mount, and not in one on top of it?  Before Linux 5.8 nobody knows. */
static bool is_seen_at(const struct mount *mount, const char *path)
{
#ifdef STATX_MNT_ID
	struct statx st;

	return !statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) &&
	       st.stx_mask & STATX_MNT_ID && st.stx_mnt_id == mount->id;
#else
	return false;
#endif
}

static bool serves_kind(const struct cgroup_finder *finder,
			const struct mount *mount, int kind)
{
	return finder->version[kind] == mount->version &&
	       (mount->version == 2 ||
		word_list_has(mount->options, controller_names[kind]));
}

/* @kinds: a bit each.  Return: those of them of which no other mount can show more. */
static unsigned use_mount_for(const struct cgroup_finder *finder,
			      const char *root, const struct mount *mount,
			      unsigned kinds,
			      struct cgroup_dir dirs[CGROUP_KINDS])
{
	const char *path = NULL;
	unsigned used = 0;

	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		if (!(kinds & 1u << kind) ||
		    !serves_kind(finder, mount, kind) ||
		    !use_mount(&dirs[kind], root, mount, finder->groups[kind]))
			continue;
		used |= 1u << kind;
		/* In one hierarchy all are in one group. */
		path = dirs[kind].path;
	}
	return path && !strcmp(mount->root, "/") && is_seen_at(mount, path)
		       ? used
		       : 0;
}

static unsigned kinds_in_groups(const struct cgroup_finder *finder)
{
	unsigned kinds = 0;

	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		if (finder->version[kind])
			kinds |= 1u << kind;
	return kinds;
}

static void read_mounts(struct cgroup_finder *finder, const char *root,
			struct cgroup_dir dirs[CGROUP_KINDS])
{
	unsigned kinds = kinds_in_groups(finder);
	char *path = finder->lines.buf;
	struct mount mount;
	char *line;
	int fd;

	snprintf(path, FILE_LINE, "%s/proc/self/mountinfo", root);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	file_lines_begin(&finder->lines, fd, MOUNTINFO_MAX);
	while (kinds && (line = file_lines_next(&finder->lines)))
		if (read_mount(line, &mount))
			kinds &= ~use_mount_for(finder, root, &mount, kinds,
						dirs);
	file_lines_end(&finder->lines);
}

bool cgroup_find(struct cgroup_finder *finder, const char *root, uint64_t *mark,
		 struct cgroup_dir dirs[CGROUP_KINDS])
{
	char *path = finder->lines.buf;
	uint64_t was = *mark;

	snprintf(path, FILE_LINE, "%s/proc/self/cgroup", root);
	file_text(path, finder->text, sizeof(finder->text));
	*mark = mark_of(finder->text);
	if (*mark == was)
		return false;
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		dirs[kind].version = 0;
	read_groups(finder);
	read_mounts(finder, root, dirs);
	return true;
}

bool cgroup_up(const struct cgroup_dir *dir, unsigned *len)
{
	if (*len <= dir->top_len)
		return false;
	while (*len > dir->top_len && dir->path[--*len] != '/')
		;
	return true;
}
