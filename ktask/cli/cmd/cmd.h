/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The subcommands, one file each.  Every function gets its own name as
 * argv[0] and returns the exit status: 0, 1 for a failure, 2 for wrong usage;
 * or OPTIONS_HELPED.  The table of them is in main.c.
 */
#ifndef KTASK_CLI_CMD_H
#define KTASK_CLI_CMD_H

/* Where a program cannot be started, as env(1) has them. */
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

int cmd_bench(int argc, char **argv);
int cmd_populate(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_warm(int argc, char **argv);

#endif /* KTASK_CLI_CMD_H */
