// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_ktask: loads the scheduler, and keeps it while it runs.
 *
 * Does not schedule: scx_ktask.bpf.c does.  Wakes once a second to check whether the kernel
 * has removed the scheduler.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <bpf/libbpf.h>

#include "common/option.h"
#include "scx/caches.h"
#include "scx/scheduler.h"
#include "util/file.h"

#define STATE "/sys/kernel/sched_ext/state"
#define NAME "/sys/kernel/sched_ext/root/ops"

static const char usage_text[] =
	"usage: scx_ktask [--dry-run] [--verbose]\n\n"
	"Schedule all ordinary tasks by the queues of caches, until interrupted.\n\n"
	"  -n, --dry-run  say which CPUs share a cache, and load nothing\n"
	"  -v, --verbose  say at the end how often tasks were sent and stolen;\n"
	"                 if loading fails, say why in the kernel's words\n"
	"  -h, --help     print this\n"
	"  -V, --version  print the version\n";

static const struct option long_options[] = {
	{ "dry-run", no_argument, NULL, OPTION_LONG('n') },
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "verbose", no_argument, NULL, OPTION_LONG('v') },
	{ "version", no_argument, NULL, OPTION_LONG('V') },
	{ 0 },
};

static struct caches found_caches;

static int say_error(const char *doing, const char *why)
{
	fprintf(stderr, "scx_ktask: %s: %s\n", doing, why);
	return 1;
}

static int read_caches(void)
{
	int nr_cpus = libbpf_num_possible_cpus();

	if (nr_cpus < 0)
		return say_error("counting CPUs", strerror(-nr_cpus));
	if (caches_read(&found_caches, (unsigned)nr_cpus))
		return say_error("reading caches",
				 "more than 1024 CPUs or 256 caches");
	return 0;
}

static void print_caches(void)
{
	for (unsigned cache = 0; cache < found_caches.nr; cache++) {
		printf("cache %u: CPUs", cache);
		for (unsigned i = found_caches.first[cache];
		     i < found_caches.first[cache + 1]; i++)
			printf(" %u", found_caches.cpus[i]);
		printf("\n");
	}
}

static void print_counts(void)
{
#define PRINT_COUNT(name, text) \
	printf("%12" PRIu64 " %s\n", scheduler_count(SCX_##name), text);
	SCX_COUNTS(PRINT_COUNT)
#undef PRINT_COUNT
}

/* What is clear before anything is tried. */
static const char *find_obstacle(void)
{
	static char why[FILE_LINE];
	char state[64], name[64];

	if (file_text(STATE, state, sizeof(state)) < 0)
		return "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 7)";
	if (!scheduler_fits_kernel())
		return "this kernel is too old: Linux 7 is needed";
	if (!strncmp(state, "disabled", 8))
		return NULL;
	if (file_text(NAME, name, sizeof(name)) < 0)
		strcpy(name, "another");
	snprintf(why, sizeof(why), "there is a scheduler already: %.*s",
		 (int)strcspn(name, "\n"), name);
	return why;
}

static void wait_for_end(const sigset_t *ends)
{
	static const struct timespec second = { .tv_sec = 1 };

	while (sigtimedwait(ends, NULL, &second) < 0 && !scheduler_ended())
		;
}

static int report_end(void)
{
	const char *reason, *message;

	if (!scheduler_ended())
		return 0;
	if (!scheduler_failed(&reason, &message))
		return 0;
	fprintf(stderr,
		"scx_ktask: the kernel took the scheduler away: %s: %s\n",
		reason, message);
	return 1;
}

static int run_scheduler(bool is_verbose)
{
	const char *doing = "loading the scheduler", *why = find_obstacle();
	sigset_t ends;
	int error;

	if (why)
		return say_error(doing, why);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	error = scheduler_load(&found_caches, is_verbose, &doing);
	if (error)
		return say_error(doing, strerror(-error));
	printf("scx_ktask: scheduling %u CPU%s by %u cache%s\n",
	       found_caches.nr_cpus, found_caches.nr_cpus == 1 ? "" : "s",
	       found_caches.nr, found_caches.nr == 1 ? "" : "s");
	fflush(stdout);
	wait_for_end(&ends);
	if (is_verbose)
		print_counts();
	error = report_end();
	scheduler_unload();
	return error;
}

static int refuse_usage(const char *why)
{
	fprintf(stderr, "scx_ktask: %s (see 'scx_ktask --help')\n", why);
	return 2;
}

int main(int argc, char **argv)
{
	bool is_verbose = false, is_dry = false;
	char text[256];
	int option;

	while ((option = getopt_long(argc, argv, ":hnvV", long_options,
				     NULL)) != -1) {
		switch (option_letter(option)) {
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'n':
			is_dry = true;
			break;
		case 'v':
			is_verbose = true;
			break;
		case 'V':
			puts("scx_ktask " KTASK_VERSION);
			return 0;
		default:
			option_refused(text, sizeof(text), argv, option);
			return refuse_usage(text);
		}
	}
	if (optind < argc) {
		snprintf(text, sizeof(text), "unexpected argument '%s'",
			 argv[optind]);
		return refuse_usage(text);
	}
	if (read_caches())
		return 1;
	if (!is_dry)
		return run_scheduler(is_verbose);
	print_caches();
	return 0;
}
