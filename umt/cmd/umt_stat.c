/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * umt stat: runs a command and prints what its threads did with their time, and how much
 * core time it lost by blocking.  UMT could gain at most that.
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
	"usage: umt stat [options] [--] COMMAND [ARGUMENT...]\n\n"
	"Run COMMAND and tell how long its threads ran, waited for a CPU and\n"
	"were blocked, and which share of the cores' time was left unused "
	"while\n"
	"threads were blocked in work.\n\n"
	"  --json            print one JSON object\n"
	"  -o, --output FILE write the report to FILE (default: standard\n"
	"                    error)\n"
	"  --help            print this\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "json", no_argument, NULL, OPTION_LONG('j') },
	{ "output", required_argument, NULL, OPTION_LONG('o') },
	{ 0 },
};

struct sums {
	uint64_t ns[NR_STATES], reason_ns[UMT_NR_REASONS];
	uint64_t nr_blocks, nr_preempts;
	double elapsed_s, lost_share;
};

static struct sums sum_up(const struct account *account)
{
	struct sums sums = { 0 };
	double core_ns;
	unsigned i;
	int k;

	for (i = 0; i < account->nr_threads; i++) {
		const struct thread *thread = &account->threads[i];

		for (k = 0; k < NR_STATES; k++)
			sums.ns[k] += thread->ns[k];
		for (k = 0; k < UMT_NR_REASONS; k++)
			sums.reason_ns[k] += thread->reason_ns[k];
		sums.nr_blocks += thread->nr_blocks;
		sums.nr_preempts += thread->nr_preempts;
	}
	sums.elapsed_s = (double)(account->now_ns - account->start_ns) / 1e9;
	core_ns = sums.elapsed_s * 1e9 * account->nr_cores;
	if (core_ns > 0)
		sums.lost_share = (double)account->lost_core_ns / core_ns;
	return sums;
}

static double ns_to_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void print_text(FILE *out, const struct watch *watch)
{
	const struct account *account = &watch->account;
	struct sums sums = sum_up(account);
	int k;

	fprintf(out,
		"\n%.3f s on %d core%s, %u thread%s, %" PRIu64 " block%s, "
		"%" PRIu64 " preemption%s\n",
		sums.elapsed_s, account->nr_cores,
		plural_suffix((uint64_t)account->nr_cores), account->nr_threads,
		plural_suffix(account->nr_threads), sums.nr_blocks,
		plural_suffix(sums.nr_blocks), sums.nr_preempts,
		plural_suffix(sums.nr_preempts));
	for (k = RUNNING; k <= BLOCKED; k++)
		fprintf(out, "  %-10s %10.3f thread seconds\n",
			state_name((enum state)k), ns_to_seconds(sums.ns[k]));
	for (k = 0; k < UMT_NR_REASONS; k++)
		if (sums.reason_ns[k])
			fprintf(out, "    %-10s %8.3f\n", umt_reason_name(k),
				ns_to_seconds(sums.reason_ns[k]));
	fprintf(out,
		"lost to blocking: %.1f %% of the cores' time "
		"(%.3f core seconds)\n",
		100 * sums.lost_share, ns_to_seconds(account->lost_core_ns));
	if (watch->lost)
		fprintf(out,
			"%" PRIu64 " events were lost: times are too "
			"rough to trust\n",
			watch->lost);
}

static void print_json(FILE *out, const struct watch *watch)
{
	const struct account *account = &watch->account;
	struct sums sums = sum_up(account);
	int k;

	fprintf(out,
		"{\"elapsed_s\": %.6f, \"cores\": %d, \"threads\": %u, "
		"\"blocks\": %" PRIu64 ", \"preemptions\": %" PRIu64,
		sums.elapsed_s, account->nr_cores, account->nr_threads,
		sums.nr_blocks, sums.nr_preempts);
	for (k = RUNNING; k <= BLOCKED; k++)
		fprintf(out, ", \"%s_s\": %.6f", state_name((enum state)k),
			ns_to_seconds(sums.ns[k]));
	fprintf(out, ", \"blocked_by_s\": {");
	for (k = 0; k < UMT_NR_REASONS; k++)
		fprintf(out, "%s\"%s\": %.6f", k ? ", " : "",
			umt_reason_name(k), ns_to_seconds(sums.reason_ns[k]));
	fprintf(out,
		"}, \"lost_core_s\": %.6f, \"lost_share\": %.6f, "
		"\"lost_events\": %" PRIu64 ", \"exit_status\": %d}\n",
		ns_to_seconds(account->lost_core_ns), sums.lost_share,
		watch->lost, watch->status);
}

/* Before the command runs: a wrong name must not cost its work. */
static int open_output(FILE **out, const char *name)
{
	*out = name ? fopen(name, "we") : stderr;
	return *out ? 0 : say_error(errno, "stat: opening %s", name);
}

static int stat_command(char **argv, int json, const char *name)
{
	struct watch watch = { 0 };
	FILE *out;
	int status = open_output(&out, name);

	if (status)
		return status;
	status = watch_command(&watch, argv);
	if (!status) {
		(json ? print_json : print_text)(out, &watch);
		status = watch.status;
	}
	if (name && fclose(out))
		status = say_error(errno, "stat: writing %s", name);
	account_end(&watch.account);
	return status;
}

int cmd_stat(int argc, char **argv)
{
	const char *output = NULL;
	int json = 0, option, status = -1;

	while ((option = next_option(argc, argv, "+:ho:", long_options,
				     usage_text, &status))) {
		if (option == 'o')
			output = optarg;
		else
			json = 1;
	}
	if (status >= 0)
		return status;
	if (optind == argc)
		return say_usage("stat: a command is missing");
	return stat_command(argv + optind, json, output);
}
