/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Signals for the process are never handled on a helper, jobs go on under a
 * storm of them, and only faults are open in helpers.
 */
#include "support/work.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>

#define STORM_MS 600

static const int faults[] = {
	SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS
};

static uint32_t nr_handled, nr_on_helper, stop;

static void count_signal(int signal)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name, 0, 0, 0);
	__atomic_add_fetch(&nr_handled, 1, __ATOMIC_RELAXED);
	if (!strcmp(name, "ktask"))
		__atomic_add_fetch(&nr_on_helper, 1, __ATOMIC_RELAXED);
}

/* Ends system calls early: no SA_RESTART. */
static void handle_all(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGRTMIN + 3, &action, NULL);
}

static void *send_signals(void *caller)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		kill(getpid(), SIGUSR1);
		kill(getpid(), SIGRTMIN + 3);
		if (caller)
			pthread_kill(*(pthread_t *)caller, SIGUSR1);
		nap_us(200);
	}
	return NULL;
}

static void start_storm(pthread_t *sender, pthread_t *caller)
{
	struct itimerval ms = { { 0, 1000 }, { 0, 1000 } };

	nr_handled = nr_on_helper = stop = 0;
	handle_all();
	setitimer(ITIMER_REAL, &ms, NULL);
	assert_int_equal(pthread_create(sender, NULL, send_signals, caller), 0);
}

static void end_storm(pthread_t sender)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
	set_flag(&stop);
	pthread_join(sender, NULL);
}

static int work_or_sleep(struct work *work, size_t from, size_t to)
{
	if (from % 3)
		burn_us(50);
	else
		nap_us(50);
	return 0;
}

static int one_started(struct work *work)
{
	struct ktask_ctl ctl = work_ctl(work, 1);
	struct ktask_job *job;
	int error = ktask_start(&job, WORK_BASE, work->nr_units, &ctl);

	return error ? error : ktask_wait(job);
}

/* For longer if no helper came until then and one @must. */
static void run_jobs(unsigned *nr_helper_chunks, bool must)
{
	uint64_t end_ns = ktest_now_ns() + STORM_MS * 1000000ull;
	uint64_t last_ns = ktest_now_ns() + (must ? HANG_NS / 2 : 0);

	for (int i = 0; ktest_now_ns() < end_ns ||
			(!*nr_helper_chunks && ktest_now_ns() < last_ns);
	     i++) {
		struct work work = { .also = work_or_sleep };
		int error;

		work_begin(&work, 100);
		error = i % 2 ? work_run(&work) : one_started(&work);
		assert_int_equal(error, 0);
		assert_true(work_done_once(&work));
		*nr_helper_chunks += work.nr_helper_chunks;
		work_end(&work);
		if (i % 50 == 0)
			ktask_trim();
	}
}

static void jobs_continue_in_a_storm(void **state)
{
	pthread_t self = pthread_self(), sender;
	unsigned nr_helper_chunks = 0;

	start_storm(&sender, &self);
	run_jobs(&nr_helper_chunks, may_help());
	end_storm(sender);
	assert_true(nr_handled > 0);
	assert_int_equal(nr_on_helper, 0);
	need_sure_helper();
	assert_true(nr_helper_chunks > 0);
}

/* No thread of the program takes them: a helper that could, would. */
static void blocked_signals_wait_for_the_program(void **state)
{
	unsigned nr_helper_chunks = 0;
	sigset_t set, old;
	pthread_t sender;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGRTMIN + 3);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	start_storm(&sender, NULL);
	run_jobs(&nr_helper_chunks, false);
	end_storm(sender);
	assert_int_equal(nr_handled, 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* The thread sanitizer delivers when it sees fit, or not at all. */
	assert_true(nr_handled > 0 || KTEST_TSAN);
	assert_int_equal(nr_on_helper, 0);
}

static bool is_fault(int signal)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(faults); i++)
		if (faults[i] == signal)
			return true;
	return false;
}

/* 32 and 33 are the C library's own; two cannot be blocked. */
static void check_mask(unsigned long long blocked)
{
	for (int signal = 1; signal <= 64; signal++) {
		if (signal == 32 || signal == 33 || signal == SIGKILL ||
		    signal == SIGSTOP)
			continue;
		if (is_fault(signal) == (blocked >> (signal - 1) & 1))
			fail_msg("signal %d in mask %llx", signal, blocked);
	}
}

static void helpers_block_all_but_faults(void **state)
{
	pid_t tids[16];
	unsigned nr;

	need_sure_helper();
	assert_int_equal(work_met(), 0);
	nr = helpers_now(tids, 16);
	assert_true(nr > 0);
	for (unsigned i = 0; i < nr && i < 16; i++) {
		char mask[32];

		assert_true(
			status_field(tids[i], "SigBlk", mask, sizeof(mask)));
		check_mask(strtoull(mask, NULL, 16));
	}
}

/* The C library tells all threads by a signal of its own. */
static int change_user(void *arg)
{
	pid_t tids[16];
	unsigned nr;

	ktest_check(!work_met());
	ktest_check(!setresuid(65530, 65530, 65530));
	nr = helpers_now(tids, 16);
	ktest_check(nr > 0);
	for (unsigned i = 0; i < nr && i < 16; i++) {
		char uids[64];

		ktest_check(status_field(tids[i], "Uid", uids, sizeof(uids)));
		ktest_check(!strcmp(uids, "65530\t65530\t65530\t65530"));
	}
	return 0;
}

static void helpers_follow_the_process_to_another_user(void **state)
{
	if (geteuid())
		ktest_skip("only root can change the user");
	need_sure_helper();
	assert_int_equal(ktest_in_child(change_user, NULL), 0);
}

KTEST_MAIN(KTEST(jobs_continue_in_a_storm),
	   KTEST(blocked_signals_wait_for_the_program),
	   KTEST(helpers_block_all_but_faults),
	   KTEST(helpers_follow_the_process_to_another_user))
