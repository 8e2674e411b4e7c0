/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the commands say of options that getopt_long(3) refuses, where its option
 * string has ':' in front.
 */
#ifndef COMMON_OPTION_H
#define COMMON_OPTION_H

#include <getopt.h>
#include <stdio.h>

/* What a long option returns, so that it is told from the short one: of several
 * letters behind one dash getopt has not left the argument yet. */
#define OPTION_LONG(letter) ((letter) + 256)

static inline int option_letter(int option)
{
	return option & 255;
}

/* @option: '?' or ':' */
static inline void option_refused(char *text, size_t size, char **argv,
				  int option)
{
	const char *why = option == ':' ? "needs a value" : "takes no value";
	const char *given = argv[optind - 1];

	if (!optopt)
		snprintf(text, size, "unknown option '%s'", given);
	else if (optopt > 255)
		snprintf(text, size, "option '%s' %s", given, why);
	else if (option == ':')
		snprintf(text, size, "option '-%c' %s", optopt, why);
	else
		snprintf(text, size, "unknown option '-%c'", optopt);
}

#endif /* COMMON_OPTION_H */
