/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report that `ktask run --report` asks the shim for: where it goes, and
 * the lines that the command itself has to write, for programs that the shim
 * does not get into.
 */
#ifndef CLI_RUN_REPORT_H
#define CLI_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ui/command_options.h"
#include "util/report_line.h"

/**
 * run_report_set - tell the shim where the report goes
 *
 * A file is opened once, so that one that cannot be written is told before the
 * program starts.  A pipe that nobody reads yet may be read later.
 *
 * Return: 0; 1 after a message.
 */
int run_report_set(const struct option_file *report);

/** run_report_target - where it goes: "1" or a path; NULL: nowhere */
const char *run_report_target(void);
bool run_report_is_stderr(void);

/** run_report_line - write @line of process @pid.  Return: 0 or -errno. */
int run_report_line(struct report_line *line, const char *name, int pid);

/** run_report_nothing - say that nothing is taken over of @program, and @why */
void run_report_nothing(const char *program, const char *why);

/** run_report_failed - say on standard error that it cannot be written */
void run_report_failed(int error); /* -errno, of run_report_line() */

/** run_report_missed - say that @nr processes had no record */
void run_report_missed(uint32_t nr);

#endif /* CLI_RUN_REPORT_H */
