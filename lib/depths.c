/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See depths.h.
 *
 * Nobody waits: who finds the table in use knows nothing, or leaves nothing.
 * So a child that was forked meanwhile knows nothing for ever, which costs it
 * the windows of each job in which a count is found.
 */
#include <string.h>

#include "lib/depths.h"
#include "lib/learn.h"

/* As many kinds of jobs; then the oldest is forgotten. */
#define NR_KNOWN 16

struct known {
	char name[LEARN_NAME];
	uint64_t min_chunk;
	struct kt_depth depth;
};

static struct known known[NR_KNOWN];
static unsigned nr_known; /* that ever were */
static uint32_t in_use;

static bool enter(void)
{
	uint32_t no = 0;

	return kt_cas(&in_use, &no, 1);
}

static void leave(void)
{
	kt_store_release(&in_use, 0);
}

static struct known *find(const char *name, uint64_t min_chunk, unsigned room)
{
	for (unsigned i = 0; i < KT_MIN(nr_known, NR_KNOWN); i++) {
		struct known *entry = &known[i];

		if (!strcmp(entry->name, name) &&
		    entry->min_chunk == min_chunk &&
		    entry->depth.most - entry->depth.least == room)
			return entry;
	}
	return NULL;
}

static bool take(const char *name, uint64_t min_chunk, unsigned room,
		 struct kt_depth *depth)
{
	const struct known *entry;

	if (!learn_name_ok(name) || !enter())
		return false;
	entry = find(name, min_chunk, room);
	if (entry)
		*depth = entry->depth;
	leave();
	return entry;
}

void depths_begin(struct kt_depth *depth, const char *name, uint64_t min_chunk,
		  unsigned least, unsigned most)
{
	if (take(name, min_chunk, most - least, depth))
		kt_depth_resume(depth, least, most);
	else
		kt_depth_begin(depth, least, most,
			       KT_MAX(KT_DEPTH_START, 2 * least));
}

void depths_end(const struct kt_depth *depth, const char *name,
		uint64_t min_chunk)
{
	struct known *entry;

	if (!depth->windows || !learn_name_ok(name) || !enter())
		return;
	entry = find(name, min_chunk, depth->most - depth->least);
	if (!entry) {
		entry = &known[nr_known++ % NR_KNOWN];
		memset(entry->name, 0, sizeof(entry->name));
		strcpy(entry->name, name);
		entry->min_chunk = min_chunk;
	}
	entry->depth = *depth;
	leave();
}
