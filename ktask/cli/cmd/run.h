/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask run` share: options and environment (cmd_run.c), the library
 * that it preloads (find_shim.c), a system call filter that was set before
 * (filter_trial.c), the report (run_report.c) and the watcher of processes (run_watch.c).
 */
#ifndef KTASK_CLI_RUN_H
#define KTASK_CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ui/command_options.h"
#include "util/report_line.h"

/* ---- find_shim.c ---- */

/**
 * library_find - find the preload library
 *
 * It lies beside the command in a build tree, else in the library directory.
 *
 * Return: its path, which the caller frees; NULL after a message.
 */
char *library_find(void);

/** library_is_loaded - it is preloaded into this very process */
bool library_is_loaded(void);

/* ---- filter_trial.c ---- */

/* A filter that this process was started under. */
enum filter_verdict {
	FILTER_NONE,
	FILTER_HARMLESS, /* a job was tried behind it and lived */
	FILTER_HARMFUL,
};

/**
 * filter_judge - is there a filter, and does it let the library work?
 *
 * The trial takes a child process and some milliseconds, where there is a
 * filter; without one this is one system call.
 */
enum filter_verdict filter_judge(void);

/* ---- run_report.c: where the report goes, and the lines that the command writes
 * itself, for programs that the shim does not get into ---- */

/**
 * run_report_set - tell the shim where the report goes
 *
 * The file is opened once, to find out before the program starts that it cannot be
 * written.  A pipe without a reader is no error: it may be read later.
 *
 * Return: 0; 1 after a message.
 */
int run_report_set(const struct option_file *report);

/** run_report_target - where it goes: "1" or a path; NULL: nowhere */
const char *run_report_target(void);
bool run_report_is_stderr(void);

/** run_report_line - write @line of process @pid.  Return: 0 or -errno. */
int run_report_line(struct report_line *line, const char *name, int pid);

/** run_report_nothing - report that no call of @program is taken over, and @why */
void run_report_nothing(const char *program, const char *why);

/** run_report_failed - say on standard error that it cannot be written */
void run_report_failed(int error); /* -errno, of run_report_line() */

/** run_report_missed - say that @nr processes had no record */
void run_report_missed(uint32_t nr);

/* ---- run_watch.c: writes the lines of processes that cannot report, because a
 * signal ended them ---- */

/**
 * run_watch_begin - start a process that watches this one and those it makes
 * @command: what this process is about to become
 * @told: its line is written already
 *
 * The environment names the report's target, and this adds the path of the records.  The
 * watcher is no child of this process, and has a session of its own.  It keeps only
 * standard error open: until the program has ended, or as long as the report goes there.
 * If no watcher can be made, killed processes are missing in the report.  A limit on the
 * size of files (ulimit -f) may be the reason.
 */
void run_watch_begin(const char *command, bool told);

/** run_watch_cancel - this process could not become the program */
void run_watch_cancel(void);

#endif /* KTASK_CLI_RUN_H */
