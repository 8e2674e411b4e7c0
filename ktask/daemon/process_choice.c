/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See process_choice.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/process_choice.h"
#include "util/file.h"

#define CHOICES_MAX 64
#define GROUP_ROOT "/sys/fs/cgroup"
/* The kernel cuts longer ones: TASK_COMM_LEN. */
#define NAME_MAX_BYTES 15
/* The text has a line for each hierarchy. */
#define GROUPS_TEXT 8192

struct choice {
	bool group;
	const char *word; /* a group without its last slashes; "" is the root */
	size_t len;
};

static struct choice all_choices[CHOICES_MAX];
static unsigned nr_choices;
static bool has_all;

static int add_choice(bool group, const char *word, size_t len)
{
	if (nr_choices == CHOICES_MAX)
		return E2BIG;
	all_choices[nr_choices++] = (struct choice){ group, word, len };
	return 0;
}

int choice_add_group(const char *path)
{
	size_t len;

	/* As it lies in the file system, or as /proc/PID/cgroup has it. */
	if (!strcmp(path, GROUP_ROOT))
		path = "/";
	else if (!strncmp(path, GROUP_ROOT "/", strlen(GROUP_ROOT "/")))
		path += strlen(GROUP_ROOT);
	if (*path != '/')
		return EINVAL;
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	return add_choice(true, path, len);
}

int choice_add_name(const char *name)
{
	size_t len = strlen(name);

	if (len > NAME_MAX_BYTES)
		return ENAMETOOLONG;
	return len ? add_choice(false, name, len) : EINVAL;
}

void choice_add_all(void)
{
	has_all = true;
}

bool choice_is_empty(void)
{
	return !has_all && !nr_choices;
}

/* "0::/a/b": is that the group, or below it?  A namespace's parents have no name. */
static bool is_below(const char *line, const struct choice *choice)
{
	const char *group = strchr(line, ':');

	group = group ? strchr(group + 1, ':') : NULL;
	return group && !strncmp(group + 1, choice->word, choice->len) &&
	       strchr("/\n", group[1 + choice->len]);
}

static bool is_in_group(const char *groups, const struct choice *choice)
{
	for (const char *line = groups; line && *line;) {
		if (is_below(line, choice))
			return true;
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return false;
}

bool choice_has(pid_t pid)
{
	char groups[GROUPS_TEXT], name[64];
	size_t len;

	if (has_all)
		return true;
	if (system_text(groups, sizeof(groups), "/proc/%d/cgroup", pid) < 0 ||
	    system_text(name, sizeof(name), "/proc/%d/comm", pid) < 0)
		return false;
	len = strcspn(name, "\n");
	for (unsigned i = 0; i < nr_choices; i++) {
		const struct choice *choice = &all_choices[i];

		if (choice->group ? is_in_group(groups, choice)
				  : len == choice->len &&
					    !memcmp(name, choice->word, len))
			return true;
	}
	return false;
}
