/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of devices that gain nothing from calls at once, as trials have found in this
 * process, twice in a row: the next registrations by them need no trial.
 *
 * Locking: none.  An entry is a function and how many registrations still believe it, each
 * in an atomic.  Of two threads that write the same entry one wins, which costs a trial
 * more, or a registration in order.
 *
 * Behaves badly with one function for several devices of which only some gain: after one
 * that does not, the next ones are not tried.
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
