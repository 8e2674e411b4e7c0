/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktrt-info: says what a task runtime would be like on this machine.  Starts one, asks it,
 * and ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/runtime.h>

#include "runtime/env_number.h"

static int print_usage(FILE *to, int status)
{
	fprintf(to, "usage: ktrt-info [--json] | --help | --version\n\n"
		    "Say which CPUs a task runtime would use here, and how it "
		    "would learn that\nworkers are blocked.\n");
	return status;
}

/* Runs of numbers as 0-3,8. */
static void print_cpus(const int *cpus, int nr)
{
	for (int i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && cpus[end] == cpus[end - 1] + 1;)
			end++;
		printf("%s%d", i ? "," : "", cpus[i]);
		if (end - i > 1)
			printf("-%d", cpus[end - 1]);
	}
}

static void print_text(const struct ktrt_info *info, const int *cpus)
{
	printf("workers   %u\ncpus      ", info->workers);
	print_cpus(cpus, (int)info->workers);
	printf("\nthreads   up to %u\nnodes     %u\ncaches    %u\n"
	       "monitored %s\nstalls    %llu\n",
	       info->max_threads, info->nodes, info->caches, info->backend,
	       (unsigned long long)info->stalls);
}

static void print_json(const struct ktrt_info *info, const int *cpus)
{
	printf("{\"workers\":%u,\"cpus\":[", info->workers);
	for (unsigned i = 0; i < info->workers; i++)
		printf("%s%d", i ? "," : "", cpus[i]);
	printf("],\"max_threads\":%u,\"nodes\":%u,\"caches\":%u,"
	       "\"backend\":\"%s\",\"stalls\":%llu}\n",
	       info->max_threads, info->nodes, info->caches, info->backend,
	       (unsigned long long)info->stalls);
}

/* The runtime would take it for not written. */
static int variable_is_wrong(void)
{
	const char *text = secure_getenv("KTRT_WORKERS");

	if (!text || env_is_number(text))
		return 0;
	fprintf(stderr, "ktrt-info: KTRT_WORKERS: '%s' is not a number\n",
		text);
	return 1;
}

static int show_info(int json)
{
	struct ktrt_info info = KTRT_INFO_INIT;
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	int error, *cpus;

	options.flags = KTRT_UMT_FIRST;
	error = ktrt_start(&options);
	if (error) {
		fprintf(stderr, "ktrt-info: starting a runtime: %s\n",
			strerror(-error));
		return 1;
	}
	ktrt_info_get(&info);
	cpus = calloc(info.workers, sizeof(*cpus));
	if (cpus) {
		ktrt_cpus(cpus, (int)info.workers);
		json ? print_json(&info, cpus) : print_text(&info, cpus);
	}
	free(cpus);
	ktrt_stop();
	return !cpus || fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";

	if (argc > 2)
		return print_usage(stderr, 2);
	if (!strcmp(option, "--help") || !strcmp(option, "-h"))
		return print_usage(stdout, 0);
	if (!strcmp(option, "--version") || !strcmp(option, "-V")) {
		printf("ktrt-info %s\n", ktrt_version());
		return 0;
	}
	if (*option && strcmp(option, "--json"))
		return print_usage(stderr, 2);
	if (variable_is_wrong())
		return 2;
	return show_info(*option != 0);
}
