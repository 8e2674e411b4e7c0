/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Signals: see interrupt.h.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "interrupt.h"

static volatile sig_atomic_t seen;

static void note_signal(int signal)
{
	seen = signal;
}

static const int caught[] = { SIGINT, SIGTERM };

#define NR_CAUGHT (sizeof(caught) / sizeof(caught[0]))

void interrupt_catch(void)
{
	/* One handler run only: the second signal has its default action. */
	struct sigaction action = { .sa_handler = note_signal,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	struct sigaction former;

	/* Who started this to ignore the signal means it. */
	for (size_t i = 0; i < NR_CAUGHT; i++)
		if (!sigaction(caught[i], NULL, &former) &&
		    former.sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
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
		if (is_caught(caught[i], &action)) {
			action.sa_flags &= ~SA_RESTART;
			sigaction(caught[i], &action, NULL);
		}
}

void interrupt_release(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction now;

	for (size_t i = 0; i < NR_CAUGHT; i++)
		if (is_caught(caught[i], &now))
			sigaction(caught[i], &usual, NULL);
}

int interrupt_seen(void)
{
	return seen;
}

int interrupt_die(void)
{
	fflush(stdout);
	signal(seen, SIG_DFL);
	raise(seen);
	return 128 + seen;
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
