/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options: see options.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "plot.h"
#include "say.h"
#include "size.h"

/* Behind the characters, so that optopt tells a long option from a short. */
#define FIRST_LONG 256

#define STRING(number) #number
#define STRING_OF(number) STRING(number)

const char *option_flag(const char *text, void *to)
{
	*(bool *)to = true;
	return NULL;
}

const char *option_text(const char *text, void *to)
{
	*(const char **)to = text;
	return NULL;
}

const char *option_file(const char *text, void *to)
{
	*(struct option_file *)to = (struct option_file){ true, text };
	return NULL;
}

const char *option_size(const char *text, void *to)
{
	int error = size_parse(text, to);

	return error ? size_why(error) : NULL;
}

const char *option_count(const char *text, void *to)
{
	if (!count_parse(text, to))
		return NULL;
	return "not a number from 1 to " STRING_OF(MAX_THREADS);
}

const char *option_plot(const char *text, void *to)
{
	if (!plot_suffix_ok(text))
		return "the name must end in .svg or .png";
	return option_text(text, to);
}

static int take(const char *command, const struct option_spec *spec)
{
	const char *wrong = spec->take(optarg, spec->to);

	if (!wrong)
		return 0;
	return say_usage(command, "--%s '%s': %s", spec->name,
			 optarg ? optarg : "", wrong);
}

/* For getopt_long(3), whose table has no place for the rest. */
static void make_table(const struct option_spec *specs,
		       struct option table[OPTIONS_MAX + 1], int *help)
{
	unsigned i;

	memset(table, 0, (OPTIONS_MAX + 1) * sizeof(*table));
	for (i = 0; i < OPTIONS_MAX && specs[i].name; i++) {
		table[i].name = specs[i].name;
		table[i].has_arg = specs[i].value;
		table[i].val = FIRST_LONG + (int)i;
		if (!strcmp(specs[i].name, "help"))
			*help = (int)i;
	}
}

int options_parse(const char *command, const struct option_spec *specs,
		  bool mixed, int argc, char **argv)
{
	struct option table[OPTIONS_MAX + 1];
	int option, status, help = 0;

	make_table(specs, table, &help);
	opterr = 0;
	while ((option = getopt_long(argc, argv, mixed ? ":h" : "+:h", table,
				     NULL)) != -1) {
		if (option == '?' || option == ':')
			return say_option(command, argv, option);
		if (option == 'h')
			option = FIRST_LONG + help;
		status = take(command, &specs[option - FIRST_LONG]);
		if (status)
			return status;
	}
	return 0;
}
