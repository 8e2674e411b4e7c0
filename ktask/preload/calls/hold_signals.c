/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Holds signals back while several threads do a call.
 *
 * The plain calls are not interrupted: a handler runs after they have returned, and
 * may leave by siglongjmp().  So signals that have a handler are held back here as
 * well.  Signals that end the process end it at once, as they end the plain call.
 * Faults, and the signals that libc uses itself, are left alone.
 *
 * Costs a system call per signal, 4 us together, which large calls do not notice.
 */
#include <pthread.h>
#include <signal.h>

#include "preload/shim.h"

_Static_assert(sizeof(sigset_t) <= sizeof(struct shim_quiet),
	       "struct shim_quiet holds a signal mask");

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
	       sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS;
}

/* sigaction() refuses KILL, STOP and those that libc uses itself. */
bool shim_has_handler(int sig)
{
	struct sigaction action;

	return !sigaction(sig, NULL, &action) &&
	       (action.sa_flags & SA_SIGINFO ||
		(action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN));
}

void shim_quiet_begin(struct shim_quiet *quiet)
{
	sigset_t handled;

	sigemptyset(&handled);
	for (int sig = 1; sig < NSIG; sig++)
		if (!is_fault(sig) && shim_has_handler(sig))
			sigaddset(&handled, sig);
	pthread_sigmask(SIG_BLOCK, &handled, (sigset_t *)quiet);
}

void shim_quiet_end(const struct shim_quiet *quiet)
{
	pthread_sigmask(SIG_SETMASK, (const sigset_t *)quiet, NULL);
}
