/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of devices for which two trials in a row found that calls at once gain nothing.
 * The next registrations by such a function need no trial.  Kept for this process.
 *
 * Locking: none.  An entry has two atomics: the function, and how many registrations still
 * rely on it.  If two threads write one entry, one of them is lost.  That costs an extra
 * trial, or one registration in order that could have been parallel.
 *
 * Behaves badly if one function serves several devices and only some of them gain: after
 * one that does not, the others are not tried.
 */
#ifndef OPS_CALLS_HISTORY_H
#define OPS_CALLS_HISTORY_H

#include <stdbool.h>

#include <ktask/register.h>

/** calls_history_note - a trial of @func found that calls at once gain something, or not */
void calls_history_note(ktask_register_func func, bool gain);

/** calls_history_believes - whether the last trials of @func agree that nothing is gained,
 * and that was not believed too often since */
bool calls_history_believes(ktask_register_func func);

#endif /* OPS_CALLS_HISTORY_H */
