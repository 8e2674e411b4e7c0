/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Messages: see report_error.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/option.h"
#include "report_error.h"

static void print_message(const char *format, va_list args, const char *end)
{
	fflush(stdout);
	fputs("umt: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, "%s\n", end);
}

int say_error(int error, const char *format, ...)
{
	char why[200] = "";
	va_list args;

	if (error)
		snprintf(why, sizeof(why), ": %s", strerror(error));
	va_start(args, format);
	print_message(format, args, why);
	va_end(args);
	return 1;
}

int say_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(format, args, " (see 'umt --help')");
	va_end(args);
	return 2;
}

int say_option(char **argv, int option)
{
	char text[256];

	option_refused(text, sizeof(text), argv, option);
	return say_usage("%s", text);
}
