/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages of the commands about options that getopt_long(3) refuses.  Their option
 * strings begin with ':'.
 */
#ifndef COMMON_OPTION_H
#define COMMON_OPTION_H

#include <getopt.h>
#include <stdio.h>

/* A long option returns this, to distinguish it from the short one: after one of several
 * short options in an argument, optind has not advanced yet. */
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
