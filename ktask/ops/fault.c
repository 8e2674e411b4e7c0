/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Handlers of SIGBUS and SIGSEGV: installed for the time of a job, chained to the
 * program's own.
 *
 * Behaves badly: the program's handler runs on the alternate stack if its thread has
 * one, even if it was installed without SA_ONSTACK.  If another thread changes a handler
 * after the program's handlers were read and before ours are installed, that change is
 * lost.
 *
 * Locking:
 *
 *	L: fault_state.lock, which is never held while a job runs
 *	P: written under L before our handlers are installed; from then on by our
 *	   handler in any thread, without L, when the program's runs for the last time
 *	   (SA_RESETHAND)
 *	T: written by one thread and by our handler in it, which may run between any two
 *	   instructions
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "fault.h"
#include "util/assertion.h"

static const int fault_signals[] = { SIGBUS, SIGSEGV };

#define NR_SIGNALS 2

/* What a thread needs to leave its chunk; all T. */
struct guard {
	sigjmp_buf leave;
	uintptr_t start;
	uintptr_t end;
	uintptr_t fault_pos;
	int error;
	sigset_t old_mask;
	unsigned resend; /* a bit per fault_signals[] */
};

static _Thread_local struct guard *volatile current_guard; /* T */

static struct {
	pthread_mutex_t lock;
	bool atfork_known; /* L */
	unsigned generation; /* L: changes in a child, whose users are gone */
	unsigned users; /* L */
	struct sigaction program[NR_SIGNALS]; /* P */
} fault_state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int signal_index(int sig)
{
	return sig == SIGBUS ? 0 : 1;
}

static int guard_error(const siginfo_t *info)
{
	if (info->si_signo == SIGSEGV)
		return info->si_code == SEGV_MAPERR ? -ENOMEM : -EFAULT;
#ifdef BUS_MCEERR_AR
	if (info->si_code == BUS_MCEERR_AR)
		return -EHWPOISON;
#endif
	return -EFAULT;
}

/*
 * Do what the kernel would have done without our handler.  A fault recurs as soon as this
 * handler returns.  So it suffices to set the default action, and the core dump shows the
 * faulting instruction.
 */
static void default_action(int sig, const siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t only;

	sigaction(sig, &action, NULL);
	if (info->si_code > 0)
		return;
	sigemptyset(&only);
	sigaddset(&only, sig);
	raise(sig);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void call_program(const struct sigaction *action, int sig,
			 siginfo_t *info, void *context)
{
	sigset_t blocked = action->sa_mask, old;

	if (!(action->sa_flags & SA_NODEFER))
		sigaddset(&blocked, sig);
	pthread_sigmask(SIG_BLOCK, &blocked, &old);
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(sig, info, context);
	else
		action->sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void chain_handler(int sig, siginfo_t *info, void *context)
{
	struct sigaction *program = &fault_state.program[signal_index(sig)];
	struct sigaction action = *program;

	if (!(action.sa_flags & SA_SIGINFO)) {
		/* SIG_IGN does not save a program from a real fault. */
		if (action.sa_handler == SIG_IGN && info->si_code <= 0)
			return;
		if (action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN) {
			default_action(sig, info);
			return;
		}
	}
	if (action.sa_flags & SA_RESETHAND) {
		program->sa_handler = SIG_DFL;
		program->sa_flags &= ~SA_SIGINFO;
	}
	call_program(&action, sig, info, context);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct guard *guard = current_guard;
	uintptr_t pos = (uintptr_t)info->si_addr;

	if (guard && info->si_code > 0 && pos >= guard->start &&
	    pos < guard->end) {
		current_guard = NULL;
		guard->fault_pos = pos;
		guard->error = guard_error(info);
		siglongjmp(guard->leave, 1);
	}
	if (guard && info->si_code <= 0 &&
	    sigismember(&guard->old_mask, sig) == 1) {
		guard->resend |= 1u << signal_index(sig);
		return;
	}
	chain_handler(sig, info, context);
}

static void install_handlers(void)
{
	/*
	 * SA_ONSTACK: a stack overflow of the program must still reach its
	 * handler.  SA_NODEFER: leaving by siglongjmp() then needs no change
	 * of the signal mask.
	 */
	struct sigaction ours = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	util_assert_held(&fault_state.lock);
	sigemptyset(&ours.sa_mask);
	/* First read, then set: ours may run at once, and reads them. */
	for (int i = 0; i < NR_SIGNALS; i++)
		sigaction(fault_signals[i], NULL, &fault_state.program[i]);
	for (int i = 0; i < NR_SIGNALS; i++)
		sigaction(fault_signals[i], &ours, NULL);
}

static void uninstall_handlers(void)
{
	struct sigaction now;

	util_assert_held(&fault_state.lock);
	for (int i = 0; i < NR_SIGNALS; i++) {
		sigaction(fault_signals[i], NULL, &now);
		/* If not, the program has installed its own handler meanwhile. */
		if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
			sigaction(fault_signals[i], &fault_state.program[i],
				  NULL);
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&fault_state.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&fault_state.lock);
}

static void after_fork_child(void)
{
	if (fault_state.users)
		uninstall_handlers();
	fault_state.users = 0;
	fault_state.generation++;
	pthread_mutex_unlock(&fault_state.lock);
}

int fault_get(unsigned *token)
{
	int error = 0;

	pthread_mutex_lock(&fault_state.lock);
	if (!fault_state.atfork_known) {
		error = -pthread_atfork(before_fork, after_fork_parent,
					after_fork_child);
		fault_state.atfork_known = !error;
	}
	if (!error) {
		if (!fault_state.users++)
			install_handlers();
		*token = fault_state.generation;
	}
	pthread_mutex_unlock(&fault_state.lock);
	return error;
}

void fault_put(unsigned token)
{
	pthread_mutex_lock(&fault_state.lock);
	util_assert(token != fault_state.generation || fault_state.users);
	if (token == fault_state.generation && !--fault_state.users)
		uninstall_handlers();
	pthread_mutex_unlock(&fault_state.lock);
}

int fault_guard(uintptr_t start, uintptr_t end, void (*touch)(void *arg),
		void *arg, uintptr_t *fault_pos)
{
	struct guard *outer = current_guard;
	struct guard guard = { .start = start, .end = end };
	sigset_t wanted;

	sigemptyset(&wanted);
	for (int i = 0; i < NR_SIGNALS; i++)
		sigaddset(&wanted, fault_signals[i]);
	sigemptyset(&guard.old_mask);
	/* Before unblocking: what is pending comes at once. */
	pthread_sigmask(SIG_BLOCK, NULL, &guard.old_mask);
	if (!sigsetjmp(guard.leave, 0)) {
		current_guard = &guard;
		pthread_sigmask(SIG_UNBLOCK, &wanted, NULL);
		touch(arg);
	}
	/* Nothing may come between: a pending signal still finds its guard. */
	current_guard = &guard;
	pthread_sigmask(SIG_SETMASK, &guard.old_mask, NULL);
	current_guard = outer;
	for (int i = 0; i < NR_SIGNALS; i++)
		if (guard.resend & 1u << i)
			raise(fault_signals[i]);
	util_assert(!guard.error ||
		    (guard.fault_pos >= start && guard.fault_pos < end));
	*fault_pos = guard.fault_pos;
	return guard.error;
}
