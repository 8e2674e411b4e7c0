/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See spares.h.
 *
 * The watcher alone submits and collects spares, until it has left; then the
 * caller does.  It is a helper of the lowest priority: where no CPU is idle it
 * gets none, and nobody needs spares.
 *
 * That a thread is blocked is told by the program's monitor (ktask/monitor.h),
 * or else read from /proc/self/task, which everybody may.  libumt's program is
 * not loaded unasked: it costs all other programs something for as long as it
 * is there (umt.3).
 *
 * Behaves badly: a thread that is blocked for less than a millisecond or two
 * is replaced only while others like it are too.  A caller that blocks in its
 * very first chunk is replaced only in jobs of which that was said before
 * (KTASK_BLOCKS).  Without /proc there are no spares.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/config.h"
#include "lib/depths.h"
#include "lib/futex.h"
#include "lib/monitor.h"
#include "lib/spares.h"
#include "lib/spares_seen.h"
#include "lib/topo.h"

#define SPARES_MAX 64
/* Between two looks at the threads: at least, and so many times what a look
 * takes, so that looking never takes more than 2 % of a CPU. */
#define WATCH_NS 1000000
#define WATCH_PART 50
/* And at most: a look may have lasted because the watcher had no CPU. */
#define WATCH_MAX_NS 20000000
/* A caller that used less of its time than this, as 1 / n, is looked at. */
#define IDLE_PART 4

/* ---- spares ---- */

bool spares_alone(const struct user_job *job)
{
	return kt_load(&job->spares->alone);
}

void spares_place(struct user_job *job, struct seat *seat)
{
	seat->cpus = &job->spares->cpus[job->spares->used];
	seat->level = KT_PLACE_ANY;
}

/* With helpers made for those that lack one: others' jobs may have taken those
 * that were there.  What is done without them says nothing of their number. */
static void have_spares(struct spares *spares, unsigned wanted, uint64_t now_ns)
{
	struct kt_context *ctx = &spares->job->ctx;
	uint32_t placement = spares->used_places;
	unsigned lacking =
		kt_context_compensate(ctx, wanted, placement, now_ns);

	if (!lacking)
		return;
	pool_more(lacking, &spares->cpus[spares->used]);
	if (kt_context_compensate(ctx, wanted, placement, now_ns))
		kt_depth_pause(&spares->count.depth);
}

/* ---- the watcher ---- */

static unsigned step(struct spares *spares, uint64_t now_ns)
{
	struct user_job *job = spares->job;
	struct kt_context *ctx = &job->ctx;
	struct spares_look look = {
		.now_ns = now_ns,
		.units = kt_context_units(ctx),
		.chunk = kt_split_usual(&ctx->job.split, &ctx->job.cost),
		.threads = kt_load(&ctx->job.threads),
		.max = spares->helpers.nr,
		.cpus = job->topo->nr_cpus,
		.idle_only = limits_idle_only(),
		.alone = kt_load(&spares->alone),
	};

	/* Both at about the same time. */
	look.sight = seen_working(spares);
	look.runnable = limits_running();
	look.extra =
		seen_standing(spares, look.units, look.sight.running, now_ns);
	return spares_count(&spares->count, &look);
}

/* Until something may have happened. */
static void pause_for(struct spares *spares, uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000),
				 (long)(ns % 1000000000) };
	struct pollfd fds[] = { { monitor_fd(), POLLIN, 0 },
				{ spares->bell, POLLIN, 0 } };

	if (spares->bell < 0) {
		futex_wait(&spares->stop, 0, ns);
		return;
	}
	if (ppoll(fds, 2, &time, NULL) > 0 && fds[0].revents)
		monitor_calm();
}

static bool watch_work(struct seat *seat)
{
	struct spares *spares = (struct spares *)seat;
	const struct kt_job *core = &spares->job->ctx.job;

	while (!kt_load_acquire(&spares->stop) && !kt_job_idle(core) &&
	       !kt_job_stopped(core) && !pool_closing()) {
		uint64_t now_ns = kt_now_ns();
		unsigned wanted = step(spares, now_ns);
		uint64_t pause_ns;

		/* In this order: never old CPUs for new places. */
		spares->used_places = kt_load_acquire(&spares->places);
		kt_store_release(&spares->used,
				 kt_load_acquire(&spares->fresh));
		have_spares(spares, wanted, now_ns);
		pause_ns = (kt_now_ns() - now_ns) * WATCH_PART;
		pause_ns = KT_MIN(pause_ns, WATCH_MAX_NS);
		pause_for(spares, KT_MAX(pause_ns, WATCH_NS));
	}
	return true;
}

/* ---- the caller's side ---- */

/* What the client and the administrator left beside the job's own threads. */
static unsigned room_for_spares(const struct user_job *job)
{
	unsigned max = SPARES_MAX;
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

static struct spares *make_spares(struct user_job *job, unsigned max,
				  uint64_t now_ns)
{
	struct spares *spares = calloc(1, sizeof(*spares));
	size_t size;

	if (!spares)
		return NULL;
	size = (max * sizeof(*spares->helpers.items) + 63) / 64 * 64;
	spares->helpers.items = aligned_alloc(64, size);
	spares->last =
		calloc(1 + job->ctx.helpers.nr + max, sizeof(*spares->last));
	if (!spares->helpers.items || !spares->last) {
		free(spares->helpers.items);
		free(spares->last);
		free(spares);
		return NULL;
	}
	memset(spares->helpers.items, 0, size);
	spares->helpers.nr = max;
	spares->job = job;
	spares->bell = monitor_fd() < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
	spares->cpus[0] = job->cpus;
	spares->places = job->ctx.placement;
	spares->done_ns = now_ns;
	spares->caller = (uint32_t)gettid();
	depths_begin(&spares->count.depth, job->ctl->name,
		     job->ctx.job.split.min_chunk, job->ctx.tune.max,
		     job->ctx.tune.max + max);
	spares_count_begin(&spares->count);
	spares->watch.work = watch_work;
	spares->watch.cpus = &spares->cpus[0];
	spares->watch.level = KT_PLACE_ANY;
	spares->watch.anywhere = true;
	return spares;
}

/* Where no helper idles now, one may at the next look. */
static void offer_watch(struct spares *spares, uint64_t now_ns)
{
	if (spares->watch.seated)
		return;
	spares->watch.now_ns = now_ns;
	pool_offer(&spares->watch, -1);
}

static void begin(struct user_job *job, uint64_t now_ns)
{
	unsigned max = room_for_spares(job);
	struct spares *spares;

	if (!max)
		return;
	pool_more(1, &job->cpus);
	spares = make_spares(job, max, now_ns);
	if (!spares)
		return;
	kt_store_release(&job->spares, spares);
	kt_store_release(&job->ctx.compensating, &spares->helpers);
	offer_watch(spares, now_ns);
}

/* The places have changed; spares on others leave at their next chunk. */
static void renew(struct user_job *job)
{
	struct spares *spares = job->spares;
	uint32_t other = !spares->fresh;

	kt_store(&spares->alone, job->nr_cpus < 2);
	if (spares->places == job->ctx.placement ||
	    kt_load_acquire(&spares->used) == other)
		return;
	spares->cpus[other] = job->cpus;
	kt_store_release(&spares->fresh, other);
	kt_store_release(&spares->places, job->ctx.placement);
}

/* Waits that the thread began itself; it may also have lost its CPU. */
static long nr_waits(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

void spares_begin(struct user_job *job, uint64_t now_ns)
{
	if (job->ctl->flags & KTASK_BLOCKS && !(job->ctl->flags & KTASK_FIXED))
		begin(job, now_ns);
}

void spares_look(struct user_job *job, uint64_t now_ns)
{
	uint64_t cpu_ns, used_ns, passed_ns;
	long waits;

	/* Stopped is also the job of a child that was forked in a chunk. */
	if (job->ctl->flags & KTASK_FIXED || kt_job_stopped(&job->ctx.job))
		return;
	if (job->spares) {
		renew(job);
		offer_watch(job->spares, now_ns);
		return;
	}
	waits = nr_waits();
	cpu_ns = job_cpu_ns();
	used_ns = cpu_ns - job->looked_cpu_ns;
	passed_ns = now_ns - job->looked_ns;
	if (job->looked_ns && now_ns > job->looked_ns &&
	    waits > job->looked_waits &&
	    used_ns < passed_ns - passed_ns / IDLE_PART)
		begin(job, now_ns);
	job->looked_waits = waits;
	job->looked_cpu_ns = cpu_ns;
	job->looked_ns = now_ns;
}

bool spares_wanted(const struct user_job *job)
{
	const struct spares *spares = kt_load_acquire(&job->spares);

	return spares && kt_load(&spares->helpers.wanted);
}

unsigned spares_working(const struct user_job *job)
{
	const struct spares *spares = kt_load_acquire(&job->spares);
	const struct kt_helpers *helpers;
	unsigned nr = 0;

	if (!spares)
		return 0;
	helpers = &spares->helpers;
	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++)
		nr += kt_load(&helpers->items[i].host.tid) != 0;
	return nr;
}

static void end_watch(struct seat *seat)
{
	while (pool_seat_state(seat) != SEAT_DONE &&
	       !pool_withdraw(seat, kt_now_ns()))
		pool_wait(seat);
}

static void ring(int bell)
{
	uint64_t one = 1;

	/* It has room for one. */
	if (write(bell, &one, sizeof(one)) < 0)
		return;
}

void spares_stop(struct user_job *job)
{
	struct spares *spares = job->spares;

	if (!spares)
		return;
	kt_store_release(&spares->stop, 1);
	futex_wake(&spares->stop, 1);
	if (spares->bell >= 0)
		ring(spares->bell);
	if (spares->watch.seated)
		end_watch(&spares->watch);
	depths_end(&spares->count.depth, job->ctl->name,
		   job->ctx.job.split.min_chunk);
}

void spares_release(struct user_job *job)
{
	if (!job->spares)
		return;
	if (job->spares->bell >= 0)
		close(job->spares->bell);
	free(job->spares->helpers.items);
	free(job->spares->last);
	free(job->spares);
	job->spares = NULL;
}
