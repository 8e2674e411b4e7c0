/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Progress and result of a job on bytes: see progress.h.
 */
#include <stdio.h>

#include "bar.h"
#include "interrupt.h"
#include "progress.h"
#include "size.h"
#include "text.h"

static int draw_progress(const struct ktask_progress *now, void *bar)
{
	char note[96], done[SIZE_TEXT], left[16];
	double rate;

	if (!now->units_total || !now->elapsed_ns)
		return interrupt_seen();
	rate = (double)now->units_done / now->elapsed_ns;
	snprintf(note, sizeof(note), "%s, %.2f GB/s, %u thread%s, %s left",
		 size_text(done, now->units_done), rate, now->threads,
		 plural_suffix(now->threads),
		 bar_time(left, now->remaining_ns));
	bar_draw(bar, (double)now->units_done / now->units_total, note);
	return interrupt_seen();
}

int progress_run(const char *label, const char *name,
		 const struct ktask_op_args *args, unsigned max_threads,
		 struct ktask_result *result)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct bar bar;
	int error;

	bar_init(&bar, label);
	opts.max_threads = max_threads;
	opts.progress_func = draw_progress;
	opts.progress_arg = &bar;
	opts.progress_ms = BAR_REDRAW_MS;
	opts.result = result;
	error = ktask_op_run(ktask_op_find(name), args, &opts);
	bar_clear(&bar);
	return error;
}

const char *progress_result(char buf[PROGRESS_TEXT],
			    const struct ktask_result *result, uint64_t bytes)
{
	double seconds = result->wall_ns / 1e9;
	char size[SIZE_TEXT];

	snprintf(buf, PROGRESS_TEXT,
		 "%s in %.3f s, %.2f GB/s, %u thread%s, %.3f s of CPU",
		 size_text(size, bytes), seconds,
		 seconds > 0 ? bytes / seconds / 1e9 : 0.0, result->threads,
		 plural_suffix(result->threads), result->cpu_ns / 1e9);
	return buf;
}
