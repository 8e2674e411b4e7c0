/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See thread_sample.h. */
#include <stdio.h>

#include "common/proc_stat.h"
#include "user/blocking/thread_sample.h"
#include "util/file.h"

static bool is_running(uint32_t tid)
{
	char path[48], text[256], state;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	if (file_text(path, text, sizeof(text)) <= 0)
		return true;
	state = proc_stat_state(text);
	return state != 'S' && state != 'D';
}

void thread_sample_add(struct thread_sample *seen, uint32_t tid, bool closely)
{
	if (!tid)
		return;
	seen->working++;
	seen->running += closely && is_running(tid);
}

bool thread_is_stalled(struct thread_progress *last, uint32_t tid,
		       uint64_t units, uint64_t now_ns, uint64_t long_ns)
{
	if (!tid || tid != last->tid || units != last->units ||
	    now_ns < last->since_ns)
		*last = (struct thread_progress){ tid, units, now_ns };
	return tid && now_ns - last->since_ns >= long_ns;
}
