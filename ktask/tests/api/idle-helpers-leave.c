/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers end after KTASK_IDLE_MS without a job, and at ktask_trim() at once;
 * the next job has helpers again.
 *
 * The library reads its environment once: each case is a process of its own.
 */
#include "support/work.h"

#include <sched.h>
#include <sys/syscall.h>

#define MANY_CPUS 10
#include "support/many_cpus.h"

/* The cap of 10 CPUs. */
#define NR_HELPERS 8
/* Helpers end after this long by default. */
#define DEFAULT_NS 5000000000ull
/* A case is repeated for this long: helpers may get a CPU late each time. */
#define REPEAT_NS (HANG_NS / 5)
/* Of a child in which all may take its time. */
#define CHILD_SECONDS (4 * HANG_SECONDS)

static void *store_tid(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	return NULL;
}

static bool wait_for_no_thread(pid_t tid)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;

	while (!syscall(SYS_tgkill, getpid(), tid, 0) &&
	       ktest_now_ns() < end_ns)
		nap_us(500);
	return syscall(SYS_tgkill, getpid(), tid, 0) < 0;
}

/* Sanitizers make a thread of their own with a program's first. */
static unsigned threads_before(void)
{
	pthread_t thread;
	pid_t tid;

	ktest_check(!pthread_create(&thread, NULL, store_tid, &tid));
	ktest_check(!pthread_join(thread, NULL));
	/* It can be joined before the kernel counts it no longer. */
	ktest_check(wait_for_no_thread(tid));
	return threads_now();
}

static unsigned all_helpers_now(void)
{
	return helpers_now(NULL, 0);
}

static bool wait_for_number(unsigned (*now)(void), unsigned nr)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;

	while (now() != nr) {
		if (ktest_now_ns() >= end_ns)
			return false;
		nap_us(500);
	}
	return true;
}

/* One that has not run yet has no name yet. */
static bool wait_for_threads(unsigned nr)
{
	return wait_for_number(threads_now, nr);
}

static bool wait_for_helpers(unsigned nr)
{
	return wait_for_number(all_helpers_now, nr);
}

/* At least once. */
static bool may_repeat(int done, int times, uint64_t since_ns)
{
	return !done || (done < times && ktest_now_ns() - since_ns < REPEAT_NS);
}

static int status_of(int (*func)(void *arg), void *arg)
{
	return ktest_in_child_for(func, arg, CHILD_SECONDS);
}

static int let_pool_shrink(void *idle_ms)
{
	unsigned before = threads_before();
	uint64_t since_ns = ktest_now_ns();

	setenv("KTASK_IDLE_MS", idle_ms, 1);
	for (int i = 0; may_repeat(i, 5, since_ns); i++) {
		ktest_check(!work_met());
		ktest_check(wait_for_threads(before));
		ktest_check(!helpers_now(NULL, 0));
	}
	return 0;
}

static void idle_helpers_end(void **state)
{
	need_sure_helper();
	assert_int_equal(status_of(let_pool_shrink, "1"), 0);
	assert_int_equal(status_of(let_pool_shrink, "30"), 0);
}

struct holder {
	uint32_t began, may_end;
	uint32_t was_helped; /* a helper had a chunk */
	bool was_held; /* the caller had a chunk */
	pthread_t thread;
	int error;
};

/* The caller's chunk, until told; a helper does the rest and idles. */
static int hold_caller(struct work *work, size_t from, size_t to)
{
	struct holder *holder = work->arg;

	if (work_is_helper(work)) {
		set_flag(&holder->was_helped);
		return 0;
	}
	holder->was_held = true;
	set_flag(&holder->began);
	return wait_for_flag(&holder->may_end) ? 0 : -ETIME;
}

static void *hold_a_job(void *arg)
{
	struct holder *holder = arg;
	struct work work = { .also = hold_caller, .arg = holder };
	struct ktask_ctl ctl = work_ctl(&work, 50);

	work_begin(&work, 100);
	holder->error = ktask_run(WORK_BASE, 100, &ctl);
	work_end(&work);
	/* Helpers may have done all of it before the caller got a chunk. */
	set_flag(&holder->began);
	return NULL;
}

/* Return: whether the job was held, and had a helper: another may just be leaving,
 * and be seen as well. */
static bool stayed_meanwhile(void)
{
	struct holder holder = { 0 };
	bool there;

	ktest_check(!work_met());
	ktest_check(!pthread_create(&holder.thread, NULL, hold_a_job, &holder));
	ktest_check(wait_for_flag(&holder.began));
	there = holder.was_held && wait_for_flag_us(&holder.was_helped, 300000);
	if (there) {
		nap_us(300000);
		ktest_check(helpers_now(NULL, 0) > 0);
	}
	set_flag(&holder.may_end);
	ktest_check(!pthread_join(holder.thread, NULL) && !holder.error);
	return there;
}

#define TRIES 100
#define NEVER_HELD 77

/* The running job, or one that begins meanwhile, may want them again. */
static int stay_while_a_job_runs(void *arg)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS / 4;
	bool stayed = false;

	setenv("KTASK_IDLE_MS", "40", 1);
	for (int i = 0; i < TRIES && !stayed && ktest_now_ns() < end_ns; i++)
		stayed = stayed_meanwhile();
	ktest_check(wait_for_helpers(0));
	return stayed ? 0 : NEVER_HELD;
}

static void helpers_stay_while_a_job_runs(void **state)
{
	int status;

	need_sure_helper();
	status = status_of(stay_while_a_job_runs, NULL);
	if (status == NEVER_HELD << 8)
		ktest_skip("no job was held beside a helper");
	assert_int_equal(status, 0);
}

/* They end while the next job is about to give them work. */
static int end_at_once(void *arg)
{
	uint64_t since_ns = ktest_now_ns();

	setenv("KTASK_IDLE_MS", "0", 1);
	for (int i = 0; may_repeat(i, 300, since_ns); i++) {
		struct work work = { 0 };

		work_begin(&work, 50);
		ktest_check(!work_run(&work));
		ktest_check(work_done_once(&work));
		work_end(&work);
	}
	ktest_check(wait_for_helpers(0));
	return 0;
}

static void jobs_work_while_helpers_end(void **state)
{
	assert_int_equal(status_of(end_at_once, NULL), 0);
}

static int trim_pool(void *arg)
{
	unsigned before = threads_before();
	uint64_t since_ns = ktest_now_ns();

	/* However slow the machine is, none ends by itself. */
	setenv("KTASK_IDLE_MS", "3600000", 1);
	ktest_check(!ktask_trim());
	for (int i = 0; may_repeat(i, 20, since_ns); i++) {
		unsigned nr;

		ktest_check(!work_met());
		nr = helpers_now(NULL, 0);
		ktest_check(ktask_trim() >= nr);
		ktest_check(threads_now() == before);
		ktest_check(!ktask_trim());
	}
	/* This is what trimming is for. */
	if (before == 1 && unshare(CLONE_NEWUSER))
		ktest_check(errno == EPERM || errno == ENOSPC);
	return 0;
}

static void trimming_leaves_no_helper(void **state)
{
	need_sure_helper();
	assert_int_equal(status_of(trim_pool, NULL), 0);
}

static void *trim_all_the_time(void *stop)
{
	while (!__atomic_load_n((uint32_t *)stop, __ATOMIC_ACQUIRE)) {
		ktask_trim();
		nap_us(100);
	}
	return NULL;
}

static int use_a_little(struct work *work, size_t from, size_t to)
{
	burn_us(5);
	return 0;
}

static int trim_beside_jobs(void *arg)
{
	uint64_t since_ns = ktest_now_ns();
	pthread_t threads[2];
	uint32_t stop = 0;

	for (int i = 0; i < 2; i++)
		ktest_check(!pthread_create(&threads[i], NULL,
					    trim_all_the_time, &stop));
	for (int i = 0; may_repeat(i, 200, since_ns); i++) {
		struct work work = { .also = use_a_little };

		work_begin(&work, 200);
		ktest_check(!work_run(&work));
		ktest_check(work_done_once(&work));
		work_end(&work);
	}
	set_flag(&stop);
	for (int i = 0; i < 2; i++)
		ktest_check(!pthread_join(threads[i], NULL));
	ktask_trim();
	ktest_check(!helpers_now(NULL, 0));
	return 0;
}

static void trimming_beside_jobs_harms_none(void **state)
{
	assert_int_equal(status_of(trim_beside_jobs, NULL), 0);
}

static int trim_in_chunk(struct work *work, size_t from, size_t to)
{
	if (from % 8 == 0)
		ktask_trim();
	return 0;
}

static int trim_in_chunks(void *arg)
{
	uint64_t since_ns = ktest_now_ns();

	for (int i = 0; may_repeat(i, 20, since_ns); i++) {
		struct work work = { .also = trim_in_chunk };

		work_begin(&work, 64);
		ktest_check(!work_run(&work));
		ktest_check(work_done_once(&work));
		work_end(&work);
	}
	return 0;
}

/* Neither the thread itself nor others in a chunk are idle. */
static void chunks_may_trim(void **state)
{
	assert_int_equal(status_of(trim_in_chunks, NULL), 0);
}

/* A job that seems to be blocked, as slow ones do, may have had one more.  Return:
 * whether all this was over before one may have ended. */
static bool kept_in_time(void)
{
	uint64_t since_ns = ktest_now_ns();
	unsigned nr;

	forget_overload();
	ktest_check(!work_met());
	nap_us(300000);
	nr = helpers_now(NULL, 0);
	if (ktest_now_ns() - since_ns >= DEFAULT_NS)
		return false;
	/* All of them come later; without any none stays at all. */
	ktest_check(nr > 0);
	while (helpers_now(NULL, 0) < NR_HELPERS &&
	       ktest_now_ns() - since_ns < DEFAULT_NS)
		nap_us(500);
	nap_us(300000);
	nr = helpers_now(NULL, 0);
	if (ktest_now_ns() - since_ns >= DEFAULT_NS)
		return false;
	ktest_check(nr >= NR_HELPERS);
	return true;
}

static int keep_helper(void *arg)
{
	uint64_t since_ns = ktest_now_ns();
	bool kept = false;

	for (int i = 0; !kept && may_repeat(i, TRIES, since_ns); i++)
		kept = kept_in_time();
	return kept ? 0 : NEVER_HELD;
}

/* Or the cases above would show nothing. */
static void by_default_they_stay_for_a_while(void **state)
{
	int status;

	need_sure_helper();
	status = status_of(keep_helper, NULL);
	if (status == NEVER_HELD << 8)
		ktest_skip("helpers began later than they may end");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(idle_helpers_end), KTEST(helpers_stay_while_a_job_runs),
	   KTEST(jobs_work_while_helpers_end), KTEST(trimming_leaves_no_helper),
	   KTEST(trimming_beside_jobs_harms_none), KTEST(chunks_may_trim),
	   KTEST(by_default_they_stay_for_a_while))
