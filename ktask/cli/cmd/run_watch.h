/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The watcher of `ktask run --report`: writes the lines of processes that cannot
 * report, because a signal ended them.
 */
#ifndef CLI_RUN_WATCH_H
#define CLI_RUN_WATCH_H

#include <stdbool.h>

/**
 * run_watch_begin - start a process that watches this one and those it makes
 * @command: what this process is about to become
 * @told: its line is written already
 *
 * The report's target is in the environment; the records' place is put there.
 * The watcher is nobody's child that asks for children, and in a session of its
 * own.  It holds nothing open but standard error, until the program has ended, or
 * where the report goes there.  Where it cannot be had, there is none: the report
 * is the poorer for it.
 */
void run_watch_begin(const char *command, bool told);

/** run_watch_cancel - this process became nothing after all */
void run_watch_cancel(void);

#endif /* CLI_RUN_WATCH_H */
