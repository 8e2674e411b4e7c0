/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * After fork() the child has working operations, its handlers and its locks,
 * also if another thread was in the middle of a job, or the forking one.
 */
#include "ktest.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "pages.h"

#define LEN (16 * MIB)
#define TOUCH KTASK_POPULATE_TOUCH

/* TSAN ends a child that starts threads after a fork of many. */
#define need_threads_after_fork()                                     \
	do {                                                          \
		if (KTEST_TSAN)                                       \
			ktest_skip("TSAN has no threads after fork"); \
	} while (0)

/* Others have handlers too: cmocka, the sanitizers. */
static void (*handlers[2])(int);

static void (*handler_of(int sig))(int)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	return now.sa_handler;
}

static bool as_before(void)
{
	return handler_of(SIGBUS) == handlers[0] &&
	       handler_of(SIGSEGV) == handlers[1];
}

static void note_handlers(void)
{
	handlers[0] = handler_of(SIGBUS);
	handlers[1] = handler_of(SIGSEGV);
}

static int use_everything(void *arg)
{
	char *at = map_private(LEN);
	struct ktask_result result = KTASK_RESULT_INIT;

	ktest_check(ktask_populate(at, LEN, 0) == 0);
	ktest_check(ktask_discard(at, LEN, 0) == 0);
	ktest_check(ktask_populate(at, LEN, TOUCH) == 0);
	ktest_check(ktask_fill(at, LEN, "ab", 2, 0) == 0);
	ktest_check(at[LEN - 1] == 'b');
	munmap(at + 2 * MIB, page_bytes());
	ktest_check(run_op("populate", at, LEN, TOUCH, &result) == -ENOMEM);
	ktest_check(result.fail_offset == 2 * MIB);
	ktest_check(as_before());
	return 0;
}

static void after_a_job_of_the_parent(void **state)
{
	need_threads_after_fork();
	note_handlers();
	assert_int_equal(use_everything(NULL), 0);
	assert_int_equal(ktest_in_child(use_everything, NULL), 0);
}

struct toucher {
	_Atomic bool stop;
	_Atomic unsigned rounds;
};

static void *touch_until_told(void *arg)
{
	struct toucher *toucher = arg;
	char *at = map_private(LEN);

	while (!atomic_load(&toucher->stop)) {
		madvise(at, LEN, MADV_DONTNEED);
		ktask_populate(at, LEN, TOUCH);
		atomic_fetch_add(&toucher->rounds, 1);
	}
	munmap(at, LEN);
	return NULL;
}

static void while_another_thread_is_in_a_job(void **state)
{
	struct toucher toucher = { 0 };
	pthread_t thread;

	need_threads_after_fork();
	note_handlers();
	pthread_create(&thread, NULL, touch_until_told, &toucher);
	while (!atomic_load(&toucher.rounds))
		usleep(100);
	for (int i = 0; i < 8; i++)
		assert_int_equal(ktest_in_child(use_everything, NULL), 0);
	atomic_store(&toucher.stop, true);
	pthread_join(thread, NULL);
}

static int fork_here(const struct ktask_progress *progress, void *arg)
{
	pid_t *child = arg;

	if (*child < 0)
		*child = fork();
	return 0;
}

/* The child is told that its job is cancelled; the parent's goes on. */
static void from_the_middle_of_a_job(void **state)
{
	char *at = map_private(4 * LEN);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = 4 * LEN,
				      .flags = TOUCH };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	pid_t child = -1;
	int error, status;

	need_threads_after_fork();
	note_handlers();
	opts.progress_func = fork_here;
	opts.progress_arg = &child;
	opts.progress_ms = 1;
	error = ktask_op_run(ktask_op_find("populate"), &args, &opts);
	if (child == 0)
		_exit(error == -ECANCELED ? use_everything(NULL) : 2);
	assert_true(child > 0);
	assert_int_equal(error, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(as_before());
	munmap(at, 4 * LEN);
}

KTEST_MAIN(KTEST(after_a_job_of_the_parent),
	   KTEST(while_another_thread_is_in_a_job),
	   KTEST(from_the_middle_of_a_job))
