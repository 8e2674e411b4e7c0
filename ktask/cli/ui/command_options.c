/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options: see command_options.h.
 */
#include <stdio.h>
#include <string.h>

#include "command_options.h"
#include "cli/bench/plot.h"
#include "message.h"
#include "size.h"

/* Behind the characters, so that optopt tells a long option from a short. */
#define FIRST_LONG 256
#define LONG_HELP (FIRST_LONG + OPTIONS_MAX)

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

const char *option_path(const char *text, void *to)
{
	if (!*text)
		return "the name of a file is missing";
	return option_text(text, to);
}

const char *option_file(const char *text, void *to)
{
	if (text && !*text)
		return "the name of a file is missing";
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

static int take_option(const char *command, const struct option_spec *spec)
{
	const char *wrong = spec->take(optarg, spec->to);

	if (!wrong)
		return 0;
	return say_usage(command, "--%s '%s': %s", spec->name,
			 optarg ? optarg : "", wrong);
}

/* For getopt_long(3), whose table has no place for the rest.  "help" comes first. */
static void make_table(const struct option_spec *specs,
		       struct option table[OPTIONS_MAX + 2])
{
	memset(table, 0, (OPTIONS_MAX + 2) * sizeof(*table));
	table[0] = (struct option){ .name = "help", .val = LONG_HELP };
	for (unsigned i = 0; i < OPTIONS_MAX && specs[i].name; i++)
		table[i + 1] = (struct option){ .name = specs[i].name,
						.has_arg = specs[i].value,
						.val = FIRST_LONG + (int)i };
}

static const struct option_spec *find_output(const struct option_spec *specs)
{
	while (specs->name && strcmp(specs->name, "output"))
		specs++;
	return specs->name ? specs : NULL;
}

/* For getopt_long(3), as its table. */
static const char *choose_letters(const struct option_spec *specs, bool mixed)
{
	if (find_output(specs))
		return mixed ? ":ho:" : "+:ho:";
	return mixed ? ":h" : "+:h";
}

int options_parse(const char *command, const char *usage,
		  const struct option_spec *specs, bool mixed, int argc,
		  char **argv)
{
	const char *letters = choose_letters(specs, mixed);
	struct option table[OPTIONS_MAX + 2];
	bool help = false;
	int option, status;

	make_table(specs, table);
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		if (option == '?' || option == ':')
			return say_option(command, argv, option);
		if (option == 'h' || option == LONG_HELP) {
			help = true;
			continue;
		}
		status = take_option(
			command, option == 'o' ? find_output(specs)
					       : &specs[option - FIRST_LONG]);
		if (status)
			return status;
	}
	if (!help)
		return 0;
	fputs(usage, stdout);
	return OPTIONS_HELPED;
}

int options_end(const char *command, int argc, char **argv)
{
	if (optind == argc)
		return 0;
	return say_usage(command, "unexpected argument '%s'", argv[optind]);
}
