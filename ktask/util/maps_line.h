/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A line of /proc/PID/maps, and the first line of each mapping in smaps.
 */
#ifndef KTASK_UTIL_MAPS_LINE_H
#define KTASK_UTIL_MAPS_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct maps_line {
	uintptr_t start, end;
	bool readable, writable, shared;
	bool file; /* or shared memory */
	char name[8]; /* the beginning of it */
};

/* maps_line_parse - false if @text is no such line */
static inline bool maps_line_parse(const char *text, struct maps_line *line)
{
	unsigned long start, end, inode;
	char perms[5];

	line->name[0] = '\0';
	if (sscanf(text, "%lx-%lx %4s %*s %*s %lu %7s", &start, &end, perms,
		   &inode, line->name) < 4)
		return false;
	line->start = start;
	line->end = end;
	line->readable = perms[0] == 'r';
	line->writable = perms[1] == 'w';
	line->shared = perms[3] == 's';
	line->file = inode;
	return true;
}

#endif /* KTASK_UTIL_MAPS_LINE_H */
