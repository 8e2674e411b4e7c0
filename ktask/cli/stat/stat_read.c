/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading the accounts of jobs, which other processes wrote: a line that is
 * not exactly a job's is counted and passed over.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "stat.h"
#include "util/file.h"

#define THREADS_MAX 65536

struct line {
	char name[16];
	int pid, error;
	unsigned threads, lent;
	uint64_t units, chunks, wall_ns, caller_ns, helper_ns;
};

static bool parse_line(const char *text, struct line *line)
{
	const char *name;
	int end = 0;

	if (strspn(text, " \t") ||
	    sscanf(text,
		   "%15s %d %d %u %u %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 "%n",
		   line->name, &line->pid, &line->error, &line->threads,
		   &line->lent, &line->units, &line->chunks, &line->wall_ns,
		   &line->caller_ns, &line->helper_ns, &end) != 10)
		return false;
	/* It is printed: nothing that a terminal would obey. */
	for (name = line->name; *name; name++)
		if (*name <= ' ' || *name > '~')
			return false;
	return !text[end] && line->pid > 0 && line->threads <= THREADS_MAX &&
	       line->lent <= THREADS_MAX;
}

static void know_operation(struct stat_op *op)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;

	op->bytes = ktask_op_find(op->name) != NULL;
	if (!ktask_autotune_get(op->name, &tuned))
		op->single_rate = (double)tuned.single_rate;
}

static struct stat_op *op_of(struct stat_jobs *jobs, const char *name)
{
	struct stat_op *ops;
	unsigned i;

	for (i = 0; i < jobs->nr_ops; i++)
		if (!strcmp(jobs->ops[i].name, name))
			return &jobs->ops[i];
	ops = realloc(jobs->ops, (jobs->nr_ops + 1) * sizeof(*ops));
	if (!ops)
		return NULL;
	jobs->ops = ops;
	memset(&ops[i], 0, sizeof(*ops));
	strcpy(ops[i].name, name);
	know_operation(&ops[i]);
	jobs->nr_ops++;
	return &ops[i];
}

static int add_line(struct stat_jobs *jobs, const struct line *line)
{
	struct stat_op *op = op_of(jobs, line->name);

	if (!op)
		return -ENOMEM;
	jobs->nr_jobs++;
	op->jobs++;
	op->failed += line->error != 0;
	op->units += line->units;
	op->chunks += line->chunks;
	op->threads += line->threads;
	op->lent += line->lent;
	if (line->threads > op->threads_most)
		op->threads_most = line->threads;
	op->wall_seconds += line->wall_ns / 1e9;
	op->caller_seconds += line->caller_ns / 1e9;
	op->helper_seconds += line->helper_ns / 1e9;
	return 0;
}

static int read_lines(FILE *file, struct stat_jobs *jobs)
{
	char text[STAT_LINE];
	int error = 0;

	while (!error && fgets(text, sizeof(text), file)) {
		size_t len = strcspn(text, "\n");
		struct line line;
		bool whole = text[len] == '\n';

		text[len] = '\0';
		if (whole && parse_line(text, &line))
			error = add_line(jobs, &line);
		else
			jobs->nr_bad++;
	}
	return error;
}

int stat_read(int fd, struct stat_jobs *jobs)
{
	struct stat st;
	FILE *file;
	int error;

	memset(jobs, 0, sizeof(*jobs));
	jobs->full = !fstat(fd, &st) &&
		     (st.st_size > STAT_BYTES_MAX ||
		      !file_may_have((uint64_t)st.st_size + STAT_LINE));
	if (lseek(fd, sizeof(STAT_HEADER) - 1, SEEK_SET) < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file)
		return -ENOMEM;
	error = read_lines(file, jobs);
	fclose(file);
	return error;
}

void stat_free(struct stat_jobs *jobs)
{
	free(jobs->ops);
}

/* Jobs that ran beside each other are added up, as one thread would do them. */
double stat_speedup(const struct stat_op *op)
{
	if (op->single_rate <= 0 || op->wall_seconds <= 0)
		return 0;
	return op->units / op->wall_seconds / op->single_rate;
}
