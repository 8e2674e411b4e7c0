/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The subcommands, and what several of them do alike. */
#ifndef UMT_CMD_CMD_H
#define UMT_CMD_CMD_H

#include <stdint.h>
#include <stdio.h>

int cmd_info(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_top(int argc, char **argv);

/* A string as JSON has it, with its quotes. */
void json_string(FILE *out, const char *text);

static inline const char *plural_suffix(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

#endif /* UMT_CMD_CMD_H */
