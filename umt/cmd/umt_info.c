/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* umt info: which backend would be taken here, and why no better one. */
#include <stdbool.h>
#include <stdlib.h>

#include <umt.h>

#include "common/option.h"
#include "umt_cmd.h"
#include "report_error.h"

static const char usage_text[] =
	"usage: umt info [--json]\n\n"
	"Try every way to monitor threads, say which one is taken, and why\n"
	"the others cannot be.\n\n"
	"  --json            print one JSON object\n"
	"  --help            print this\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "json", no_argument, NULL, OPTION_LONG('j') },
	{ 0 },
};

static const char *const backend_meanings[] = {
	[UMT_BPF] = "eBPF: exact, also queued and preempted threads",
	[UMT_PERF] = "perf records: a thread is ready when it runs",
	[UMT_EXPLICIT] = "explicit calls: what threads say themselves",
};

static void print_json(const struct umt_backends *backends)
{
	int id;

	printf("{\"backend\": ");
	json_string(stdout, umt_backend_name(backends->backend));
	printf(", \"note\": ");
	json_string(stdout, backends->why[UMT_ANY]);
	for (id = UMT_BPF; id <= UMT_EXPLICIT; id++) {
		printf(", \"%s\": {\"works\": %s, \"why\": ",
		       umt_backend_name(id),
		       backends->why[id][0] ? "false" : "true");
		json_string(stdout, backends->why[id]);
		printf("}");
	}
	printf("}\n");
}

static void print_text(const struct umt_backends *backends)
{
	int id;

	printf("threads are monitored by %s%s%s\n",
	       umt_backend_name(backends->backend),
	       backends->why[UMT_ANY][0] ? ": " : "", backends->why[UMT_ANY]);
	for (id = UMT_BPF; id <= UMT_EXPLICIT; id++)
		printf("  %-10s%s%s\n", umt_backend_name(id),
		       backends->why[id][0] ? "no: " : "yes: ",
		       backends->why[id][0] ? backends->why[id]
					    : backend_meanings[id]);
}

int cmd_info(int argc, char **argv)
{
	struct umt_backends backends = { .size = sizeof(backends) };
	bool json = false;
	int status = -1;

	while (next_option(argc, argv, ":h", long_options, usage_text, &status))
		json = true;
	if (status >= 0)
		return status;
	if (optind < argc)
		return say_usage("info: unexpected argument '%s'",
				 argv[optind]);
	umt_info(&backends);
	if (json)
		print_json(&backends);
	else
		print_text(&backends);
	return 0;
}
