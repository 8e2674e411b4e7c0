/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See sight.h. */
#include <stdio.h>
#include <string.h>

#include "lib/file.h"
#include "lib/sight.h"

/* The state behind the name, which may have parentheses in it. */
static bool is_running(uint32_t tid)
{
	char path[48], text[256];
	const char *state;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	if (file_text(path, text, sizeof(text)) <= 0)
		return true;
	state = strrchr(text, ')');
	return !state || state[1] != ' ' ||
	       (state[2] != 'S' && state[2] != 'D');
}

void sight_add(struct sight *sight, uint32_t tid, bool closely)
{
	if (!tid)
		return;
	sight->working++;
	sight->running += closely && is_running(tid);
}
