/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

enum {
	KEY_BUFFERED = 256,
	KEY_BEHIND,
	KEY_NO_UMT,
	KEY_EVENTS,
	KEY_SEQUENTIAL,
	KEY_JSON
};

static const struct argp_option argp_options[] = {
	{ "dir", 'd', "DIR", 0, "put files into DIR (.)", 0 },
	{ "every", 'n', "STEPS", 0,
	  "write to the disk every STEPS steps (0: never)", 0 },
	{ "workers", 'w', "N", 0, "cores to use (all that ktask may)", 0 },
	{ "buffered", KEY_BUFFERED, NULL, 0,
	  "write through the page cache, not directly", 0 },
	{ "behind", KEY_BEHIND, NULL, 0,
	  "write copies, so that the next step need not wait for the disk", 0 },
	{ "no-umt", KEY_NO_UMT, NULL, 0,
	  "leave a core idle whose worker blocks", 0 },
	{ "events", KEY_EVENTS, NULL, 0,
	  "receive by external events, not by tasks that block", 0 },
	{ "sequential", KEY_SEQUENTIAL, NULL, 0,
	  "one thread, no runtime, no file", 0 },
	{ "verify", 'v', NULL, 0,
	  "compare every result with the sequential program's", 0 },
	{ "json", KEY_JSON, NULL, 0, "say what it cost as JSON", 0 },
	{ 0 },
};

unsigned app_number(struct argp_state *state, const char *name,
		    const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least ||
	    value > most)
		argp_error(state, "--%s: '%s' is not a number from %u to %u",
			   name, text, least, most);
	return (unsigned)value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct app_options *options = state->input;

	switch (key) {
	case 'd':
		options->dir = text;
		return 0;
	case 'n':
		options->every = app_number(state, "every", text, 0, 1u << 30);
		return 0;
	case 'w':
		options->workers = app_number(state, "workers", text, 1, 4096);
		return 0;
	case 'v':
		options->verify = true;
		return 0;
	case KEY_BUFFERED:
		options->buffered = true;
		return 0;
	case KEY_BEHIND:
		options->behind = true;
		return 0;
	case KEY_NO_UMT:
		options->no_umt = true;
		return 0;
	case KEY_EVENTS:
		options->events = true;
		return 0;
	case KEY_SEQUENTIAL:
		options->sequential = true;
		return 0;
	case KEY_JSON:
		options->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp_child app_argp_children[] = {
	{ &(const struct argp){ .options = argp_options,
				.parser = parse_option },
	  0, NULL, 0 },
	{ 0 },
};

int app_fail(int error, const char *format, ...)
{
	va_list args;

	/* One write, so that the lines of ranks and tasks do not mix. */
	char line[512];
	int len = snprintf(line, sizeof(line),
			   "%.64s: ", program_invocation_short_name);

	va_start(args, format);
	len += vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", line, strerror(error < 0 ? -error : error));
	return error;
}

/* With more tasks at a time the thread that makes them would run some, like an additional
 * worker, and keep a core busy even without UMT. */
#define TASKS_AHEAD 32768

int app_start(const struct app_options *options)
{
	struct ktrt_options start = KTRT_OPTIONS_INIT;
	int error;

	start.workers = options->workers;
	start.max_children = TASKS_AHEAD;
	/* The applications measure UMT, so wait for it. */
	start.flags = KTRT_UMT_FIRST;
	if (options->no_umt)
		start.flags |= KTRT_NO_UMT;
	error = ktrt_start(&start);
	if (error)
		app_fail(error, "starting the runtime");
	return error;
}

int app_spawn(ktrt_func func, const void *arg, size_t arg_bytes,
	      const struct ktrt_dep *deps, size_t nr_deps, int priority)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr_deps;
	attr.arg_bytes = arg_bytes;
	attr.priority = priority;
	return ktrt_spawn_attr(func, (void *)arg, &attr);
}
