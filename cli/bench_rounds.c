/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rounds of `ktask bench`.
 *
 * One round runs every thread count once, and each round begins with another
 * one, so that a machine that slows down or speeds up meanwhile does so for
 * all of them.  The first round is not counted: caches, page tables and the
 * helper threads are new then.
 *
 * Not an isolation tool: it neither pins threads nor stops other work, but
 * says how much of that there was.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bar.h"
#include "bench.h"
#include "busy.h"
#include "interrupt.h"
#include "say.h"
#include "size.h"

/* How far all runs together are. */
struct course {
	struct bar bar;
	unsigned done, total; /* runs */
	unsigned threads; /* of the present one */
	const char *command;
	uint64_t begin_ns;
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void draw(struct course *course, double part_of_run)
{
	double fraction = (course->done + part_of_run) / course->total;
	uint64_t elapsed_ns = now_ns() - course->begin_ns;
	char note[80], left[16];

	/* The warm-up round is slower: no estimate from its first runs. */
	bar_time(left, fraction > 0 ? elapsed_ns / fraction - elapsed_ns : 0);
	snprintf(note, sizeof(note), "run %u of %u, %u thread%s%s%s%s",
		 course->done + 1, course->total, course->threads,
		 course->threads == 1 ? "" : "s", fraction > 0.1 ? ", " : "",
		 fraction > 0.1 ? left : "", fraction > 0.1 ? " left" : "");
	bar_draw(&course->bar, fraction, note);
}

static int progress(const struct ktask_progress *now, void *arg)
{
	if (now->units_total)
		draw(arg, (double)now->units_done / now->units_total);
	return interrupt_seen();
}

static void keep(struct bench_row *row, const struct bench_sample *sample)
{
	row->seconds[row->nr] = sample->seconds;
	row->cpu_seconds[row->nr] = sample->cpu_seconds;
	row->job_cpu_seconds[row->nr] = sample->job_cpu_seconds;
	row->nr++;
	if (sample->threads > row->threads_used)
		row->threads_used = sample->threads;
}

static int explain(const struct bench *bench, const char *command, int error,
		   const char *doing)
{
	char size[SIZE_TEXT];

	size_text(size, bench->size_bytes);
	if (error == -EPERM || (error == -ENOMEM && !strcmp(doing, "lock")))
		return say_fail("%s: %s of %s: %s (locked memory may be "
				"limited: see 'ulimit -l')",
				command, doing, size, strerror(-error));
	return say_error(-error, "%s: %s of %s", command, doing, size);
}

static int run_once(struct bench *bench, struct bench_row *row, bool counted,
		    struct course *course)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct bench_sample sample;
	const char *doing;
	int error;

	opts.max_threads = row->threads;
	opts.chunk_us = row->chunk_us;
	opts.flags = bench->fixed ? KTASK_FIXED : 0;
	opts.progress_func = progress;
	opts.progress_arg = course;
	opts.progress_ms = BAR_REDRAW_MS;
	course->threads = row->threads;
	draw(course, 0);
	error = bench_work_run(&bench->work, bench->size_bytes, &opts, &sample,
			       &doing);
	course->done++;
	if (interrupt_seen())
		return -EINTR;
	if (!error && counted)
		keep(row, &sample);
	if (error) {
		bar_clear(&course->bar);
		explain(bench, course->command, error, doing);
	}
	return error;
}

static int run_rounds(struct bench *bench, struct course *course)
{
	unsigned i, round, row;
	int error;

	for (round = 0; round <= bench->runs; round++) {
		for (i = 0; i < bench->nr_rows; i++) {
			row = (i + round) % bench->nr_rows;
			error = run_once(bench, &bench->rows[row], round > 0,
					 course);
			if (error)
				return error;
		}
	}
	return 0;
}

int bench_add_row(struct bench *bench, unsigned threads, unsigned chunk_us)
{
	size_t size = (bench->nr_rows + 1) * sizeof(*bench->rows);
	struct bench_row *rows = realloc(bench->rows, size);
	struct bench_row *row;

	if (!rows)
		return -ENOMEM;
	bench->rows = rows;
	row = &rows[bench->nr_rows];
	*row = (struct bench_row){ .threads = threads, .chunk_us = chunk_us };
	row->seconds = calloc(3 * bench->runs, sizeof(double));
	if (!row->seconds)
		return -ENOMEM;
	row->cpu_seconds = row->seconds + bench->runs;
	row->job_cpu_seconds = row->cpu_seconds + bench->runs;
	bench->nr_rows++;
	return 0;
}

int bench_measure(struct bench *bench, const char *command)
{
	struct course course = { .total = bench->nr_rows * (bench->runs + 1),
				 .command = command,
				 .begin_ns = now_ns() };
	struct busy before = busy_now();
	int error;

	bar_init(&course.bar, bench->label);
	error = run_rounds(bench, &course);
	bench->others_cpus = busy_others(&before);
	bar_clear(&course.bar);
	if (interrupt_seen())
		return say_fail("%s: interrupted after %u of %u runs", command,
				course.done - 1, course.total);
	return error ? 1 : 0;
}

void bench_free(struct bench *bench)
{
	unsigned i;

	for (i = 0; i < bench->nr_rows; i++)
		free(bench->rows[i].seconds);
	free(bench->rows);
}
