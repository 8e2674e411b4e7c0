/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask bench` share: options (cmd_bench.c), work to measure
 * (bench_work.c, bench_command.c), the rounds (bench_rounds.c), what follows
 * from them (bench_figures.c) and the report (bench_report.c, bench_verdict.c,
 * bench_json.c, bench_chart.c).  `ktask tune` measures with the same.
 */
#ifndef KTASK_CLI_BENCH_H
#define KTASK_CLI_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <ktask/ops.h>

#include "machine.h"
#include "ratio.h"
#include "renew_memory.h"
#include "sample_stats.h"

/* Rounds that there is room for where their number is not fixed. */
#define BENCH_MAX_ROUNDS 1000

enum bench_pages { PAGES_DEFAULT, PAGES_SMALL, PAGES_HUGE };

/** One thing that can be measured. */
struct bench_work {
	const char *name;
	const char *summary;
	const struct ktask_op *op;
	enum bench_pages pages;
	unsigned guest : 1; /* advise the memory as QEMU does */
	unsigned filled : 1; /* the operation wants present pages */
	unsigned unmaps : 1; /* the range is gone afterwards */
	unsigned locked : 1; /* the operation wants locked pages */
};

/** What one run cost. */
struct bench_sample {
	double seconds;
	double cpu_seconds; /* of the whole process */
	double job_cpu_seconds; /* of the chunks alone */
	unsigned threads; /* that did a chunk */
};

/** All runs with one thread count, or of one command. */
struct bench_row {
	const char *name; /* of a command */
	const char *command; /* for sh -c; NULL: the bench's work */
	unsigned threads; /* asked for; 0 with a command */
	unsigned chunk_us; /* 0: the engine decides */
	unsigned threads_used; /* the most in any run */
	double least_cpu_seconds; /* of any run, counted or not; 0: none yet */
	unsigned nr; /* samples in each array: sample i is of round i */
	double *seconds;
	double *cpu_seconds;
	double *job_cpu_seconds;
	double *scratch; /* as many, for whoever sorts */
};

struct bench {
	struct bench_work work; /* without an op: the rows have commands */
	uint64_t size_bytes;
	bool less_fits; /* work on less if the time is short */
	unsigned runs; /* counted rounds; 0: until settled, or time is up */
	double precision; /* settled: interval / speedup is at most this */
	double max_seconds;
	const char *label; /* of the progress bar */
	bool fixed; /* exactly so many threads, instead of at most */
	bool unpaired; /* the rows were not measured in the same rounds */
	bool own_time; /* commands print the seconds that count */
	unsigned nr_rows;
	struct bench_row *rows;
	struct machine machine;

	/* What bench_measure() found. */
	bool settled;
	bool time_is_up;
	double seconds; /* all rounds together */
	bool load_unknown; /* what others did: no /proc/stat */
	double others_cpus; /* that other processes kept busy meanwhile */
	double stolen_cpus; /* that the host gave to others */
	struct renewal renewal;
	unsigned repeated_runs; /* that met missing memory all the same */
};

/** What the samples of a row say. */
struct bench_figures {
	const struct bench_row *row;
	struct stats seconds;
	struct ratio speedup; /* over the first row */
	bool shown; /* enough rounds, and they agree enough, for a speedup */
	double gb_per_s;
	double cpu_seconds;
	double job_cpu_seconds;
};

/** bench_work_at - number @index, "vm-start" first; -ENOENT behind the last */
int bench_work_at(unsigned index, struct bench_work *work);

/** bench_work_find - by its name; false if there is none */
bool bench_work_find(const char *name, struct bench_work *work);

/** bench_op_at - number @index of the operations that can be measured; NULL */
const struct ktask_op *bench_op_at(unsigned index);

/**
 * bench_work_run - one run; only the operation itself is timed
 * @opts: max_threads and progress; the result field is set here
 * @doing: set to what failed
 *
 * Return: 0 or -errno.
 */
int bench_work_run(const struct bench_work *work, uint64_t size_bytes,
		   struct renewal *renewal, struct ktask_opts *opts,
		   struct bench_sample *sample, const char **doing);

/**
 * bench_command_run - one run of a row's command by sh -c
 *
 * An interrupt of ours ends the command.  Its standard output is not shown.
 *
 * Return: 0, or 1 after a message.
 */
int bench_command_run(const struct bench *bench, const struct bench_row *row,
		      struct bench_sample *sample);

/** bench_size - what to work on by default, and whether there is room for it
 *
 * @wanted: 0, or bytes.  @default_bytes: halved while it is too much.
 * Return: 0, or 1 after a message of @command.
 */
int bench_size(struct bench *bench, const char *command, uint64_t wanted,
	       uint64_t default_bytes);

/** bench_machine - describe it; 0, or 1 after a message of @command */
int bench_machine(struct bench *bench, const char *command);

/**
 * bench_verify_targets - can the results be written?
 * @json_path, @plot_path: NULL where there is none
 *
 * Asked before measuring.  Return: 0, or 1 after a message.
 */
int bench_verify_targets(const char *json_path, const char *plot_path);

/** bench_add_row - a thread count to measure, behind the others; 0, -ENOMEM */
int bench_add_row(struct bench *bench, unsigned threads, unsigned chunk_us);

/**
 * bench_measure - run all rounds
 * @command: in messages
 *
 * Return: 0; or 1 after a message, which an interrupt has as well: then the
 * rows have the runs that were finished.
 */
int bench_measure(struct bench *bench, const char *command);

void bench_free(struct bench *bench);

/** bench_speedup - of a row with samples over the first one */
struct ratio bench_speedup(const struct bench *bench,
			   const struct bench_row *row);

/** bench_is_settled - are all speedups known well enough? */
bool bench_is_settled(const struct bench *bench);

/** bench_have_interval - do all rows but the first have one? */
bool bench_have_interval(const struct bench_figures *figures, unsigned nr);

/**
 * bench_figures_of - one entry for each row with samples, the first row's first
 *
 * Return: to be freed; NULL without memory or where there is none.
 */
struct bench_figures *bench_figures_of(const struct bench *bench, unsigned *nr);

/* These print, or use, the rows that have samples. */
void bench_print_plan(const struct bench *bench); /* before measuring */
void bench_print(const struct bench *bench); /* the table, and what it means */
void bench_print_verdict(const struct bench *bench,
			 const struct bench_figures *figures, unsigned nr);
void bench_print_chart(const struct bench *bench);
json_t *bench_json(const struct bench *bench); /* a new reference */
int bench_plot(const struct bench *bench, const char *path);

#endif /* KTASK_CLI_BENCH_H */
