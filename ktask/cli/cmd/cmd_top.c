/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask top: the jobs that run on this machine now, of everybody.
 *
 * On a terminal it redraws until somebody presses q; elsewhere it prints as
 * often as it was asked to, once by default.  Needs no right.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cmd.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "cli/ui/screen.h"
#include "cli/top/top.h"

#define MAX_SECONDS 3600

static const char usage_text[] =
	"usage: ktask top [options]\n\n"
	"Show the jobs that run on this machine: process, user, operation,\n"
	"progress, rate, time left, helpers.  On a terminal it is drawn anew\n"
	"until q or an interrupt ends it.  The first line has the permits: how many\n"
	"helpers work for this user, of how many the machine allows.\n\n"
	"  --interval S      seconds between refreshes, as 0.5 (default: 1)\n"
	"  --count N         end after N refreshes (default: on a terminal never,\n"
	"                    elsewhere after one)\n"
	"  --json            read once and print one JSON object\n"
	"  --help            print this\n";

struct settings {
	bool json;
	unsigned interval_ms;
	unsigned count; /* 0: default */
};

static const char *take_interval(const char *text, void *to)
{
	char *end;
	double seconds = strtod(text, &end);

	/* Also refuses what is no number at all. */
	if (end == text || *end || !(seconds >= 0.01) || seconds > MAX_SECONDS)
		return "not a number of seconds from 0.01 to 3600";
	*(unsigned *)to = (unsigned)(seconds * 1000);
	return NULL;
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "count", required_argument, option_count, &set->count },
		{ "interval", required_argument, take_interval,
		  &set->interval_ms },
		{ "json", no_argument, option_flag, &set->json },
		{ 0 },
	};
	int status = options_parse("top", usage_text, specs, true, argc, argv);

	return status ? status : options_end("top", argc, argv);
}

static int print_json(hwloc_topology_t topology)
{
	struct top top;
	int status = 1;

	if (top_read(&top, topology, NULL))
		say_error(ENOMEM, "top: reading the jobs");
	else
		status = json_write(top_json(&top), NULL);
	top_free(&top);
	return status;
}

static void draw_jobs(const struct top *top, bool screen)
{
	unsigned rows, columns;

	if (!screen) {
		top_print(stdout, top, 0, 0, "\n");
		fflush(stdout);
		return;
	}
	screen_size(STDOUT_FILENO, &rows, &columns);
	screen_home();
	/* A line end on the last row would scroll. */
	if (rows > 1)
		top_print(stdout, top, rows - 1, columns, SCREEN_EOL);
	else
		top_print(stdout, top, 1, columns, "");
	screen_done();
}

/* Wait for the next refresh.  Return: false when there shall be none. */
static bool wait_for_next(const struct settings *set, bool screen)
{
	struct timespec time = { set->interval_ms / 1000,
				 set->interval_ms % 1000 * 1000000l };
	int key;

	if (interrupt_seen())
		return false;
	if (!screen) {
		nanosleep(&time, NULL);
		putchar('\n');
		return !interrupt_seen();
	}
	key = screen_key(set->interval_ms);
	return !interrupt_seen() && key != 'q' && key != 'Q';
}

static int poll_jobs(const struct settings *set, hwloc_topology_t topology,
		     bool screen)
{
	unsigned last = set->count ? set->count : screen ? 0 : 1, nr = 0;
	struct top before = { 0 }, top;

	do {
		if (top_read(&top, topology, &before)) {
			top_free(&top);
			top_free(&before);
			return -ENOMEM;
		}
		draw_jobs(&top, screen);
		top_free(&before);
		before = top;
	} while (!ferror(stdout) && ++nr != last && wait_for_next(set, screen));
	top_free(&before);
	return 0;
}

static int show_jobs(const struct settings *set, hwloc_topology_t topology)
{
	bool screen = screen_possible(STDOUT_FILENO);
	int error;

	interrupt_catch();
	if (screen)
		screen_begin();
	error = poll_jobs(set, topology, screen);
	if (screen)
		screen_end();
	if (error)
		return say_error(-error, "top: reading the jobs");
	/* On a terminal that is how one leaves. */
	if (interrupt_seen() && !(screen && interrupt_seen() == SIGINT))
		return interrupt_die();
	return 0;
}

int cmd_top(int argc, char **argv)
{
	struct settings set = { .interval_ms = 1000 };
	hwloc_topology_t topology;
	int error;
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	error = machine_topology(&topology);
	if (error)
		return say_error(-error, "top: reading the topology");
	status = set.json ? print_json(topology) : show_jobs(&set, topology);
	hwloc_topology_destroy(topology);
	return status;
}
