/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Signals: see interrupt.h.
 *
 * Locking: none.  The handler sets seen_signal; the command has one thread that reads it.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "interrupt.h"

static volatile sig_atomic_t seen_signal;

static void note_signal(int signal)
{
	seen_signal = signal;
}

static const int caught_signals[] = { SIGINT, SIGTERM };

#define NR_CAUGHT (sizeof(caught_signals) / sizeof(caught_signals[0]))

void interrupt_catch(void)
{
	/* One handler run only: the second signal has its default action. */
	struct sigaction action = { .sa_handler = note_signal,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	struct sigaction former;

	/* Keep a signal ignored if this was started so. */
	for (size_t i = 0; i < NR_CAUGHT; i++)
		if (!sigaction(caught_signals[i], NULL, &former) &&
		    former.sa_handler != SIG_IGN)
			sigaction(caught_signals[i], &action, NULL);
}

static bool is_caught(int signal, struct sigaction *action)
{
	return !sigaction(signal, NULL, action) &&
	       action->sa_handler == note_signal;
}

void interrupt_break_calls(void)
{
	struct sigaction action;

	for (size_t i = 0; i < NR_CAUGHT; i++)
		if (is_caught(caught_signals[i], &action)) {
			action.sa_flags &= ~SA_RESTART;
			sigaction(caught_signals[i], &action, NULL);
		}
}

void interrupt_release(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction now;

	for (size_t i = 0; i < NR_CAUGHT; i++)
		if (is_caught(caught_signals[i], &now))
			sigaction(caught_signals[i], &usual, NULL);
}

int interrupt_seen(void)
{
	return seen_signal;
}

int interrupt_die(void)
{
	fflush(stdout);
	signal(seen_signal, SIG_DFL);
	raise(seen_signal);
	return 128 + seen_signal;
}

static struct sigaction former_of_children;

void children_heed(void)
{
	struct sigaction heeded = { .sa_handler = SIG_DFL };

	sigaction(SIGCHLD, &heeded, &former_of_children);
}

void children_as_before(void)
{
	sigaction(SIGCHLD, &former_of_children, NULL);
}
