/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The line of /proc/PID/stat, and of a thread's: proc_stat(5).
 *
 * The name may have any byte in it but 0: spaces, parentheses, ends of lines.  So read the
 * file as a whole and not up to the end of a line.
 */
#ifndef COMMON_PROC_STAT_H
#define COMMON_PROC_STAT_H

#include <string.h>

enum proc_stat_number {
	PROC_STAT_STATE = 3,
	PROC_STAT_PARENT = 4,
	PROC_STAT_START_TICKS = 22,
	PROC_STAT_CPU = 39,
	PROC_STAT_EXIT_CODE = 52,
};

/*
 * proc_stat_field - where a field behind the name begins, which a space ends
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

/* proc_stat_state - the letter of the state; 0 if the line has none */
static inline char proc_stat_state(const char *line)
{
	const char *state = proc_stat_field(line, PROC_STAT_STATE);

	return state ? *state : 0;
}

#endif /* COMMON_PROC_STAT_H */
