/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report that `ktask run --report` asks the shim for: where it goes, and
 * the lines that the command itself has to write, for programs that the shim
 * does not get into.
 */
#ifndef CLI_RUN_REPORT_H
#define CLI_RUN_REPORT_H

#include "command_options.h"

/**
 * run_report_set - tell the shim where the report goes
 *
 * A file is opened once, so that one that cannot be written is told before the
 * program starts.  A pipe that nobody reads yet may be read later.
 *
 * Return: 0; 1 after a message.
 */
int run_report_set(const struct option_file *report);

/** run_report_nothing - say that nothing is taken over of @program, and @why */
void run_report_nothing(const char *program, const char *why);

#endif /* CLI_RUN_REPORT_H */
