/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask bench` share: options (cmd_bench.c), work to measure
 * (bench_work.c), the rounds (bench_rounds.c) and the report (bench_report.c).
 * `ktask tune` measures with the same.
 */
#ifndef KTASK_CLI_BENCH_H
#define KTASK_CLI_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>
#include <ktask/ops.h>

#include "machine.h"

enum bench_pages { PAGES_DEFAULT, PAGES_SMALL, PAGES_HUGE };

/** One thing that can be measured. */
struct bench_work {
	const char *name;
	const char *summary;
	const struct ktask_op *op;
	enum bench_pages pages;
	unsigned guest : 1; /* advise the memory as QEMU does */
	unsigned filled : 1; /* the operation wants present pages */
	unsigned copies : 1; /* a second range is the source */
	unsigned unmaps : 1; /* the range is gone afterwards */
	unsigned locked : 1; /* the operation wants locked pages */
	unsigned collapses : 1; /* small pages that may become huge */
};

/** What one run cost. */
struct bench_sample {
	double seconds;
	double cpu_seconds; /* of the whole process */
	double job_cpu_seconds; /* of the chunks alone */
	unsigned threads; /* that did a chunk */
};

/** All runs with one thread count. */
struct bench_row {
	unsigned threads; /* asked for */
	unsigned chunk_us; /* 0: the engine decides */
	unsigned threads_used; /* the most in any run */
	unsigned nr; /* samples in each array */
	double *seconds;
	double *cpu_seconds;
	double *job_cpu_seconds;
};

struct bench {
	struct bench_work work;
	uint64_t size_bytes;
	unsigned runs;
	const char *label; /* of the progress bar */
	bool fixed; /* exactly so many threads, instead of at most */
	unsigned nr_rows;
	struct bench_row *rows;
	struct machine machine;
	double others_cpus; /* that other processes kept busy meanwhile */
};

/** bench_work_at - number @index, "vm-start" first; -ENOENT behind the last */
int bench_work_at(unsigned index, struct bench_work *work);

/** bench_op_at - number @index of the operations that can be measured; NULL */
const struct ktask_op *bench_op_at(unsigned index);

/** bench_work_need - bytes of memory that a run of that size takes */
uint64_t bench_work_need(const struct bench_work *work, uint64_t size_bytes);

/**
 * bench_work_run - one run; only the operation itself is timed
 * @opts: max_threads and progress; the result field is set here
 * @doing: set to what failed
 *
 * Return: 0 or -errno.
 */
int bench_work_run(const struct bench_work *work, uint64_t size_bytes,
		   struct ktask_opts *opts, struct bench_sample *sample,
		   const char **doing);

/** bench_size - what to work on by default, and whether there is room for it
 *
 * @wanted: 0, or bytes.  @default_bytes: halved while it is too much.
 * Return: 0, or 1 after a message of @command.
 */
int bench_size(struct bench *bench, const char *command, uint64_t wanted,
	       uint64_t default_bytes);

/** bench_machine - describe it; 0, or 1 after a message of @command */
int bench_machine(struct bench *bench, const char *command);

/** bench_write_json - to @path, or standard output; takes the reference */
int bench_write_json(json_t *object, const char *path);

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

/* These use the rows that have samples, and sort the samples. */
void bench_print(const struct bench *bench);
json_t *bench_json(const struct bench *bench); /* a new reference */
int bench_plot(const struct bench *bench, const char *path);

#endif /* KTASK_CLI_BENCH_H */
