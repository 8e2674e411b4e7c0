/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Recorded machines, tests/topologies/NAME, laid out as a tree that the library
 * reads instead of /sys.  A line is "PATH:CONTENT", what begins with # is for
 * people; scripts/record-topology writes such files.
 *
 * Owns finding and laying out; needs the top of the source as its directory, as
 * the runner has it.
 */
#ifndef TEST_TOPOLOGY_H
#define TEST_TOPOLOGY_H

#include "tree.h"

#include "util/cpus.h"
#include "util/file.h"

/* topology_begin - from now on, and for what is loaded once: that machine */
static inline void topology_begin(struct tree *tree, const char *name)
{
	char line[8192], path[128], *colon;
	FILE *in;

	tree_begin(tree);
	snprintf(path, sizeof(path), "tests/topologies/%s", name);
	in = fopen(path, "re");
	if (!in)
		fail_msg("%s: %s; run this at the top of the source", path,
			 strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		colon = strchr(line, ':');
		if (line[0] == '#' || !colon)
			continue;
		*colon = '\0';
		tree_put(tree, line, colon + 1);
	}
	fclose(in);
	file_root = tree->root;
}

static inline void topology_end(struct tree *tree)
{
	file_root = "";
	tree_end(tree);
}

/* topology_list - a set as sysfs writes it, appended to @text */
static inline void topology_list(char *text, const struct kt_cpus *cpus)
{
	const char *comma = "";

	for (unsigned cpu = 0; cpu < KT_CPUS_MAX; cpu++) {
		unsigned to = cpu;

		while (to < KT_CPUS_MAX &&
		       cpus->words[to / 64] >> (to % 64) & 1)
			to++;
		if (to == cpu)
			continue;
		text += strlen(text);
		sprintf(text, to - cpu > 1 ? "%s%u-%u" : "%s%u", comma, cpu,
			to - 1);
		comma = ",";
		cpu = to;
	}
}

#endif /* TEST_TOPOLOGY_H */
