/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rounds of `ktask bench`.
 *
 * One round runs every row once.  Only runs of the same round are compared, because a
 * machine that becomes slower or faster affects all of them.  The order changes from round
 * to round, so that no row always comes first, or after the same other row.  The first
 * round is not counted: caches, page tables and the helper threads are new then.
 *
 * The user may fix the number of rounds.  Otherwise there are rounds until all ratios are
 * settled or the time is over.  A round is not begun if one as long as the longest so far
 * would exceed the time.  If rounds take so long that too few would be left to settle a
 * ratio, and the size may be reduced, the rounds begin again with a smaller size.
 *
 * A run that took much more CPU time than the best one of its row has met memory that the
 * host had to give back, although free memory was renewed just before: see
 * renew_memory.h.  It is repeated, at most twice, on either side.  No other run is
 * dropped.
 *
 * Not an isolation tool: it neither pins threads nor stops other work, but reports how
 * much other work there was.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/bar.h"
#include "bench.h"
#include "system_load.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/message.h"
#include "cli/ui/size.h"
#include "cli/ui/text.h"
#include "util/clock.h"

#define MAX_REPEATS 2
/* Sizes that may be reduced begin here. */
#define LEAST_BYTES (256ull << 20)
#define ROUNDS_WANTED 16

/* The progress of all runs. */
struct course {
	struct bar bar;
	const struct bench *bench;
	unsigned done, total; /* runs; total 0: not known */
	const struct bench_row *row; /* that runs at present */
	const char *command;
	uint64_t begin_ns;
	uint64_t longest_ns; /* of all counted rounds */
	double timed_seconds; /* of the present round's runs */
};

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void what_text(const struct bench_row *row, char buf[40])
{
	if (row->command)
		snprintf(buf, 40, "%s", row->name);
	else
		snprintf(buf, 40, "%u thread%s", row->threads,
			 plural_suffix(row->threads));
}

/* The warm-up round is slower: no estimate from its first runs. */
static void draw_of_total(struct course *course, double part_of_run)
{
	double fraction = (course->done + part_of_run) / course->total;
	uint64_t elapsed_ns = now_ns() - course->begin_ns;
	char note[100], left[16], what[40];

	what_text(course->row, what);
	bar_time(left, fraction > 0 ? elapsed_ns / fraction - elapsed_ns : 0);
	snprintf(note, sizeof(note), "run %u of %u, %s%s%s%s", course->done + 1,
		 course->total, what, fraction > 0.1 ? ", " : "",
		 fraction > 0.1 ? left : "", fraction > 0.1 ? " left" : "");
	bar_draw(&course->bar, fraction, note);
}

static void draw_of_time(struct course *course)
{
	double max_ns = course->bench->max_seconds * 1e9;
	uint64_t elapsed_ns = now_ns() - course->begin_ns;
	char note[100], left[16], what[40];

	what_text(course->row, what);
	bar_time(left, elapsed_ns < max_ns ? max_ns - elapsed_ns : 0);
	snprintf(note, sizeof(note), "run %u, %s, at most %s left",
		 course->done + 1, what, left);
	bar_draw(&course->bar, elapsed_ns / max_ns, note);
}

static void draw_course(struct course *course, double part_of_run)
{
	if (course->total)
		draw_of_total(course, part_of_run);
	else
		draw_of_time(course);
}

static int draw_progress(const struct ktask_progress *now, void *arg)
{
	if (now->units_total)
		draw_course(arg, (double)now->units_done / now->units_total);
	return interrupt_seen();
}

static void keep_sample(struct bench_row *row,
			const struct bench_sample *sample)
{
	row->seconds[row->nr] = sample->seconds;
	row->cpu_seconds[row->nr] = sample->cpu_seconds;
	row->job_cpu_seconds[row->nr] = sample->job_cpu_seconds;
	row->nr++;
	if (sample->threads > row->threads_used)
		row->threads_used = sample->threads;
}

static int explain_error(const struct bench *bench, const char *command,
			 int error, const char *doing)
{
	char size[SIZE_TEXT];

	size_text(size, bench->size_bytes);
	if (error == -EPERM || (error == -ENOMEM && !strcmp(doing, "lock")))
		return say_fail(
			"%s: %s of %s: %s (locked memory may be limited: see 'ulimit -l')",
			command, doing, size, strerror(-error));
	return say_error(-error, "%s: %s of %s", command, doing, size);
}

/* One run of an operation. */
static int run_work(struct bench *bench, struct bench_row *row,
		    struct bench_sample *sample, struct course *course)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	const char *doing;
	int error;

	opts.max_threads = row->threads;
	opts.chunk_us = row->chunk_us;
	opts.flags = bench->fixed ? KTASK_FIXED : 0;
	opts.progress_func = draw_progress;
	opts.progress_arg = course;
	opts.progress_ms = BAR_REDRAW_MS;
	error = bench_work_run(&bench->work, bench->size_bytes, &bench->renewal,
			       &opts, sample, &doing);
	if (!error || interrupt_seen())
		return error;
	bar_clear(&course->bar);
	return explain_error(bench, course->command, error, doing);
}

static int run_command(struct bench *bench, struct bench_row *row,
		       struct bench_sample *sample)
{
	if (bench->size_bytes)
		renew_free_memory(&bench->renewal, bench->size_bytes);
	if (interrupt_seen())
		return 0;
	return bench_command_run(bench, row, sample);
}

static double least_cpu_of_all(const struct bench *bench)
{
	double least = 0;

	for (unsigned i = 0; i < bench->nr_rows; i++) {
		double row = bench->rows[i].least_cpu_seconds;

		if (row > 0 && (!least || row < least))
			least = row;
	}
	return least;
}

/*
 * Did the run use memory that was missing?  Counted runs are compared with runs of their
 * own row, because many threads may cost more CPU time than one.  In the warm-up round a
 * row has no other runs yet, so its run is compared with all rows: an extra run is cheap
 * then, and the very first one is always repeated.
 */
static bool met_missing_memory(const struct bench *bench,
			       const struct bench_row *row, bool counted,
			       const struct bench_sample *sample)
{
	double least =
		counted ? row->least_cpu_seconds : least_cpu_of_all(bench);

	if (row->command ? !bench->size_bytes : bench->work.filled)
		return false;
	return (!least && !counted) ||
	       renewal_is_slow(least, sample->cpu_seconds);
}

static void note_cpu(struct bench_row *row, const struct bench_sample *sample)
{
	if (!row->least_cpu_seconds ||
	    sample->cpu_seconds < row->least_cpu_seconds)
		row->least_cpu_seconds = sample->cpu_seconds;
}

static int run_side(struct bench *bench, struct bench_row *row,
		    struct bench_sample *sample, struct course *course)
{
	int status;

	course->row = row;
	draw_course(course, 0);
	status = row->command ? run_command(bench, row, sample)
			      : run_work(bench, row, sample, course);
	return status || interrupt_seen();
}

/* 0, or 1 after an interrupt or a message. */
static int run_once(struct bench *bench, struct bench_row *row, bool counted,
		    struct course *course)
{
	struct bench_sample sample;
	int status, repeats = 0;
	bool again = false;

	do {
		status = run_side(bench, row, &sample, course);
		if (status)
			break;
		again = repeats++ < MAX_REPEATS &&
			met_missing_memory(bench, row, counted, &sample);
		bench->repeated_runs += again && counted;
		note_cpu(row, &sample);
	} while (again);
	course->done++;
	if (status)
		return 1;
	course->timed_seconds += sample.seconds;
	if (counted)
		keep_sample(row, &sample);
	return 0;
}

/*
 * Which row runs in this turn.  Two rounds have opposite orders; with two rows
 * the runs are 1 2 2 1 2 1 1 2.
 */
static unsigned row_of_turn(unsigned round, unsigned turn, unsigned nr_rows)
{
	if (round % 2)
		turn = nr_rows - 1 - turn;
	return (turn + round / 2) % nr_rows;
}

static int run_round(struct bench *bench, unsigned round, struct course *course)
{
	uint64_t begin_ns = now_ns(), ns;
	unsigned turn, row;

	course->timed_seconds = 0;
	for (turn = 0; turn < bench->nr_rows; turn++) {
		row = row_of_turn(round, turn, bench->nr_rows);
		if (run_once(bench, &bench->rows[row], round > 0, course))
			return 1;
	}
	ns = now_ns() - begin_ns;
	if (round && ns > course->longest_ns)
		course->longest_ns = ns;
	return 0;
}

static bool time_is_up(const struct bench *bench, const struct course *course)
{
	uint64_t elapsed_ns = now_ns() - course->begin_ns;

	return elapsed_ns + course->longest_ns > bench->max_seconds * 1e9;
}

/* After @counted rounds. */
static bool is_finished(struct bench *bench, unsigned counted,
			const struct course *course)
{
	bench->settled = bench_is_settled(bench);
	if (bench->runs)
		return counted == bench->runs;
	if (bench->settled || counted == BENCH_MAX_ROUNDS)
		return true;
	bench->time_is_up = time_is_up(bench, course);
	return bench->time_is_up;
}

/*
 * May the size be doubled?  Only if there is time for enough rounds, which also touch the
 * memory before each run.  And the warm-up, including a round of that size, for which the
 * host may have to provide the memory, must take at most a third of the time.
 */
static bool may_double(const struct bench *bench, const struct course *course,
		       double round_seconds)
{
	double elapsed = (now_ns() - course->begin_ns) / 1e9;
	double next_round = 2 * 2 * course->timed_seconds;

	return next_round * ROUNDS_WANTED <= bench->max_seconds &&
	       elapsed + 2 * round_seconds <= bench->max_seconds / 3;
}

static void set_size(struct bench *bench, uint64_t bytes)
{
	for (unsigned i = 0; i < bench->nr_rows; i++)
		bench->rows[i].least_cpu_seconds *=
			(double)bytes / bench->size_bytes;
	bench->size_bytes = bytes;
}

/* Run the round that is not counted, and find the size if a smaller one will do. */
static int warm_up(struct bench *bench, struct course *course)
{
	uint64_t most = bench->size_bytes, bytes = most, begin_ns;

	while (bench->less_fits && bytes > LEAST_BYTES)
		bytes /= 2;
	for (;; bytes *= 2) {
		set_size(bench, bytes);
		begin_ns = now_ns();
		if (run_round(bench, 0, course))
			return 1;
		if (bytes == most ||
		    !may_double(bench, course, (now_ns() - begin_ns) / 1e9))
			return 0;
	}
}

static void forget_samples(struct bench *bench)
{
	for (unsigned i = 0; i < bench->nr_rows; i++) {
		bench->rows[i].nr = 0;
		bench->rows[i].threads_used = 0;
	}
	bench->repeated_runs = 0;
}

/*
 * After @counted rounds: halve the size until enough rounds for a settled ratio fit into
 * the time that is left, and forget the rounds.  This is necessary if a host gives memory
 * back slowly: the warm-up may have chosen the size with memory that was present.
 *
 * Return: whether the rounds begin again.
 */
static bool begin_smaller(struct bench *bench, struct course *course,
			  unsigned counted)
{
	double left_ns = bench->max_seconds * 1e9 -
			 (double)(now_ns() - course->begin_ns);
	double round_ns = course->longest_ns;
	uint64_t bytes = bench->size_bytes;

	if (bench->runs || !bench->less_fits ||
	    counted + left_ns / round_ns >= RATIO_SETTLED_PAIRS)
		return false;
	while (bytes > LEAST_BYTES &&
	       left_ns / round_ns < RATIO_SETTLED_PAIRS) {
		bytes /= 2;
		round_ns /= 2;
	}
	if (bytes == bench->size_bytes || left_ns < round_ns)
		return false;
	set_size(bench, bytes);
	forget_samples(bench);
	course->longest_ns = 0;
	return true;
}

static int run_rounds(struct bench *bench, struct course *course)
{
	unsigned round;

	if (warm_up(bench, course))
		return 1;
	for (round = 1;; round++) {
		if (run_round(bench, round, course))
			return 1;
		if (begin_smaller(bench, course, round))
			round = 0;
		else if (is_finished(bench, round, course))
			return 0;
	}
}

static unsigned max_rounds(const struct bench *bench)
{
	return bench->runs ? bench->runs : BENCH_MAX_ROUNDS;
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
	row->seconds = calloc(4 * max_rounds(bench), sizeof(double));
	if (!row->seconds)
		return -ENOMEM;
	row->cpu_seconds = row->seconds + max_rounds(bench);
	row->job_cpu_seconds = row->cpu_seconds + max_rounds(bench);
	row->scratch = row->job_cpu_seconds + max_rounds(bench);
	bench->nr_rows++;
	return 0;
}

static int say_interrupted(const struct course *course)
{
	if (course->total)
		return say_fail("%s: interrupted after %u of %u runs",
				course->command, course->done - 1,
				course->total);
	return say_fail("%s: interrupted after %u runs", course->command,
			course->done - 1);
}

int bench_measure(struct bench *bench, const char *command)
{
	struct course course = { .bench = bench,
				 .total = bench->nr_rows *
					  (bench->runs ? bench->runs + 1 : 0),
				 .command = command,
				 .begin_ns = now_ns() };
	struct busy after, before = busy_now();
	int status;

	bar_init(&course.bar, bench->label);
	status = run_rounds(bench, &course);
	after = busy_now();
	bench->seconds = (now_ns() - course.begin_ns) / 1e9;
	bench->load_unknown = after.unknown;
	bench->others_cpus = busy_others(&before, &after);
	bench->stolen_cpus = busy_stolen(&before, &after);
	bar_clear(&course.bar);
	return interrupt_seen() ? say_interrupted(&course) : status;
}

void bench_free(struct bench *bench)
{
	for (unsigned i = 0; i < bench->nr_rows; i++)
		free(bench->rows[i].seconds);
	free(bench->rows);
}
