/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd: makes memory ahead of processes that touch it in order, from outside.
 *
 * One thread polls and decides (served_processes.c, remote_mapping.c); helpers of the
 * library make the pages (remote_window.c), by way of /dev/ktask (remote_process.c).
 *
 * Whatever a process does, the daemon only makes memory of that process, charged to
 * it and within the bounds, at the lowest priority.  Nothing outlives the daemon.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common/option.h"
#include "daemon/process_choice.h"
#include "daemon/remote_mapping.h"
#include "daemon/remote_window.h"
#include "daemon/served_processes.h"
#include "util/clock.h"

/* The watcher rests so many times as long as it worked: a fifth of a CPU at most. */
#define REST_TIMES 4

static const char usage_text[] =
	"usage: ktaskd [--verbose] --all | --cgroup GROUP... --name NAME...\n\n"
	"Make memory of running programs ahead of their touch.\n\n"
	"  -a, --all           serve every process\n"
	"  -g, --cgroup GROUP  serve processes of that control group and below\n"
	"  -n, --name NAME     serve processes of that name\n"
	"  -v, --verbose       say what was made when a process ends\n"
	"  -h, --help          print this\n"
	"  -V, --version       print the version\n";

static const struct option long_options[] = {
	{ "all", no_argument, NULL, OPTION_LONG('a') },
	{ "cgroup", required_argument, NULL, OPTION_LONG('g') },
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "name", required_argument, NULL, OPTION_LONG('n') },
	{ "verbose", no_argument, NULL, OPTION_LONG('v') },
	{ "version", no_argument, NULL, OPTION_LONG('V') },
	{ 0 },
};

static volatile sig_atomic_t is_ending;

static void note_end(int signal)
{
	(void)signal;
	is_ending = 1;
}

/* Delivered only while the watcher waits. */
static void block_ends(sigset_t *waiting)
{
	struct sigaction action = { .sa_handler = note_end };
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, waiting);
	sigdelset(waiting, SIGTERM);
	sigdelset(waiting, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};
}

/* Until @due_ns, or until a window is made. */
static void wait_until(uint64_t due_ns, const sigset_t *waiting)
{
	struct pollfd event = { .fd = remote_window_events(),
				.events = POLLIN };
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct timespec wait =
		as_timespec(due_ns > now_ns ? due_ns - now_ns : 0);

	if (ppoll(&event, 1, &wait, waiting) > 0)
		remote_window_clear_events();
}

static void serve_all(void)
{
	sigset_t waiting;

	block_ends(&waiting);
	while (!is_ending) {
		uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t due_ns = served_processes_serve(began_ns);
		struct timespec rest = as_timespec(
			REST_TIMES * (clock_ns(CLOCK_MONOTONIC) - began_ns));

		nanosleep(&rest, NULL);
		wait_until(due_ns, &waiting);
	}
	served_processes_end();
}

/* Each process takes two descriptors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int report_why(const char *what, const char *why)
{
	fprintf(stderr, "ktaskd: %s: %s\n", what, why);
	return 1;
}

static int run_daemon(void)
{
	const char *why = remote_init();
	int error;

	if (why)
		return report_why("using /dev/ktask", why);
	if (!remote_mapping_init_pages())
		return report_why("reading page sizes",
				  "some between 4 KiB and 2 MiB are enabled");
	error = remote_window_init();
	if (error)
		return report_why("beginning with helpers", strerror(error));
	raise_limit();
	serve_all();
	return 0;
}

static int refuse_option(char **argv, int option)
{
	char text[256];

	option_refused(text, sizeof(text), argv, option);
	fprintf(stderr, "ktaskd: %s\n", text);
	return 2;
}

static int refuse_value(int option, const char *value, int error)
{
	fprintf(stderr, "ktaskd: option '-%c': '%s': %s\n", option, value,
		strerror(error));
	return 2;
}

int main(int argc, char **argv)
{
	int option, error = 0;

	while ((option = getopt_long(argc, argv, ":ag:hn:vV", long_options,
				     NULL)) != -1) {
		switch (option_letter(option)) {
		case 'a':
			choice_add_all();
			break;
		case 'g':
			error = choice_add_group(optarg);
			break;
		case 'n':
			error = choice_add_name(optarg);
			break;
		case 'v':
			served_is_verbose = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			printf("ktaskd %s\n", KTASK_VERSION);
			return 0;
		default:
			return refuse_option(argv, option);
		}
		if (error)
			return refuse_value(option_letter(option), optarg,
					    error);
	}
	if (optind < argc || choice_is_empty()) {
		fprintf(stderr,
			optind < argc ? "ktaskd: unexpected argument '%s'\n"
				      : "ktaskd: whom to serve? --all, "
					"--cgroup or --name\n",
			argv[optind]);
		return 2;
	}
	return run_daemon();
}
