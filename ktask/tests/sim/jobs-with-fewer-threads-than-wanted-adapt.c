/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that others leave fewer threads than it asks for finds how many of these
 * pay; and a job of chunks that take long does not try fewer, of which nothing
 * could be seen.  In virtual time, on a machine that serves few threads well.
 */
#include <stdlib.h>
#include <string.h>

#include "ktest.h"
#include "sim/sim_host.h"
#include "sim/thread_curves.h"

#define CPUS 64
#define SERVED 8 /* threads, and more disturb one another */
#define UNIT_NS 100000

static const struct kt_pace pace = { 500000,  500000,  5000000,
				     1000000, 1000000, 0 };

static struct {
	struct sim_process process;
	struct sim_helper helpers[CPUS];
	struct sim_job job;
	struct kt_item items[CPUS];
	unsigned served, in_chunks, max_threads;
	uint64_t unit_ns;
	const struct curve *curve; /* or NULL */
} ex;

/* What a chunk of @ns takes if so many threads are in chunks. */
static uint64_t ns_of_curve(uint64_t ns)
{
	return (uint64_t)((double)(ns * ex.in_chunks) *
			  curve_rate(ex.curve, 1) /
			  curve_rate(ex.curve, ex.in_chunks));
}

static int do_units(void *start, void *end, void *arg)
{
	uint64_t ns = (uint64_t)((char *)end - (char *)start) * ex.unit_ns;
	unsigned others = 0;

	ex.in_chunks++;
	if (ex.in_chunks > ex.served)
		others = ex.in_chunks - ex.served;
	ns += ns * others / ex.served;
	ns += ns * others / (4 * ex.served);
	if (ex.curve)
		ns = ns_of_curve(ns);
	sim_spend(ns);
	ex.in_chunks--;
	return 0;
}

static void run_caller(void *arg)
{
	if (sim_job_run(&ex.job, ex.max_threads, 0))
		sim_fail("the job fails");
}

static void init_job(uint64_t units, bool fixed)
{
	struct sim_job *job = &ex.job;
	struct kt_job *core = &job->ctx.job;

	job->process = &ex.process;
	job->items = ex.items;
	job->max_items = CPUS - 1;
	job->ranges[0].units = units;
	job->ranges[0].node = KT_NO_NODE;
	core->func = do_units;
	core->split = (struct kt_split){ 1, 1, 1000000 };
	core->ranges = job->ranges;
	core->nr_ranges = 1;
	assert_int_equal(kt_context_init(&job->ctx, &pace), 0);
	job->ctx.fixed = fixed;
}

/* Return: the virtual time of a job that wants @wanted threads, and has one
 * more than @permits at most; @fixed: all the time. */
static double job_ms(unsigned served, unsigned permits, unsigned wanted,
		     uint64_t units, uint64_t unit_ns, bool fixed)
{
	struct sim_machine machine = {
		.nr_cpus = CPUS,
		.nr_nodes = 1,
		.slice_ns = 3000000,
		.point_ns = 20,
	};
	const struct curve *curve = ex.curve;
	struct sim_cpus all;

	memset(&ex, 0, sizeof(ex));
	ex.curve = curve;
	memset(&all, 0xff, sizeof(all));
	ex.served = served;
	ex.unit_ns = unit_ns;
	ex.max_threads = wanted;
	sim_reset(&machine, 1);
	sim_host_reset(permits);
	ex.process.helpers = ex.helpers;
	sim_process_init(&ex.process, CPUS - 1);
	init_job(units, fixed);
	sim_spawn("caller", run_caller, NULL, SIM_WEIGHT_NORMAL, &all, false);
	assert_null(sim_run());
	return (double)(sim_now() - SIM_START_NS) / 1e6;
}

/* All that it could have took 2.4 times as long as the best. */
static void fewer_threads_are_found(void **state)
{
	double best = job_ms(SERVED, SERVED - 1, SERVED, 40000, UNIT_NS, true);
	double had = job_ms(SERVED, 51, CPUS, 40000, UNIT_NS, false);

	print_message("# best %.1f ms, with 52 of 64 threads %.1f\n", best,
		      had);
	assert_true(had < 1.2 * best);
}

static void where_all_pay_all_are_used(void **state)
{
	double best = job_ms(CPUS, 51, 52, 100000, UNIT_NS, true);
	double had = job_ms(CPUS, 51, CPUS, 100000, UNIT_NS, false);

	assert_true(had < 1.05 * best);
}

/* A chunk of 20 ms, 100 for each of two threads. */
static void long_chunks_are_not_doubted(void **state)
{
	double best = job_ms(CPUS, 1, 2, 200, 20000000, true);
	double had = job_ms(CPUS, 1, 2, 200, 20000000, false);

	print_message("# best %.1f ms, %.1f\n", best, had);
	assert_true(had < 1.005 * best);
}

/* The job takes 0.8 s with the best count, and three times as long with all. */
static void check_curve(const struct curve *curve)
{
	double gain = curve_best(curve, CPUS) / curve_rate(curve, 1);
	uint64_t units = (uint64_t)(gain * 8000);
	double best, had;

	ex.curve = curve;
	best = job_ms(CPUS, curve->best - 1, curve->best, units, UNIT_NS, true);
	had = job_ms(CPUS, 51, 52, units, UNIT_NS, false);
	ex.curve = NULL;
	print_message("# %s: best %.1f ms, %.1f\n", curve->name, best, had);
	assert_true(had < 1.05 * best);
}

static void the_best_count_is_found_at_once(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++)
		if (curves[i].best < CPUS)
			check_curve(&curves[i]);
}

KTEST_MAIN(KTEST(the_best_count_is_found_at_once),
	   KTEST(fewer_threads_are_found), KTEST(where_all_pay_all_are_used),
	   KTEST(long_chunks_are_not_doubted))
