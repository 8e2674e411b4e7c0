/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Interrupts: see interrupt.h.
 */
#include <signal.h>
#include <stdio.h>

#include "interrupt.h"

static volatile sig_atomic_t seen;

static void note_signal(int signal)
{
	seen = signal;
}

static void catch (int signal)
{
	/* One handler run only: the second signal has its default action. */
	struct sigaction action = { .sa_handler = note_signal,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	struct sigaction former;

	/* Who started this to ignore the signal means it. */
	if (!sigaction(signal, NULL, &former) && former.sa_handler != SIG_IGN)
		sigaction(signal, &action, NULL);
}

void interrupt_catch(void)
{
	catch (SIGINT);
	catch (SIGTERM);
}

static void break_calls(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) ||
	    action.sa_handler != note_signal)
		return;
	action.sa_flags &= ~SA_RESTART;
	sigaction(signal, &action, NULL);
}

void interrupt_break_calls(void)
{
	break_calls(SIGINT);
	break_calls(SIGTERM);
}

static void restore_signal(int signal)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction now;

	if (!sigaction(signal, NULL, &now) && now.sa_handler == note_signal)
		sigaction(signal, &usual, NULL);
}

void interrupt_release(void)
{
	restore_signal(SIGINT);
	restore_signal(SIGTERM);
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
