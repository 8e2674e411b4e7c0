/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What no machine here can show: jobs on 1,024 CPUs and 16 nodes, and 200
 * virtual machines that start at once, in virtual time.
 *
 * Prints one table: the time, by how much it is longer than the best that could
 * be (all helpers busy to the end; the best of fixed counts of threads; helpers
 * divided exactly among jobs), permits taken at once, and by how many helpers the
 * jobs that want more differ, averaged over 50 ms.  What coordination costs: reads
 * and writes of shared memory for each chunk, by the job's threads and all that the
 * engine does beside; and how many wishes of jobs each job reads in a millisecond
 * to find its share.  With the name of a file it writes there how caps, shares and
 * counts of threads went on, a line for each moment; `make bench-sim` plots these and
 * the table.  A chunk costs what its pages
 * cost one thread, and more where more threads are in chunks than the memory serves:
 * costs rise linearly from there on, so that the rate saturates.  Or the rate is that of
 * a curve that was published or measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/sim_host.h"
#include "sim/sim_shares.h"
#include "sim/thread_curves.h"

#define PAGE_NS 100000 /* 2 MiB */
#define HELPERS (SIM_CPUS_MAX - 1)
#define CAP_PERCENT 80 /* of the machine's CPUs, and of each node's */
#define JOBS_MAX 200
#define SAMPLE_NS 10000000
#define ADAPT_NS 1000000 /* between samples of one job */
#define WINDOW 5 /* samples over which fairness is averaged: 50 ms */

static const struct kt_pace pace = { 500000,  500000,  5000000,
				     1000000, 1000000, 0 };

/* ---- one experiment ---- */

static struct {
	unsigned nr_cpus, nr_nodes, permits, saturates;
	unsigned nr_jobs, nr_left;
	bool fixed, falls;
	const struct curve *curve;
	struct sim_process process;
	struct sim_job jobs[JOBS_MAX];
	unsigned in_chunks; /* threads */
	unsigned most_permits; /* taken at once */
	unsigned sums[JOBS_MAX], nr_samples;
	unsigned worst_spread; /* of helpers, averaged over a window */
	uint64_t pages;
	const char *series; /* its name in the file, or NULL */
	bool ended[JOBS_MAX];
} ex;

static FILE *series_file;

/* Of the experiment that is watched: the time in ms, and up to two numbers. */
static void write_point(const char *what, double a, double b)
{
	if (series_file && ex.series)
		fprintf(series_file, "%s %.1f %g %g %s\n", what,
			(double)(sim_now() - SIM_START_NS) / 1e6, a, b,
			ex.series);
}

static struct sim_helper helpers[HELPERS];

static int do_pages(void *start, void *end, void *arg)
{
	uint64_t ns = (uint64_t)((char *)end - (char *)start) * PAGE_NS;

	ex.in_chunks++;
	if (ex.saturates && ex.in_chunks > ex.saturates)
		ns = ns * ex.in_chunks / ex.saturates;
	/* They also disturb one another: half of the rate at 5 times as many. */
	if (ex.falls && ex.in_chunks > ex.saturates)
		ns += ns * (ex.in_chunks - ex.saturates) / (4 * ex.saturates);
	if (ex.curve)
		ns = (uint64_t)((double)(ns * ex.in_chunks) *
				curve_rate(ex.curve, 1) /
				curve_rate(ex.curve, ex.in_chunks));
	sim_spend(ns);
	ex.in_chunks--;
	return 0;
}

static void sample_job(unsigned index, unsigned *least, unsigned *most)
{
	const struct kt_context *ctx = &ex.jobs[index].ctx;
	unsigned has = ctx->job.threads - 1;

	ex.sums[index] += has;
	if (ex.ended[index])
		return;
	if (ex.nr_samples % WINDOW || ctx->wanted <= has + 1)
		return;
	*least = KT_MIN(*least, ex.sums[index] / WINDOW);
	*most = KT_MAX(*most, (ex.sums[index] + WINDOW - 1) / WINDOW);
}

/* Of the jobs that want more helpers than they have.  Jobs that end say nothing of
 * how helpers are shared: the table has what was before the first did. */
static void end_window(unsigned least, unsigned most)
{
	if (ex.nr_samples > WINDOW && most > least && ex.nr_left == ex.nr_jobs)
		ex.worst_spread = KT_MAX(ex.worst_spread, most - least);
	if (most)
		write_point("share", least, most);
	memset(ex.sums, 0, sizeof(ex.sums));
}

static void take_sample(void *arg)
{
	unsigned least = UINT32_MAX, most = 0;

	ex.most_permits = KT_MAX(ex.most_permits, sim_host_permits_used());
	ex.nr_samples++;
	if (!ex.nr_left)
		return;
	if (ex.nr_jobs == 1) {
		write_point("adapt", ex.jobs[0].ctx.job.threads, 0);
		sim_at(sim_now() + ADAPT_NS, take_sample, NULL);
		return;
	}
	write_point("caps", sim_host_permits_used(), ex.permits);
	for (unsigned i = 0; i < ex.nr_jobs; i++)
		sample_job(i, &least, &most);
	if (ex.nr_samples % WINDOW == 0)
		end_window(least, most);
	sim_at(sim_now() + SAMPLE_NS, take_sample, NULL);
}

static void run_caller(void *arg)
{
	struct sim_job *job = arg;

	if (sim_job_run(job, ex.permits + 1, 0))
		sim_fail("a job fails");
	ex.ended[job - ex.jobs] = true;
	ex.nr_left--;
}

static void init_job(struct sim_job *job, uint64_t pages, unsigned capacity)
{
	struct kt_job *core = &job->ctx.job;
	unsigned nr = ex.nr_jobs == 1 ? ex.nr_nodes : 1;

	memset(job, 0, sizeof(*job));
	job->process = &ex.process;
	job->max_items = capacity;
	job->items = aligned_alloc(64, (capacity * sizeof(*job->items) + 63) /
					       64 * 64);
	if (!job->items)
		abort();
	for (unsigned i = 0; i < nr; i++) {
		job->ranges[i].start = (void *)((i + 1ul) << 32);
		job->ranges[i].units = pages / nr;
		job->ranges[i].node = nr > 1 ? (int)i : KT_NO_NODE;
	}
	core->func = do_pages;
	core->split = (struct kt_split){ 1, 1, 1000000 };
	core->ranges = job->ranges;
	core->nr_ranges = nr;
	if (kt_context_init(&job->ctx, &pace))
		abort();
	job->ctx.fixed = ex.fixed;
	ex.pages += pages / nr * nr;
}

static void begin_experiment(unsigned nr_cpus, unsigned nr_nodes,
			     unsigned nr_jobs)
{
	struct sim_machine machine = {
		.nr_cpus = nr_cpus,
		.nr_nodes = nr_nodes,
		.slice_ns = 3000000,
		.point_ns = 20,
	};

	memset(&ex, 0, sizeof(ex));
	ex.nr_cpus = nr_cpus;
	ex.nr_nodes = nr_nodes;
	ex.nr_jobs = nr_jobs;
	ex.nr_left = nr_jobs;
	ex.permits = nr_cpus * CAP_PERCENT / 100;
	sim_reset(&machine, 1);
	sim_host_reset(ex.permits);
	ex.process.helpers = helpers;
	sim_process_init(&ex.process, nr_cpus - 1);
	for (unsigned i = 0; i < nr_nodes; i++)
		ex.process.nodes[i].limit =
			kt_cap_node_limit(nr_cpus / nr_nodes, CAP_PERCENT);
}

/* Return: virtual time until all jobs have ended. */
static uint64_t run_experiment(void)
{
	uint64_t begin_ns = sim_now();
	struct sim_cpus all;
	const char *why;

	memset(&all, 0xff, sizeof(all));
	for (unsigned i = 0; i < ex.nr_jobs; i++)
		sim_spawn("caller", run_caller, &ex.jobs[i], SIM_WEIGHT_NORMAL,
			  &all, false);
	sim_at(begin_ns + (ex.nr_jobs == 1 ? ADAPT_NS : SAMPLE_NS), take_sample,
	       NULL);
	why = sim_run();
	if (why) {
		fprintf(stderr, "bench-sim: %s\n", why);
		exit(1);
	}
	for (unsigned i = 0; i < ex.nr_jobs; i++)
		free(ex.jobs[i].items);
	return sim_now() - begin_ns;
}

/* ---- the table ---- */

static void print_row(const char *what, uint64_t ns, double ideal_ns,
		      double real_s)
{
	uint64_t claims = 0;

	for (unsigned i = 0; i < ex.nr_jobs; i++)
		claims += ex.jobs[i].ctx.chunks;
	printf("%-42s %10.1f %7.3f %8u of %-4u", what, (double)ns / 1e6,
	       (double)ns / ideal_ns, ex.most_permits, ex.permits);
	if (ex.nr_jobs > 1)
		printf(" %6u", ex.worst_spread);
	else
		printf(" %6s", "-");
	printf(" %9llu %8.1f %8.2f %6.1f\n", (unsigned long long)claims,
	       (double)sim_nr_points() / (double)claims,
	       (double)shares_entries_read() / ex.nr_jobs / ((double)ns / 1e6),
	       real_s);
	fflush(stdout);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* What makes the threads of a job slower, the more there are. */
struct contention {
	unsigned saturates;
	bool falls;
	const struct curve *curve;
};

/* @fixed: threads; 0: the job adapts their number */
static uint64_t run_one(unsigned nr_cpus, unsigned nr_nodes, uint64_t pages,
			struct contention contention, unsigned fixed)
{
	begin_experiment(nr_cpus, nr_nodes, 1);
	ex.saturates = contention.saturates;
	ex.falls = contention.falls;
	ex.curve = contention.curve;
	ex.fixed = fixed;
	if (!fixed && contention.curve)
		ex.series = contention.curve->name;
	if (fixed) {
		ex.permits = fixed - 1;
		sim_host_permits(fixed - 1);
	}
	init_job(&ex.jobs[0], pages, HELPERS);
	return run_experiment();
}

static void one_job(unsigned nr_cpus, unsigned nr_nodes)
{
	uint64_t pages = (uint64_t)nr_cpus * 4000;
	double from_s = now_s();
	uint64_t ns =
		run_one(nr_cpus, nr_nodes, pages, (struct contention){ 0 }, 0);
	char what[64];

	snprintf(what, sizeof(what), "one job, %u CPUs, %u nodes", nr_cpus,
		 nr_nodes);
	print_row(what, ns, (double)ex.pages * PAGE_NS / (ex.permits + 1),
		  now_s() - from_s);
}

/* 1, 2, 3, 4, 6, 8, 12, 16 and so on. */
static unsigned next_count(unsigned count)
{
	return count & (count - 1) ? count / 3 * 4
				   : KT_MAX(count + 1, count / 2 * 3);
}

/* Against the best of fixed counts. */
static void adapting_job(const char *what, unsigned nr_cpus, uint64_t pages,
			 struct contention contention)
{
	uint64_t best = UINT64_MAX, ns;
	double from_s = now_s();

	for (unsigned fixed = 1; fixed <= nr_cpus * CAP_PERCENT / 100;
	     fixed = next_count(fixed)) {
		ns = run_one(nr_cpus, 1, pages, contention, fixed);
		best = KT_MIN(best, ns);
	}
	ns = run_one(nr_cpus, 1, pages, contention, 0);
	print_row(what, ns, (double)best, now_s() - from_s);
}

static void saturating_job(unsigned nr_cpus, unsigned saturates, bool falls)
{
	char what[64];

	snprintf(what, sizeof(what), "%u CPUs, %s from %u threads on", nr_cpus,
		 falls ? "slower" : "no faster", saturates);
	adapting_job(
		what, nr_cpus, (uint64_t)saturates * 8000,
		(struct contention){ .saturates = saturates, .falls = falls });
}

static void job_of_curve(unsigned nr_cpus, const struct curve *curve)
{
	double gain = curve_best(curve, nr_cpus) / curve_rate(curve, 1);
	char what[64];

	snprintf(what, sizeof(what), "%u CPUs, %s (%s)", nr_cpus, curve->name,
		 curve->source);
	adapting_job(what, nr_cpus, (uint64_t)(gain * 8000),
		     (struct contention){ .curve = curve });
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Time if helpers could be divided: all jobs have the same part of them until
 * the smallest is done, and so on. */
static double fair_ideal_ns(void)
{
	uint64_t sizes[JOBS_MAX], done = 0;
	double ns = 0;

	for (unsigned i = 0; i < ex.nr_jobs; i++)
		sizes[i] = ex.jobs[i].ctx.units_total;
	qsort(sizes, ex.nr_jobs, sizeof(sizes[0]), compare_sizes);
	for (unsigned i = 0; i < ex.nr_jobs; i++) {
		double threads = 1 + (double)ex.permits / (ex.nr_jobs - i);

		ns += (double)(sizes[i] - done) * PAGE_NS / threads;
		done = sizes[i];
	}
	return ns;
}

static void machines_that_start(unsigned nr_cpus, unsigned nr)
{
	double from_s = now_s();
	uint64_t ns;
	char what[64];

	begin_experiment(nr_cpus, 16, nr);
	if (nr == JOBS_MAX)
		ex.series = "machines";
	/* 16 to 512 GiB in steps of 16, in a fixed order. */
	for (unsigned i = 0; i < nr; i++)
		init_job(&ex.jobs[i], (1 + i * 7 % 32) * 8192ull, nr_cpus - 1);
	ns = run_experiment();
	snprintf(what, sizeof(what), "%u machines of 16 to 512 GiB at once",
		 nr);
	print_row(what, ns, fair_ideal_ns(), now_s() - from_s);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !(series_file = fopen(argv[1], "w"))) {
		perror(argv[1]);
		return 1;
	}
	printf("%-42s %10s %7s %16s %6s %9s %8s %8s %6s\n", "", "ms", "/ best",
	       "permits at once", "spread", "chunks", "accesses", "wishes",
	       "run s");
	one_job(2, 1);
	one_job(16, 1);
	one_job(64, 1);
	one_job(128, 2);
	one_job(512, 8);
	one_job(1024, 16);
	saturating_job(64, 8, false);
	saturating_job(64, 8, true);
	saturating_job(1024, 64, false);
	saturating_job(1024, 64, true);
	for (unsigned i = 0; i < nr_curves; i++)
		if (curves[i].source)
			job_of_curve(64, &curves[i]);
	machines_that_start(1024, 20);
	machines_that_start(1024, 60);
	machines_that_start(1024, 200);
	if (series_file && fclose(series_file)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
