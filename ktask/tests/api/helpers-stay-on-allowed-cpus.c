/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A caller that is bound to one CPU gets no helper; helpers of a job run only
 * on the CPUs of its control block and of its caller, whatever the jobs before
 * it allowed, and also when they have only just been made.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/prctl.h>

#define NR_UNITS 64
/* Of jobs on one CPU; as many as take no longer on a machine that gives their helpers
 * next to no time. */
#define NR_JOBS 30
#define NR_JOBS_LEAST 4
#define JOBS_NS 60000000000ull

struct cpu_check {
	cpu_set_t allowed;
	uint32_t nr_outside;
};

/* The place now and the places that it might be moved to. */
static int check_cpus(struct work *work, size_t from, size_t to)
{
	struct cpu_check *cpu_check = work->arg;
	cpu_set_t mask, both;

	if (!work_is_helper(work))
		return 0;
	if (sched_getaffinity(0, sizeof(mask), &mask))
		return -errno;
	CPU_AND(&both, &mask, &cpu_check->allowed);
	if (!CPU_EQUAL(&both, &mask) ||
	    !CPU_ISSET(sched_getcpu(), &cpu_check->allowed))
		__atomic_add_fetch(&cpu_check->nr_outside, 1, __ATOMIC_RELAXED);
	return 0;
}

static unsigned nth_cpu(const cpu_set_t *mask, unsigned n)
{
	unsigned cpu = 0;

	while (!CPU_ISSET(cpu, mask) || n--)
		cpu++;
	return cpu;
}

static cpu_set_t own_mask(void)
{
	cpu_set_t mask;

	assert_int_equal(sched_getaffinity(0, sizeof(mask), &mask), 0);
	return mask;
}

static cpu_set_t make_mask(unsigned cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	return mask;
}

/* A job whose helpers may use @cpus of the control block. */
static void job_on(const cpu_set_t *cpus, size_t size, bool meet)
{
	struct cpu_check cpu_check;
	struct work work = { .also = check_cpus,
			     .arg = &cpu_check,
			     .meet = meet };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	cpu_check.allowed = *cpus;
	cpu_check.nr_outside = 0;
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_cpus(&ctl, cpus, size);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), 0);
	assert_true(work_done_once(&work));
	assert_int_equal(cpu_check.nr_outside, 0);
	work_end(&work);
}

static void the_control_block_is_obeyed(void **state)
{
	uint64_t end_ns = ktest_now_ns() + JOBS_NS;
	cpu_set_t all;

	need_sure_helper();
	all = own_mask();
	for (int i = 0;
	     i < NR_JOBS_LEAST || (i < NR_JOBS && ktest_now_ns() < end_ns);
	     i++) {
		cpu_set_t one = make_mask(nth_cpu(&all, (unsigned)i % 2));

		job_on(&one, sizeof(one), true);
		if (i % 3 == 0)
			job_on(&all, sizeof(all), true);
		if (i % 10 == 3)
			ktask_trim();
	}
}

/* A mask may be shorter or longer than the library's own. */
static void masks_of_any_size(void **state)
{
	static cpu_set_t many[16];
	cpu_set_t all;

	need_sure_helper();
	all = own_mask();
	many[0] = make_mask(nth_cpu(&all, 1));
	job_on(many, sizeof(many), true);
	many[0] = make_mask(nth_cpu(&all, 0));
	job_on(many, nth_cpu(&all, 0) / 8 + 1, true);
}

static int count_helpers(struct work *work, size_t from, size_t to)
{
	burn_us(20);
	return 0;
}

/* No CPU of the mask is the caller's: no helper, rather than one elsewhere. */
static void foreign_cpus_give_no_helper(void **state)
{
	struct work work = { .also = count_helpers };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	cpu_set_t all = own_mask(), foreign;
	unsigned cpu = CPU_SETSIZE - 1;

	while (CPU_ISSET(cpu, &all))
		cpu--;
	foreign = make_mask(cpu);
	work_begin(&work, 500);
	ktask_ctl_set_cpus(&ctl, &foreign, sizeof(foreign));
	assert_int_equal(ktask_run(WORK_BASE, 500, &ctl), 0);
	assert_true(work_done_once(&work));
	assert_int_equal(work.nr_helper_chunks, 0);
	work_end(&work);
}

static void run_bound(unsigned cpu)
{
	cpu_set_t one = make_mask(cpu);
	struct work work = { .also = count_helpers };

	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	work_begin(&work, 500);
	assert_int_equal(work_run(&work), 0);
	assert_true(work_done_once(&work));
	assert_int_equal(work.nr_helper_chunks, 0);
	work_end(&work);
}

/* Helpers that are there from before are on other CPUs. */
static void a_bound_caller_works_alone(void **state)
{
	cpu_set_t all = own_mask();

	if (may_help())
		assert_int_equal(work_met(), 0);
	run_bound(nth_cpu(&all, 0));
	if (CPU_COUNT(&all) > 1)
		run_bound(nth_cpu(&all, 1));
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* ---- a helper that has not run yet ---- */

static uint32_t hold_helpers, nr_held;

/* The first thing that a helper does. */
int prctl(int option, ...)
{
	if (option == PR_SET_NAME &&
	    __atomic_load_n(&hold_helpers, __ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&nr_held, 1, __ATOMIC_RELAXED);
		while (__atomic_load_n(&hold_helpers, __ATOMIC_ACQUIRE))
			nap_us(50);
	}
	return 0;
}

static bool is_held(void)
{
	return __atomic_load_n(&nr_held, __ATOMIC_RELAXED) > 0;
}

static int let_helpers_move(struct work *work, size_t from, size_t to)
{
	if (!work_is_helper(work) && !from) {
		__atomic_store_n(&hold_helpers, 0, __ATOMIC_RELEASE);
		nap_us(30000);
	}
	return check_cpus(work, from, to);
}

/* Made for a job on one CPU, first used by a job on another. */
static void a_new_helper_is_placed_too(void **state)
{
	struct cpu_check cpu_check;
	struct work work = { .also = let_helpers_move, .arg = &cpu_check };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	cpu_set_t all, one;

	need_sure_helper();
	all = own_mask();
	ktask_trim();
	set_flag(&hold_helpers);
	one = make_mask(nth_cpu(&all, 1));
	job_on(&one, sizeof(one), false);
	/* The thread takes its time to begin, and is held where it does. */
	for (int i = 0; i < 100000 && !is_held(); i++)
		nap_us(50);
	assert_true(is_held());
	cpu_check.allowed = make_mask(nth_cpu(&all, 0));
	cpu_check.nr_outside = 0;
	work_begin(&work, 2000);
	ktask_ctl_set_cpus(&ctl, &cpu_check.allowed, sizeof(cpu_check.allowed));
	assert_int_equal(ktask_run(WORK_BASE, 2000, &ctl), 0);
	assert_true(work_done_once(&work));
	assert_int_equal(cpu_check.nr_outside, 0);
	work_end(&work);
}

KTEST_MAIN(KTEST(the_control_block_is_obeyed), KTEST(masks_of_any_size),
	   KTEST(foreign_cpus_give_no_helper),
	   KTEST(a_bound_caller_works_alone), KTEST(a_new_helper_is_placed_too))
