/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that take turns: of all of them and the test exactly one runs, and
 * the test says which is next.  So chunks overlap as the test wants, and in
 * the same way each time.
 */
#ifndef UNIT_TURNS_H
#define UNIT_TURNS_H

#define TURNS_MAX 16

/* turns_start - threads that will run func(arg, index); none runs yet */
void turns_start(unsigned nr, void (*func)(void *arg, unsigned index),
		 void *arg);

/* turns_yield - in such a thread: give the turn back to the test */
void turns_yield(void);

/*
 * turns_give - let thread @index run until it yields or ends
 *
 * Return: 1, or 0 when it has ended (then or before).
 */
int turns_give(unsigned index);

/* turns_finish - join the threads; all must have ended */
void turns_finish(void);

#endif /* UNIT_TURNS_H */
