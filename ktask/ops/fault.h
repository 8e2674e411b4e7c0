/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Recovery from faults while memory is touched.
 *
 * Between fault_get() and fault_put() this owns the process's handlers of SIGBUS and
 * SIGSEGV.  A fault outside fault_guard() goes to the handlers that the program had.  If
 * the program installs its own handler during that time, the handler stays, and it gets
 * the faults of running chunks.
 */
#ifndef OPS_FAULT_H
#define OPS_FAULT_H

#include <stdint.h>

/**
 * fault_get - install the handlers, or count one more user of them
 * @token: to be handed to fault_put()
 *
 * Context: takes a lock that is never held across a job; safe over fork().
 *
 * Return: 0 or -errno, with nothing installed.
 */
int fault_get(unsigned *token);

/** fault_put - the last user brings the program's handlers back */
void fault_put(unsigned token);

/**
 * fault_guard - call a function that may fault inside [start, end)
 * @touch: gets @arg; must hold nothing that a jump out of it would lose
 * @fault_pos: set to the address of the fault
 *
 * SIGBUS and SIGSEGV are unblocked meanwhile: the kernel kills a process that faults
 * while the signal is blocked.  A signal that was sent to this thread while it was
 * blocked stays pending.
 *
 * Return: 0; -EFAULT; -ENOMEM where nothing is mapped; -EHWPOISON.
 */
int fault_guard(uintptr_t start, uintptr_t end, void (*touch)(void *arg),
		void *arg, uintptr_t *fault_pos);

#endif /* OPS_FAULT_H */
