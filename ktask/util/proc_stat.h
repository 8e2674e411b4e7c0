/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The line of /proc/PID/stat, and of a thread's: proc_stat(5).
 */
#ifndef KTASK_UTIL_PROC_STAT_H
#define KTASK_UTIL_PROC_STAT_H

#include <string.h>

enum proc_stat_number {
	PROC_STAT_STATE = 3,
	PROC_STAT_START_TICKS = 22,
	PROC_STAT_CPU = 39,
	PROC_STAT_EXIT_CODE = 52,
};

/*
 * proc_stat_field - where a field behind the name begins, which a space ends
 *
 * The name may have spaces and parentheses in it.
 *
 * Return: NULL if the line has no such field.
 */
static inline const char *proc_stat_field(const char *line,
					  enum proc_stat_number number)
{
	const char *at = strrchr(line, ')');

	for (int i = PROC_STAT_STATE; at && i <= (int)number; i++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at;
}

#endif /* KTASK_UTIL_PROC_STAT_H */
