/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The subcommands, and what several of them do alike. */
#ifndef UMT_CMD_CMD_H
#define UMT_CMD_CMD_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

int cmd_info(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_top(int argc, char **argv);

/*
 * next_option - the letter of the next option; 0: there is none
 * @letters: begin with ':', after any '+'; 'h' prints @usage
 * @status: -1 before the first call; set to the exit status if the command has to end
 */
int next_option(int argc, char **argv, const char *letters,
		const struct option *options, const char *usage, int *status);

/* A string as JSON has it, with its quotes. */
void json_string(FILE *out, const char *text);

static inline const char *plural_suffix(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

#endif /* UMT_CMD_CMD_H */
