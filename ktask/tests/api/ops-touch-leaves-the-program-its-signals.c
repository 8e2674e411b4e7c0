/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate by touching: the program's own faults meanwhile go to its own
 * handlers, its handlers and masks are the same afterwards, and a fault of a
 * chunk ends nobody, also where the caller has the signals blocked.
 */
#include "ktest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "pages.h"

#define LEN (32 * MIB)
#define TOUCH KTASK_POPULATE_TOUCH

static sigjmp_buf back;
static volatile sig_atomic_t handled;

static void leave_by_jump(int sig, siginfo_t *info, void *context)
{
	handled = sig;
	siglongjmp(back, 1);
}

/* A fault of the program, in its own handler's care. */
static void fault_here(void)
{
	char *nowhere = mmap(NULL, page_bytes(), PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!sigsetjmp(back, 1))
		*(volatile char *)nowhere = 1;
	munmap(nowhere, page_bytes());
}

static int fault_in_progress(const struct ktask_progress *progress, void *arg)
{
	handled = 0;
	fault_here();
	*(bool *)arg |= handled != SIGSEGV;
	return 0;
}

static int touch_with_progress(char *at, size_t len,
			       ktask_progress_func progress, void *arg)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = len,
				      .flags = TOUCH };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.progress_func = progress;
	opts.progress_arg = arg;
	opts.progress_ms = 1;
	return ktask_op_run(ktask_op_find("populate"), &args, &opts);
}

static void set_handler(int sig, void (*handler)(int, siginfo_t *, void *),
			int flags, struct sigaction *old)
{
	struct sigaction action = {
		.sa_sigaction = handler,
		.sa_flags = SA_SIGINFO | flags,
	};

	sigaction(sig, &action, old);
}

static void own_faults_reach_the_own_handler(void **state)
{
	struct sigaction old, now;
	char *at = map_private(LEN);
	bool missed = false;

	set_handler(SIGSEGV, leave_by_jump, 0, &old);
	assert_int_equal(
		touch_with_progress(at, LEN, fault_in_progress, &missed), 0);
	assert_false(missed);
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
	sigaction(SIGSEGV, &old, &now);
	assert_ptr_equal(now.sa_sigaction, leave_by_jump);
	munmap(at, LEN);
}

static char *cut_file(size_t len, size_t valid)
{
	int fd = memory_file(valid);
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	return at;
}

static void handlers_are_back_after_failure(void **state)
{
	struct sigaction old_bus, old_segv, now;
	char *at = cut_file(LEN, 9 * MIB);

	set_handler(SIGBUS, leave_by_jump, SA_NODEFER, &old_bus);
	set_handler(SIGSEGV, leave_by_jump, 0, &old_segv);
	handled = 0;
	assert_int_equal(ktask_populate(at, LEN, TOUCH), -EFAULT);
	assert_int_equal(handled, 0);
	sigaction(SIGBUS, &old_bus, &now);
	assert_ptr_equal(now.sa_sigaction, leave_by_jump);
	assert_true(now.sa_flags & SA_NODEFER);
	sigaction(SIGSEGV, &old_segv, &now);
	assert_ptr_equal(now.sa_sigaction, leave_by_jump);
	munmap(at, LEN);
}

static void blocked_signals_do_not_kill(void **state)
{
	sigset_t faults, old, now;
	char *at = cut_file(LEN, 9 * MIB);

	sigemptyset(&faults);
	sigaddset(&faults, SIGBUS);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &faults, &old);
	assert_int_equal(ktask_populate(at, LEN, TOUCH), -EFAULT);
	pthread_sigmask(SIG_SETMASK, &old, &now);
	assert_int_equal(sigismember(&now, SIGBUS), 1);
	assert_int_equal(sigismember(&now, SIGSEGV), 1);
	assert_int_equal(sigismember(&now, SIGUSR1), 1);
	munmap(at, LEN);
}

/* One that was sent, not met: it waits on until it is unblocked. */
static void a_pending_signal_stays_pending(void **state)
{
	struct sigaction old_action;
	struct timespec at_once = { 0, 0 };
	sigset_t bus, old;
	char *at = map_private(LEN);

	set_handler(SIGBUS, leave_by_jump, 0, &old_action);
	handled = 0;
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &bus, &old);
	raise(SIGBUS);
	assert_int_equal(ktask_populate(at, LEN, TOUCH), 0);
	assert_int_equal(handled, 0);
	assert_int_equal(sigtimedwait(&bus, NULL, &at_once), SIGBUS);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	sigaction(SIGBUS, &old_action, NULL);
	munmap(at, LEN);
}

static int die_of_a_fault(const struct ktask_progress *progress, void *arg)
{
	*(volatile char *)arg = 1;
	return 0;
}

static int fault_without_handler(void *arg)
{
	char *nowhere = mmap(NULL, page_bytes(), PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A sanitizer has handlers of its own. */
	signal(SIGSEGV, arg ? SIG_IGN : SIG_DFL);
	touch_with_progress(map_private(LEN), LEN, die_of_a_fault, nowhere);
	return 0;
}

static void without_a_handler_faults_kill_as_ever(void **state)
{
	int status = ktest_in_child(fault_without_handler, NULL);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	/* The kernel does not let a fault be ignored either. */
	status = ktest_in_child(fault_without_handler, "ignored");
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static int send_signal(const struct ktask_progress *progress, void *arg)
{
	raise(SIGSEGV);
	return 0;
}

static int signal_ignored(void *arg)
{
	signal(SIGSEGV, SIG_IGN);
	return touch_with_progress(map_private(LEN), LEN, send_signal, NULL);
}

static int signal_default(void *arg)
{
	signal(SIGSEGV, SIG_DFL);
	return touch_with_progress(map_private(LEN), LEN, send_signal, NULL);
}

static void sent_signals_do_what_they_did(void **state)
{
	int status = ktest_in_child(signal_default, NULL);

	assert_int_equal(ktest_in_child(signal_ignored, NULL), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void *touch_again_and_again(void *arg)
{
	char *good = map_private(8 * MIB), *cut = cut_file(8 * MIB, 3 * MIB);

	for (int i = 0; i < 30; i++) {
		madvise(good, 8 * MIB, MADV_DONTNEED);
		if (ktask_populate(good, 8 * MIB, TOUCH) ||
		    ktask_populate(cut, 8 * MIB, TOUCH) != -EFAULT)
			return "wrong result";
	}
	munmap(good, 8 * MIB);
	munmap(cut, 8 * MIB);
	return NULL;
}

static void many_jobs_share_the_handlers(void **state)
{
	struct sigaction old, now;
	pthread_t threads[4];
	void *complaint;

	set_handler(SIGBUS, leave_by_jump, 0, &old);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, touch_again_and_again, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &complaint);
		assert_null(complaint);
	}
	sigaction(SIGBUS, &old, &now);
	assert_ptr_equal(now.sa_sigaction, leave_by_jump);
}

/* First those in children: TSAN allows no threads after a fork of many. */
KTEST_MAIN(KTEST(without_a_handler_faults_kill_as_ever),
	   KTEST(sent_signals_do_what_they_did),
	   KTEST(own_faults_reach_the_own_handler),
	   KTEST(handlers_are_back_after_failure),
	   KTEST(blocked_signals_do_not_kill),
	   KTEST(a_pending_signal_stays_pending),
	   KTEST(many_jobs_share_the_handlers))
