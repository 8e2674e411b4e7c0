/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options of a subcommand: a table that says how each is called, what its
 * value may be and where it goes.  Owns the walk over the arguments and the
 * complaints; what the options mean is the subcommand's.
 */
#ifndef KTASK_CLI_COMMAND_OPTIONS_H
#define KTASK_CLI_COMMAND_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

/**
 * option_take - put the value of an option where it belongs
 * @text: the value; NULL where an optional one is missing
 *
 * Return: NULL, or what is wrong with it.
 */
typedef const char *(*option_take)(const char *text, void *to);

/** One option; a table of them ends with an empty one. */
struct option_spec {
	const char *name; /* without its dashes */
	int value; /* no_argument, required_argument, optional_argument */
	option_take take;
	void *to;
};

#define OPTIONS_MAX 16

/**
 * options_parse - the options of @command; -h and -o are short for --help
 *	and --output
 * @usage: what --help prints, which every command has
 * @mixed: options may also follow operands; false: the first operand ends them
 *
 * Return: 0, and optind is the first operand; OPTIONS_HELPED; or 2 after a message.
 */
int options_parse(const char *command, const char *usage,
		  const struct option_spec *specs, bool mixed, int argc,
		  char **argv);

/* Help was asked for, and printed: the command has nothing else to do. */
#define OPTIONS_HELPED -1

/** options_end - 0 where no operand is left; 2 after a message */
int options_end(const char *command, int argc, char **argv);

/** A value that may be missing: --report or --report=FILE. */
struct option_file {
	bool given;
	const char *path; /* NULL: none was named */
};

const char *option_flag(const char *text, void *to); /* bool */
const char *option_text(const char *text, void *to); /* const char * */
const char *option_path(const char *text, void *to); /* const char *, not "" */
const char *option_file(const char *text, void *to); /* struct option_file */
const char *option_size(const char *text, void *to); /* uint64_t */
const char *option_count(const char *text, void *to); /* unsigned */
const char *option_plot(const char *text, void *to); /* const char * */

#endif /* KTASK_CLI_COMMAND_OPTIONS_H */
