/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages: see message.h.  Errors only; results go to standard output from where
 * they arise.  Names of files in them are whoever's made the files.
 */
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "util/shown_text.h"

/* Nothing that a terminal would obey. */
static void print_message(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	text_show(text);
	fputs(text, stderr);
	free(text);
}

int say_error(int error, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("ktask: ", stderr);
	va_start(args, format);
	print_message(format, args);
	va_end(args);
	fprintf(stderr, "%s%s\n", error ? ": " : "",
		error ? strerror(error) : "");
	return 1;
}

int say_usage(const char *command, const char *format, ...)
{
	bool own_help = command && strcmp(command, "help");
	va_list args;

	fprintf(stderr, "ktask: %s%s", command ? command : "",
		command ? ": " : "");
	va_start(args, format);
	print_message(format, args);
	va_end(args);
	fprintf(stderr, " (see 'ktask help%s%s')\n", own_help ? " " : "",
		own_help ? command : "");
	return 2;
}

int say_option(const char *command, char **argv, int option)
{
	if (option == ':')
		return say_usage(command, "option '%s' needs a value",
				 argv[optind - 1]);
	if (!optopt)
		return say_usage(command, "unknown or ambiguous option '%s'",
				 argv[optind - 1]);
	/* A long option that takes no value got one: optopt is its number, which
	 * is no character's. */
	if (optopt > UCHAR_MAX)
		return say_usage(command, "option '%s' takes no value",
				 argv[optind - 1]);
	return say_usage(command, "unknown option '-%c'", optopt);
}
