/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Beside real processes that keep all CPUs busy, whatever their priority, counts bound
 * what a job can lose: it begins without helpers, which would get no CPU for long, and
 * a chunk is at most a quarter of what was left when it was claimed, so that a caller
 * that has nothing more to do waits for little.  `make stress-busy` measures how long
 * such jobs take.
 *
 * The processes are twice as many as CPUs.  None has a nice value below 0, which would
 * disturb other tests: a job of a higher nice value stands for that.
 */
#include "support/work.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "user/limits/limits.h"
#include "user/user_job.h"

#define HOGS_MAX 64
#define HOG_SECONDS 300
#define NR_UNITS 400
#define UNIT_NS 10000
#define NR_JOBS 5
/* A job that began in an overload tries helpers after 200 ms. */
#define ALONE_NS 190000000ull
#define NR_TRIES 20
#define UNSEEN 77 /* the processes, in /proc/loadavg */
#define NOT_ALONE 78

struct load {
	int policy, nice; /* of the processes beside the job */
	int own_nice;
};

struct seen {
	uint64_t first_helper_ns; /* 0: none */
	size_t largest;
	bool alone;
};

static pid_t hogs[HOGS_MAX];
static unsigned nr_hogs;

/* Nobody but root may go below what there is, if the test runs under nice(1). */
static int raise_nice(int wanted)
{
	int present = getpriority(PRIO_PROCESS, 0);

	return setpriority(PRIO_PROCESS, 0, KT_MAX(wanted, present));
}

/* ---- processes beside the job ---- */

static _Noreturn void be_hog(const struct load *load, pid_t parent)
{
	const struct sched_param none = { .sched_priority = 0 };

	/* None outlives the test. */
	alarm(HOG_SECONDS);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	if (sched_setscheduler(0, load->policy, &none) ||
	    raise_nice(load->nice))
		_exit(1);
	for (;;)
		;
}

static void stop_hogs(void)
{
	for (unsigned i = 0; i < nr_hogs; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
	nr_hogs = 0;
}

/* That they may use, as this process. */
static unsigned nr_allowed_cpus(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	return (unsigned)CPU_COUNT(&cpus);
}

/* They run on a CPU or wait for one as soon as they are made. */
static bool start_hogs(const struct load *load)
{
	unsigned wanted = 2 * nr_allowed_cpus();
	pid_t parent = getpid(), pid;

	for (nr_hogs = 0; nr_hogs < wanted && nr_hogs < HOGS_MAX; nr_hogs++) {
		pid = fork();
		if (!pid)
			be_hog(load, parent);
		if (pid < 0)
			break;
		hogs[nr_hogs] = pid;
	}
	return nr_hogs == wanted;
}

/* Not so where a control group stops them in turns. */
static bool hogs_are_counted(void)
{
	return limits_running() > nr_hogs;
}

/* ---- the job ---- */

static void burn_units(size_t units)
{
	uint64_t end_ns = ktest_thread_cpu_ns() + units * UNIT_NS;

	while (ktest_thread_cpu_ns() < end_ns)
		;
}

static void note_largest(struct seen *seen, size_t units)
{
	size_t largest = __atomic_load_n(&seen->largest, __ATOMIC_RELAXED);

	while (units > largest &&
	       !__atomic_compare_exchange_n(&seen->largest, &largest, units,
					    false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* A quarter of what was left; or all of it by the caller, where no helper may be. */
static bool is_small(const struct work *work, size_t from, size_t to)
{
	size_t left = work->nr_units - from, units = to - from;

	if (units == work->nr_units)
		return !work_is_helper(work);
	return units <= 1 || units <= left / 4;
}

static int record_and_burn(struct work *work, size_t from, size_t to)
{
	struct seen *seen = work->arg;
	uint64_t none = 0;

	if (work_is_helper(work))
		__atomic_compare_exchange_n(&seen->first_helper_ns, &none,
					    ktest_now_ns(), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	else if (!from)
		seen->alone = job_current()->job->alone;
	burn_units(to - from);
	note_largest(seen, to - from);
	return is_small(work, from, to) ? 0 : -EFBIG;
}

/* Without undo, which would make no difference. */
static void run_job(struct seen *seen, struct ktask_result *result)
{
	struct work work = { .also = record_and_burn, .arg = seen };
	DEFINE_KTASK_CTL(ctl, work_chunk, &work, 1);

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, result);
	ktest_check(!ktask_run(WORK_BASE, NR_UNITS, &ctl));
	ktest_check(work_done_once(&work));
	work_end(&work);
}

static void become_nice(const struct load *load)
{
	ktest_check(!raise_nice(load->own_nice));
}

/* The first job of a process. */
static int begin_alone(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct seen seen = { 0 };
	uint64_t begin_ns;

	become_nice(arg);
	if (!hogs_are_counted())
		return UNSEEN;
	begin_ns = ktest_now_ns();
	run_job(&seen, &result);
	/* The job read the count itself, in a moment of its own. */
	if (!seen.alone)
		return hogs_are_counted() ? NOT_ALONE : UNSEEN;
	ktest_check(!seen.first_helper_ns ||
		    seen.first_helper_ns >= begin_ns + ALONE_NS);
	return 0;
}

/* With the helpers that there would be if nobody looked at the others: until one is
 * seen without a CPU. */
static int share_by_small_chunks(void *arg)
{
	become_nice(arg);
	setenv("KTASK_OVERLOAD", "ignore", 1);
	for (int i = 0; i < NR_JOBS; i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct seen seen = { 0 };

		run_job(&seen, &result);
		/* What the bound of a job's time is told by. */
		ktest_check(result.largest_chunk == seen.largest);
	}
	return 0;
}

/* ---- cases ---- */

static int begin_without_overload(void **state)
{
	unsetenv("KTASK_OVERLOAD");
	return 0;
}

static int end_hogs(void **state)
{
	stop_hogs();
	return 0;
}

/* Return: NOT_ALONE only if all tries said so, UNSEEN if some did. */
static int try_alone(const struct load *load)
{
	int status = NOT_ALONE << 8, tried;

	for (int i = 0; i < NR_TRIES; i++) {
		tried = ktest_in_child(begin_alone, (void *)load);
		if (tried == UNSEEN << 8)
			status = tried;
		else if (tried != NOT_ALONE << 8)
			return tried;
	}
	return status;
}

static void check_beside(const struct load *load)
{
	int status;

	if (!start_hogs(load))
		ktest_skip("not two processes for each CPU: %u", nr_hogs);
	assert_int_equal(ktest_in_child(share_by_small_chunks, (void *)load),
			 0);
	if (nr_allowed_cpus() < (unsigned)sysconf(_SC_NPROCESSORS_ONLN))
		ktest_skip("an overload is one of all CPUs, and %u are allowed",
			   nr_allowed_cpus());
	status = try_alone(load);
	if (status == UNSEEN << 8)
		ktest_skip("/proc/loadavg does not count %u processes that run",
			   nr_hogs);
	assert_int_equal(status, 0);
}

static void beside_equal_ones(void **state)
{
	check_beside(&(struct load){ .policy = SCHED_OTHER });
}

static void beside_nice_ones(void **state)
{
	check_beside(&(struct load){ .policy = SCHED_OTHER, .nice = 19 });
}

static void beside_idle_ones(void **state)
{
	check_beside(&(struct load){ .policy = SCHED_IDLE });
}

static void beside_more_important_ones(void **state)
{
	check_beside(&(struct load){ .policy = SCHED_OTHER, .own_nice = 10 });
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, begin_without_overload, end_hogs)

KTEST_MAIN(T(beside_equal_ones), T(beside_nice_ones), T(beside_idle_ones),
	   T(beside_more_important_ones))
