/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SIGINT and SIGTERM during long work: the first is remembered, so that the
 * work can end cleanly; the second ends the process at once.
 */
#ifndef KTASK_CLI_INTERRUPT_H
#define KTASK_CLI_INTERRUPT_H

void interrupt_catch(void);

/** interrupt_break_calls - one that is caught ends system calls with EINTR */
void interrupt_break_calls(void);

/** interrupt_release - the next one ends the process at once, as before */
void interrupt_release(void);

/** interrupt_seen - the signal that came, or 0 */
int interrupt_seen(void);

/** interrupt_die - end by that signal, so that the parent learns of it */
int interrupt_die(void);

/*
 * Children that end.  The program that started this one may ignore SIGCHLD; then the
 * kernel keeps no status to wait for.
 *
 * children_heed - from now on children can be waited for; once, at the start
 * children_as_before - restore SIGCHLD before this process executes another program
 */
void children_heed(void);
void children_as_before(void);

#endif /* KTASK_CLI_INTERRUPT_H */
