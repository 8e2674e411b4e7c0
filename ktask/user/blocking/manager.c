/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See manager.h.
 *
 * Until the manager has left, only it submits and collects compensating helpers; then
 * the caller does.  The manager is a helper of the lowest priority.  If no CPU idles, it
 * does not run; but then nothing needs to be compensated.
 *
 * The program's monitor (ktask/monitor.h) says which threads are blocked.  Without a
 * monitor, the manager reads that from /proc/self/task, which needs no rights.  libumt's
 * eBPF program is loaded only if the program asks for it: while it is loaded, it costs
 * all other programs something (umt.3).
 *
 * Behaves badly: a thread that is blocked for less than a millisecond or two
 * is replaced only while others like it are blocked too.  A caller that blocks in
 * its very first chunk is replaced only if the client said so (KTASK_BLOCKS).
 * Without /proc there are no compensating helpers.
 *
 * Locking: there is no lock.  struct manager (manager_sample.h) says for each
 * field who writes it.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/limits/config.h"
#include "user/history/io_history.h"
#include "util/futex.h"
#include "user/blocking/user_monitor.h"
#include "user/blocking/manager.h"
#include "user/blocking/manager_sample.h"
#include "user/machine/topo.h"

#define HELPERS_MAX 64
/* Between two samples of the threads: at least this, and so many times what a
 * sample takes, so that sampling never takes more than 2 % of a CPU. */
#define PERIOD_NS 1000000
#define PERIOD_PART 50
/* And at most this: a sample may have lasted because the manager had no CPU. */
#define PERIOD_MAX_NS 20000000
/* A caller is taken to block if it was off the CPU for this part of its time, as
 * 1 / n. */
#define IDLE_PART 4

/* ---- compensating helpers ---- */

bool manager_has_one_cpu(const struct user_job *job)
{
	return kt_load(&job->manager->has_one_cpu);
}

void manager_place_helper(struct user_job *job, struct pool_item *pool_item)
{
	pool_item->cpus = &job->manager->cpus[job->manager->cpus_used];
	pool_item->level = KT_PLACEMENT_ANY;
}

/* Only the manager may submit compensating helpers while it is there. */
static void assert_manager(const struct manager *manager)
{
	kt_assert(pool_item_tid(&manager->pool_item) == (uint32_t)gettid());
}

/* Makes threads for items that lack one: other jobs may have taken the helpers that
 * there were.  The rate while helpers are lacking is not measured. */
static void keep_helpers(struct manager *manager, unsigned wanted,
			 uint64_t now_ns)
{
	struct kt_context *ctx = &manager->job->ctx;
	uint32_t cpus_generation = manager->used_generation;
	unsigned lacking =
		kt_context_compensate(ctx, wanted, cpus_generation, now_ns);

	assert_manager(manager);
	if (!lacking)
		return;
	pool_more(lacking, &manager->cpus[manager->cpus_used]);
	if (kt_context_compensate(ctx, wanted, cpus_generation, now_ns))
		kt_io_pause(&manager->count.io);
}

/* ---- the manager ---- */

static unsigned count_helpers(struct manager *manager, uint64_t now_ns)
{
	struct user_job *job = manager->job;
	struct kt_context *ctx = &job->ctx;
	struct manager_sample sample = {
		.now_ns = now_ns,
		.units = kt_context_units(ctx),
		.chunk = kt_split_usual(&ctx->job.split, &ctx->job.cost),
		.threads = kt_load(&ctx->job.threads),
		.max = manager->helpers.nr,
		.idle_only = limits_idle_only(),
		.has_one_cpu = kt_load(&manager->has_one_cpu),
	};

	/* Both at about the same time. */
	sample.seen = sample_working(manager);
	sample_load(&sample, &manager->allowed[manager->cpus_used]);
	sample.extra = sample_stalled(manager, sample.units,
				      sample.seen.running, now_ns);
	return manager_count_helpers(&manager->count, &sample);
}

/* Sleep for @ns, or until something may have happened. */
static void pause_manager(struct manager *manager, uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000),
				 (long)(ns % 1000000000) };
	struct pollfd fds[] = { { monitor_fd(), POLLIN, 0 },
				{ manager->doorbell, POLLIN, 0 } };

	if (manager->doorbell < 0) {
		futex_wait(&manager->stop, 0, ns);
		return;
	}
	if (ppoll(fds, 2, &time, NULL) > 0 && fds[0].revents)
		monitor_drain();
}

static bool manage_helpers(struct pool_item *pool_item)
{
	struct manager *manager = (struct manager *)pool_item;
	const struct kt_job *core = &manager->job->ctx.job;

	while (!kt_load_acquire(&manager->stop) && !kt_job_idle(core) &&
	       !kt_job_stopped(core) && !pool_closing()) {
		uint64_t now_ns = kt_now_ns();
		unsigned wanted = count_helpers(manager, now_ns);
		uint64_t pause_ns;

		/* In this order: never old CPUs for a new generation. */
		manager->used_generation =
			kt_load_acquire(&manager->generation);
		kt_store_release(&manager->cpus_used,
				 kt_load_acquire(&manager->cpus_next));
		keep_helpers(manager, wanted, now_ns);
		pause_ns = (kt_now_ns() - now_ns) * PERIOD_PART;
		pause_ns = KT_MIN(pause_ns, PERIOD_MAX_NS);
		pause_manager(manager, KT_MAX(pause_ns, PERIOD_NS));
	}
	return true;
}

/* ---- the caller's side ---- */

/* What client and administrator allow beside the job's own threads. */
static unsigned max_helpers(const struct user_job *job)
{
	unsigned max = HELPERS_MAX;
	unsigned file = config_get()->max_threads;

	if (!kt_load(&pool_machine()->limit))
		return 0;
	if (job->ctl->max_threads)
		max = KT_MIN(max, job->ctl->max_threads - job->ctx.tune.max);
	if (file)
		max = KT_MIN(max, file > job->ctx.tune.max
					  ? file - job->ctx.tune.max
					  : 0);
	return max;
}

static struct manager *make_manager(struct user_job *job, unsigned max,
				    uint64_t now_ns)
{
	struct manager *manager = calloc(1, sizeof(*manager));
	size_t size;

	if (!manager)
		return NULL;
	size = (max * sizeof(*manager->helpers.items) + 63) / 64 * 64;
	manager->helpers.items = aligned_alloc(64, size);
	manager->last =
		calloc(1 + job->ctx.helpers.nr + max, sizeof(*manager->last));
	if (!manager->helpers.items || !manager->last) {
		free(manager->helpers.items);
		free(manager->last);
		free(manager);
		return NULL;
	}
	memset(manager->helpers.items, 0, size);
	manager->helpers.nr = max;
	manager->job = job;
	manager->doorbell = monitor_fd() < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
	manager->cpus[0] = job->cpus;
	manager->allowed[0] = job->affinity;
	manager->generation = job->ctx.cpus_generation;
	manager->done_ns = now_ns;
	manager->caller = (uint32_t)gettid();
	io_history_begin(&manager->count.io, job->ctl->name,
			 job->ctx.job.split.min_chunk, job->ctx.tune.max,
			 job->ctx.tune.max + max);
	manager_count_begin(&manager->count);
	manager->pool_item.work = manage_helpers;
	manager->pool_item.cpus = &manager->cpus[0];
	manager->pool_item.level = KT_PLACEMENT_ANY;
	manager->pool_item.anywhere = true;
	return manager;
}

/* If no helper idles now, one may at the next refresh. */
static void submit_manager(struct manager *manager, uint64_t now_ns)
{
	if (manager->pool_item.submitted)
		return;
	manager->pool_item.now_ns = now_ns;
	pool_submit(&manager->pool_item, -1);
}

static void start_manager(struct user_job *job, uint64_t now_ns)
{
	unsigned max = max_helpers(job);
	struct manager *manager;

	if (!max)
		return;
	pool_more(1, &job->cpus);
	manager = make_manager(job, max, now_ns);
	if (!manager)
		return;
	kt_store_release(&job->manager, manager);
	kt_store_release(&job->ctx.compensating, &manager->helpers);
	submit_manager(manager, now_ns);
}

/* The job's CPUs may have changed; compensating helpers on other CPUs leave at their
 * next chunk. */
static void update_cpus(struct user_job *job)
{
	struct manager *manager = job->manager;
	uint32_t other = !manager->cpus_next;

	job_assert_owner(job);
	kt_store(&manager->has_one_cpu, job->nr_cpus < 2);
	if (manager->generation == job->ctx.cpus_generation ||
	    kt_load_acquire(&manager->cpus_used) == other)
		return;
	manager->cpus[other] = job->cpus;
	manager->allowed[other] = job->affinity;
	kt_store_release(&manager->cpus_next, other);
	kt_store_release(&manager->generation, job->ctx.cpus_generation);
}

/* Since the last call: did the thread give up its CPU by itself, as by waiting?  Waiting
 * for a lock of the kernel does not count where that can be told: a compensating helper
 * would wait for it too. */
static bool has_waited(struct user_job *job)
{
	struct rusage usage = { 0 };
	bool waited;

	getrusage(RUSAGE_THREAD, &usage);
	waited = usage.ru_nvcsw > job->seen_waits &&
		 (!job->faults_only || usage.ru_majflt > job->seen_faults);
	job->seen_waits = usage.ru_nvcsw;
	job->seen_faults = usage.ru_majflt;
	return waited;
}

void manager_begin(struct user_job *job, uint64_t now_ns)
{
	if (job->ctl->flags & KTASK_BLOCKS && !(job->ctl->flags & KTASK_FIXED))
		start_manager(job, now_ns);
}

void manager_refresh(struct user_job *job, uint64_t now_ns)
{
	uint64_t cpu_ns, used_ns, passed_ns;
	bool waited;

	/* A job in the child of a fork is stopped.  Compensating helpers need a CPU. */
	if (job->ctl->flags & KTASK_FIXED || job->alone ||
	    kt_job_stopped(&job->ctx.job))
		return;
	if (job->manager) {
		update_cpus(job);
		submit_manager(job->manager, now_ns);
		return;
	}
	waited = has_waited(job);
	cpu_ns = kt_cpu_time_ns();
	used_ns = cpu_ns - job->seen_cpu_ns;
	passed_ns = now_ns - job->seen_ns;
	if (job->seen_ns && now_ns > job->seen_ns && waited &&
	    used_ns < passed_ns - passed_ns / IDLE_PART)
		start_manager(job, now_ns);
	job->seen_cpu_ns = cpu_ns;
	job->seen_ns = now_ns;
}

bool manager_wants_helpers(const struct user_job *job)
{
	const struct manager *manager = kt_load_acquire(&job->manager);

	return manager && kt_load(&manager->helpers.wanted);
}

unsigned manager_nr_helpers(const struct user_job *job)
{
	const struct manager *manager = kt_load_acquire(&job->manager);
	const struct kt_helpers *helpers;
	unsigned nr = 0;

	if (!manager)
		return 0;
	helpers = &manager->helpers;
	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++)
		nr += kt_load(&helpers->items[i].host.tid) != 0;
	return nr;
}

static void end_manager(struct pool_item *pool_item)
{
	while (pool_item_state(pool_item) != POOL_ITEM_DONE &&
	       !pool_cancel(pool_item, kt_now_ns()))
		pool_wait(pool_item);
}

static void ring_doorbell(int doorbell)
{
	uint64_t one = 1;

	/* An eventfd always takes one more. */
	if (write(doorbell, &one, sizeof(one)) < 0)
		return;
}

void manager_stop(struct user_job *job)
{
	struct manager *manager = job->manager;

	job_assert_owner(job);
	if (!manager)
		return;
	kt_store_release(&manager->stop, 1);
	futex_wake(&manager->stop, 1);
	if (manager->doorbell >= 0)
		ring_doorbell(manager->doorbell);
	if (manager->pool_item.submitted)
		end_manager(&manager->pool_item);
	io_history_end(&manager->count.io, job->ctl->name,
		       job->ctx.job.split.min_chunk);
}

void manager_release(struct user_job *job)
{
	if (!job->manager)
		return;
	if (job->manager->doorbell >= 0)
		close(job->manager->doorbell);
	free(job->manager->helpers.items);
	free(job->manager->last);
	free(job->manager);
	job->manager = NULL;
}
