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

bool sight_stands(struct sight_last *last, uint32_t tid, uint64_t units,
		  uint64_t now_ns, uint64_t long_ns)
{
	if (!tid || tid != last->tid || units != last->units ||
	    now_ns < last->since_ns)
		*last = (struct sight_last){ tid, units, now_ns };
	return tid && now_ns - last->since_ns >= long_ns;
}
