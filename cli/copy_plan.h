/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What `ktask copy` makes before it copies: folders, links and empty files, one
 * for each source; and what it takes away again of them.  Files that are there
 * stay as they are until they are copied to.
 */
#ifndef KTASK_CLI_COPY_PLAN_H
#define KTASK_CLI_COPY_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "files.h"

struct copy_made {
	bool created; /* it was not there before */
	mode_t spare; /* rights of its owner that only copying needs */
};

struct copy_plan {
	struct files *files;
	const char *target; /* what the user named last */
	bool into; /* it is a folder */
	void *seen; /* destinations, by device and inode */
	void *sources; /* the same of these */
	struct copy_made *made; /* for each of files->at */
	size_t room;
};

/**
 * copy_plan_make - destinations for all of @sources
 *
 * No destination is a source, or another source's destination.
 *
 * Return: 0; 1 after a message where nothing can be copied.  What cannot be
 * made gets a message, files->failed, and is left out.
 */
int copy_plan_make(struct copy_plan *plan, char **sources, int nr);

/** copy_plan_finish - give files that were created and copied their final rights */
void copy_plan_finish(struct copy_plan *plan);

/** copy_plan_undo - remove files that were created and whose copy failed
 *
 * @all: the job did not end, so that none is complete */
void copy_plan_undo(struct copy_plan *plan, bool all);

#endif /* KTASK_CLI_COPY_PLAN_H */
