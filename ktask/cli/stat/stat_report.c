/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What `ktask stat` says: the command as a whole, then its jobs by operation.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cli/ui/size.h"
#include "stat.h"
#include "cli/ui/text.h"
#include "util/shown_text.h"

static const char *describe_ending(const struct stat_command *command,
				   char buf[64])
{
	if (WIFSIGNALED(command->status))
		snprintf(buf, 64, "ended by signal %d",
			 WTERMSIG(command->status));
	else
		snprintf(buf, 64, "ended with status %d",
			 WEXITSTATUS(command->status));
	return buf;
}

static void print_command(FILE *out, const struct stat_command *command)
{
	char buf[64], name[PATH_MAX];

	snprintf(name, sizeof(name), "%s", command->argv[0]);
	text_show(name);
	fprintf(out,
		"\n%s %s after %.3f s, with %.3f s of CPU (%.3f user, %.3f system)\n",
		name, describe_ending(command, buf), command->wall_seconds,
		command->user_seconds + command->system_seconds,
		command->user_seconds, command->system_seconds);
}

static void print_amount(FILE *out, const struct stat_op *op)
{
	double rate = op->wall_seconds > 0 ? op->units / op->wall_seconds : 0;
	char size[SIZE_TEXT];

	if (op->bytes)
		fprintf(out, " %10s %9.2f GB/s", size_text(size, op->units),
			rate / 1e9);
	else
		fprintf(out, " %10.3g %9.3g /s  ", (double)op->units, rate);
}

static void print_op(FILE *out, const struct stat_op *op)
{
	double speedup = stat_speedup(op);

	fprintf(out, "%-15s %6llu", op->name, (unsigned long long)op->jobs);
	print_amount(out, op);
	fprintf(out, " %8.3f %8.3f %8.3f %5.1f %5llu", op->wall_seconds,
		op->caller_seconds, op->helper_seconds,
		(double)op->threads / op->jobs, (unsigned long long)op->lent);
	if (speedup > 0)
		fprintf(out, " %6.2fx", speedup);
	else
		fprintf(out, " %7s", "?");
	if (op->failed)
		fprintf(out, "  %llu failed", (unsigned long long)op->failed);
	fputc('\n', out);
}

static void print_notes(FILE *out, const struct stat_jobs *jobs)
{
	bool unknown = false;

	for (unsigned i = 0; i < jobs->nr_ops; i++)
		unknown |= stat_speedup(&jobs->ops[i]) <= 0;
	if (unknown)
		fprintf(out,
			"? what one thread does is not known: see 'ktask tune'\n");
	if (jobs->nr_bad)
		fprintf(out, "%u lines were not understood\n", jobs->nr_bad);
	if (jobs->full)
		fprintf(out, "there were more jobs than could be kept\n");
}

void stat_print(FILE *out, const struct stat_command *command,
		const struct stat_jobs *jobs)
{
	print_command(out, command);
	if (!jobs->nr_jobs) {
		fprintf(out, "no job was large enough to be split\n");
		print_notes(out, jobs);
		return;
	}
	fprintf(out, "\n%-15s %6s %10s %14s %8s %8s %8s %5s %5s %7s\n", "job",
		"count", "amount", "rate", "wall s", "caller s", "helper s",
		"thr", "lent", "speedup");
	for (unsigned i = 0; i < jobs->nr_ops; i++)
		print_op(out, &jobs->ops[i]);
	print_notes(out, jobs);
}

static json_t *number_or_null(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

static json_t *op_json(const struct stat_op *op)
{
	return json_pack(
		"{s:s s:I s:I s:I s:s s:I s:f s:f s:f s:f s:i s:I s:o s:o}",
		"operation", op->name, "count", (json_int_t)op->jobs, "failed",
		(json_int_t)op->failed, "units", (json_int_t)op->units, "unit",
		op->bytes ? "bytes" : "units", "chunks", (json_int_t)op->chunks,
		"wall_seconds", op->wall_seconds, "caller_cpu_seconds",
		op->caller_seconds, "helper_cpu_seconds", op->helper_seconds,
		"threads_mean", (double)op->threads / op->jobs, "threads_most",
		op->threads_most, "helpers_lent", (json_int_t)op->lent,
		"single_units_per_s", number_or_null(op->single_rate),
		"speedup", number_or_null(stat_speedup(op)));
}

static json_t *argv_json(char **argv)
{
	json_t *array = json_array();

	for (; *argv; argv++)
		json_array_append_new(array, text_json(*argv));
	return array;
}

json_t *stat_json(const struct stat_command *command,
		  const struct stat_jobs *jobs)
{
	bool killed = WIFSIGNALED(command->status);
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < jobs->nr_ops; i++)
		json_array_append_new(array, op_json(&jobs->ops[i]));
	return json_pack(
		"{s:o s:o s:o s:f s:f s:f s:o s:i s:b}", "command",
		argv_json(command->argv), "exit_status",
		killed ? json_null()
		       : json_integer(WEXITSTATUS(command->status)),
		"signal",
		killed ? json_integer(WTERMSIG(command->status)) : json_null(),
		"wall_seconds", command->wall_seconds, "user_seconds",
		command->user_seconds, "system_seconds",
		command->system_seconds, "jobs", array, "not_understood",
		jobs->nr_bad, "more_than_kept", jobs->full);
}
