/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options: see command_options.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command_options.h"
#include "cli/bench/plot.h"
#include "message.h"
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

/* For getopt_long(3), whose table has no place for the rest. */
static void make_table(const struct option_spec *specs,
		       struct option table[OPTIONS_MAX + 1])
{
	unsigned i;

	memset(table, 0, (OPTIONS_MAX + 1) * sizeof(*table));
	for (i = 0; i < OPTIONS_MAX && specs[i].name; i++) {
		table[i].name = specs[i].name;
		table[i].has_arg = specs[i].value;
		table[i].val = FIRST_LONG + (int)i;
	}
}

/* The options that have a short name, which is their first letter. */
static const char *const short_options[] = { "help", "output" };

#define NR_SHORT (sizeof(short_options) / sizeof(short_options[0]))

static bool has_letter(const struct option_spec *spec)
{
	for (size_t i = 0; i < NR_SHORT; i++)
		if (!strcmp(spec->name, short_options[i]))
			return true;
	return false;
}

/* For getopt_long(3), as its table. */
static void make_letters(const struct option_spec *specs, bool mixed,
			 char letters[2 * NR_SHORT + 3])
{
	char *at = stpcpy(letters, mixed ? ":" : "+:");

	for (; specs->name; specs++) {
		if (!has_letter(specs))
			continue;
		*at++ = specs->name[0];
		if (specs->value == required_argument)
			*at++ = ':';
	}
	*at = '\0';
}

static const struct option_spec *find_spec(const struct option_spec *specs,
					   int option)
{
	if (option >= FIRST_LONG)
		return &specs[option - FIRST_LONG];
	while (!has_letter(specs) || specs->name[0] != option)
		specs++;
	return specs;
}

int options_parse(const char *command, const struct option_spec *specs,
		  bool mixed, int argc, char **argv)
{
	struct option table[OPTIONS_MAX + 1];
	char letters[2 * NR_SHORT + 3];
	int option, status;

	make_table(specs, table);
	make_letters(specs, mixed, letters);
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		if (option == '?' || option == ':')
			return say_option(command, argv, option);
		status = take_option(command, find_spec(specs, option));
		if (status)
			return status;
	}
	return 0;
}
