/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * umt record: runs a command and writes what each thread did and which thread each core
 * ran.  The output is trace events in JSON, which Perfetto and Chrome show.  It is written
 * while the command runs.
 *
 * Behaves badly: the file grows by some hundred bytes for each switch.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/option.h"
#include "umt_cmd.h"
#include "report_error.h"
#include "watch.h"

static const char usage_text[] =
	"usage: umt record [options] [--] COMMAND [ARGUMENT...]\n\n"
	"Run COMMAND and write a trace of when each of its threads ran, "
	"waited\n"
	"for a CPU and was blocked, and why, and of what each core ran.  Open\n"
	"it with ui.perfetto.dev or chrome://tracing.\n\n"
	"  -o, --output FILE write to FILE (default: umt.json)\n"
	"  --help            print this\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "output", required_argument, NULL, OPTION_LONG('o') },
	{ 0 },
};

struct record {
	FILE *out;
	int error; /* of the first write that failed; none is made after it */
	struct watch watch;
};

/* After a failed write a later one may succeed, if somebody makes room.  The file would
 * look complete and lack what is between. */
static void note_error(struct record *record)
{
	if (!record->error && ferror(record->out))
		record->error = errno ? errno : EIO;
}

static void name_of(const struct record *record, const struct thread *thread,
		    char *name, size_t size)
{
	const char *known = account_name(&record->watch.account, thread);

	if (*known)
		snprintf(name, size, "%s", known);
	else
		snprintf(name, size, "%u", thread->tid);
}

static void stretch_begin(struct record *record, const char *name,
			  const struct thread *thread, uint64_t end)
{
	const struct account *account = &record->watch.account;

	fprintf(record->out, ",\n{\"ph\":\"X\",\"name\":");
	json_string(record->out, name);
	fprintf(record->out, ",\"ts\":%.3f,\"dur\":%.3f",
		(double)(thread->since_ns - account->start_ns) / 1e3,
		(double)(end - thread->since_ns) / 1e3);
}

/* Cores are the threads of process 0. */
static void on_core(struct record *record, const struct thread *thread,
		    uint64_t end)
{
	char name[24];

	name_of(record, thread, name, sizeof(name));
	stretch_begin(record, name, thread, end);
	fprintf(record->out, ",\"pid\":0,\"tid\":%d,\"args\":{\"tid\":%u}}",
		thread->cpu, thread->tid);
}

static void write_stretch(void *arg, const struct thread *thread, uint64_t end)
{
	struct record *record = arg;
	char name[40];

	if (record->error)
		return;
	if (thread->state == BLOCKED)
		snprintf(name, sizeof(name), "blocked: %s",
			 umt_reason_name(thread->reason));
	else
		snprintf(name, sizeof(name), "%s", state_name(thread->state));
	stretch_begin(record, name, thread, end);
	fprintf(record->out, ",\"pid\":%u,\"tid\":%u,\"args\":{\"cpu\":%d}}",
		thread->pid, thread->tid, thread->cpu);
	if (thread->state == RUNNING)
		on_core(record, thread, end);
	note_error(record);
}

static void print_name(struct record *record, const char *what, unsigned pid,
		       unsigned tid, const char *name)
{
	fprintf(record->out,
		",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		"\"args\":{\"name\":",
		what, pid, tid);
	json_string(record->out, name);
	fprintf(record->out, "}}");
}

static void print_names(struct record *record)
{
	const struct account *account = &record->watch.account;
	char name[24];
	unsigned i;
	int cpu;

	for (cpu = 0; cpu < account->nr_cpus; cpu++) {
		snprintf(name, sizeof(name), "core %d", cpu);
		print_name(record, "thread_name", 0, (unsigned)cpu, name);
	}
	for (i = 0; i < account->nr_threads; i++) {
		const struct thread *thread = &account->threads[i];

		name_of(record, thread, name, sizeof(name));
		print_name(record, "thread_name", thread->pid, thread->tid,
			   name);
		if (thread->tid == thread->pid)
			print_name(record, "process_name", thread->pid,
				   thread->tid, name);
	}
}

/* A file that has this end is complete. */
static void print_end(struct record *record)
{
	if (!record->error)
		print_names(record);
	note_error(record);
	if (!record->error)
		fprintf(record->out, "\n],\"lostEvents\":%" PRIu64 "}\n",
			record->watch.lost);
	if (fclose(record->out) && !record->error)
		record->error = errno;
}

static int record_command(char **argv, const char *name)
{
	struct record record = { .out = fopen(name, "we") };
	int status;

	if (!record.out)
		return say_error(errno, "record: opening %s", name);
	record.watch.account.stretch = write_stretch;
	record.watch.account.arg = &record;
	fprintf(record.out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
			    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,"
			    "\"tid\":0,\"args\":{\"name\":\"cores\"}}");
	status = watch_command(&record.watch, argv);
	print_end(&record);
	account_end(&record.watch.account);
	if (record.error)
		return say_error(record.error,
				 "record: the trace is not whole: writing %s",
				 name);
	if (!status && record.watch.lost)
		say_fail("record: %" PRIu64 " events were lost",
			 record.watch.lost);
	return status ? status : record.watch.status;
}

int cmd_record(int argc, char **argv)
{
	const char *output = "umt.json";
	int status = -1;

	while (next_option(argc, argv, "+:ho:", long_options, usage_text,
			   &status))
		output = optarg;
	if (status >= 0)
		return status;
	if (optind == argc)
		return say_usage("record: a command is missing");
	return record_command(argv + optind, output);
}
