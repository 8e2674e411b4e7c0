/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See spares.h.
 *
 * The watcher alone seats and collects spares, until it has left; then the
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

/* ---- a spare ---- */

static bool spare_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run_seat *rs =
		(struct run_seat *)((char *)worker -
				    offsetof(struct run_seat, worker));

	monitor_join();
	return rs->index >= kt_load(&rs->run->spares->wanted) ||
	       rs->places != kt_load(&rs->run->places) ||
	       kt_load(&rs->run->spares->alone) || pool_closing();
}

static bool spare_work(struct seat *seat)
{
	struct run_seat *rs = (struct run_seat *)seat;
	struct run *run = rs->run;
	struct run_context *context = run_context();
	struct run_context outer = *context;
	uint64_t cpu_ns = run->measure_cpu ? run_cpu_ns() : 0;

	context->run = run;
	context->worker = &rs->worker;
	kt_store(&rs->tid, pool_seat_tid(seat));
	pool_seat_blocks(seat);
	monitor_join();
	kt_job_work(&run->job, &rs->worker);
	monitor_leave();
	kt_store(&rs->tid, 0);
	*context = outer;
	if (run->measure_cpu)
		rs->cpu_ns = run_cpu_ns() - cpu_ns;
	return true;
}

static bool offer_spare(struct spares *spares, unsigned index, uint64_t now_ns)
{
	struct run_seat *rs = &spares->seats[index];

	rs->run = spares->run;
	rs->index = index;
	rs->cpu_ns = 0;
	kt_store(&rs->tid, 0);
	rs->seat.work = spare_work;
	rs->seat.now_ns = now_ns;
	rs->places = spares->used_places;
	rs->seat.cpus = &spares->cpus[spares->used];
	rs->seat.level = KT_PLACE_ANY;
	rs->seat.anywhere = true;
	kt_worker_begin(&rs->worker, &spares->run->job, KT_NO_NODE, index);
	rs->worker.tick = spare_tick;
	return pool_offer(&rs->seat, -1);
}

/* A spare has left: keep what it did.  A failure stays for undo. */
static void collect(struct spares *spares, struct run_seat *rs)
{
	kt_store(&rs->seat.seated, false);
	spares->chunks += rs->worker.chunks;
	kt_store(&spares->units, spares->units + rs->worker.units);
	spares->cpu_ns += rs->cpu_ns;
	if (rs->worker.chunks && !rs->counted) {
		rs->counted = true;
		spares->threads++;
	}
	rs->worker.chunks = 0;
	kt_store(&rs->worker.units, 0);
}

static bool occupied(struct spares *spares, struct run_seat *rs)
{
	if (!rs->seat.seated)
		return false;
	if (pool_seat_state(&rs->seat) != SEAT_DONE)
		return true;
	collect(spares, rs);
	return false;
}

/*
 * As with other seats: offers that nobody took yet are withdrawn.
 *
 * Return: how many could not be offered.
 */
static unsigned seat_spares(struct spares *spares, unsigned wanted,
			    uint64_t now_ns)
{
	unsigned i, lacking;

	kt_store(&spares->wanted, wanted);
	for (i = 0; i < wanted; i++) {
		struct run_seat *rs = &spares->seats[i];

		if (i < spares->nr &&
		    (occupied(spares, rs) || rs->worker.failed))
			continue;
		if (!offer_spare(spares, i, now_ns))
			break;
		kt_store_release(&spares->nr, KT_MAX(spares->nr, i + 1));
	}
	lacking = wanted - i;
	for (i = wanted; i < spares->nr; i++) {
		struct run_seat *rs = &spares->seats[i];

		if (rs->seat.seated && pool_withdraw(&rs->seat))
			kt_store(&rs->seat.seated, false);
	}
	return lacking;
}

/* With helpers made for those that lack one: others' jobs may have taken those
 * that were there.  What is done without them says nothing of their number. */
static void have_spares(struct spares *spares, unsigned wanted, uint64_t now_ns)
{
	unsigned lacking = seat_spares(spares, wanted, now_ns);

	if (!lacking)
		return;
	pool_more(lacking, &spares->cpus[spares->used]);
	if (seat_spares(spares, wanted, now_ns))
		kt_depth_pause(&spares->count.depth);
}

/* ---- the watcher ---- */

static unsigned step(struct spares *spares, uint64_t now_ns)
{
	struct run *run = spares->run;
	struct spares_look look = {
		.now_ns = now_ns,
		.units = run_units(run),
		.chunk = kt_split_usual(&run->job.split, &run->job.cost),
		.threads = kt_load(&run->job.threads),
		.max = spares->max,
		.cpus = run->topo->nr_cpus,
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
	struct run *run = spares->run;

	while (!kt_load_acquire(&spares->stop) && !kt_job_idle(&run->job) &&
	       !kt_job_stopped(&run->job) && !pool_closing()) {
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
static unsigned room_for_spares(const struct run *run)
{
	unsigned max = SPARES_MAX;
	unsigned file = config_get()->max_threads;

	if (!kt_load(&pool_machine()->limit))
		return 0;
	if (run->ctl->max_threads)
		max = KT_MIN(max, run->ctl->max_threads - run->tune.max);
	if (file)
		max = KT_MIN(max,
			     file > run->tune.max ? file - run->tune.max : 0);
	return max;
}

static struct spares *make_spares(struct run *run, unsigned max,
				  uint64_t now_ns)
{
	struct spares *spares = calloc(1, sizeof(*spares));

	if (!spares)
		return NULL;
	spares->seats = aligned_alloc(64, (max * sizeof(*spares->seats) + 63) /
						  64 * 64);
	spares->last = calloc(1 + run->nr_seats + max, sizeof(*spares->last));
	if (!spares->seats || !spares->last) {
		free(spares->seats);
		free(spares->last);
		free(spares);
		return NULL;
	}
	memset(spares->seats, 0, max * sizeof(*spares->seats));
	spares->run = run;
	spares->max = max;
	spares->bell = monitor_fd() < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
	spares->cpus[0] = run->cpus;
	spares->places = run->places;
	spares->done_ns = now_ns;
	spares->caller = (uint32_t)gettid();
	depths_begin(&spares->count.depth, run->ctl->name,
		     run->job.split.min_chunk, run->tune.max,
		     run->tune.max + max);
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

static void begin(struct run *run, uint64_t now_ns)
{
	unsigned max = room_for_spares(run);
	struct spares *spares;

	if (!max)
		return;
	pool_more(1, &run->cpus);
	spares = make_spares(run, max, now_ns);
	if (!spares)
		return;
	kt_store_release(&run->spares, spares);
	offer_watch(spares, now_ns);
}

/* The places have changed; spares on others leave at their next chunk. */
static void renew(struct run *run)
{
	struct spares *spares = run->spares;
	uint32_t other = !spares->fresh;

	kt_store(&spares->alone, run->nr_cpus < 2);
	if (spares->places == run->places ||
	    kt_load_acquire(&spares->used) == other)
		return;
	spares->cpus[other] = run->cpus;
	kt_store_release(&spares->fresh, other);
	kt_store_release(&spares->places, run->places);
}

/* Waits that the thread began itself; it may also have lost its CPU. */
static long nr_waits(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

void spares_begin(struct run *run, uint64_t now_ns)
{
	if (run->ctl->flags & KTASK_BLOCKS && !(run->ctl->flags & KTASK_FIXED))
		begin(run, now_ns);
}

void spares_look(struct run *run, uint64_t now_ns)
{
	uint64_t cpu_ns, used_ns, passed_ns;
	long waits;

	/* Stopped is also the job of a child that was forked in a chunk. */
	if (run->ctl->flags & KTASK_FIXED || kt_job_stopped(&run->job))
		return;
	if (run->spares) {
		renew(run);
		offer_watch(run->spares, now_ns);
		return;
	}
	waits = nr_waits();
	cpu_ns = run_cpu_ns();
	used_ns = cpu_ns - run->looked_cpu_ns;
	passed_ns = now_ns - run->looked_ns;
	if (run->looked_ns && now_ns > run->looked_ns &&
	    waits > run->looked_waits &&
	    used_ns < passed_ns - passed_ns / IDLE_PART)
		begin(run, now_ns);
	run->looked_waits = waits;
	run->looked_cpu_ns = cpu_ns;
	run->looked_ns = now_ns;
}

uint64_t spares_units(const struct run *run)
{
	const struct spares *spares = kt_load_acquire(&run->spares);
	uint64_t units;

	if (!spares)
		return 0;
	units = kt_load(&spares->units);
	for (unsigned i = 0; i < kt_load_acquire(&spares->nr); i++)
		units += kt_load(&spares->seats[i].worker.units);
	return units;
}

bool spares_wanted(const struct run *run)
{
	const struct spares *spares = kt_load_acquire(&run->spares);

	return spares && kt_load(&spares->wanted);
}

unsigned spares_working(const struct run *run)
{
	const struct spares *spares = kt_load_acquire(&run->spares);
	unsigned nr = 0;

	for (unsigned i = 0; spares && i < kt_load_acquire(&spares->nr); i++)
		nr += kt_load(&spares->seats[i].tid) != 0;
	return nr;
}

bool spares_settled(const struct run *run)
{
	const struct spares *spares = kt_load_acquire(&run->spares);

	if (!spares)
		return true;
	for (unsigned i = 0; i < kt_load_acquire(&spares->nr); i++)
		if (kt_load(&spares->seats[i].seat.seated) &&
		    pool_seat_state(&spares->seats[i].seat) == SEAT_RUNNING)
			return false;
	return true;
}

/* Return: true if the priority was lent. */
static bool end_seat(struct seat *seat)
{
	bool lent = false;

	while (pool_seat_state(seat) != SEAT_DONE && !pool_withdraw(seat))
		lent |= pool_wait(seat);
	return lent;
}

static void ring(int bell)
{
	uint64_t one = 1;

	/* It has room for one. */
	if (write(bell, &one, sizeof(one)) < 0)
		return;
}

void spares_end(struct run *run)
{
	struct spares *spares = run->spares;

	if (!spares)
		return;
	kt_store_release(&spares->stop, 1);
	futex_wake(&spares->stop, 1);
	if (spares->bell >= 0)
		ring(spares->bell);
	if (spares->watch.seated)
		end_seat(&spares->watch);
	kt_store(&spares->wanted, 0);
	for (unsigned i = 0; i < spares->nr; i++) {
		struct run_seat *rs = &spares->seats[i];

		if (!rs->seat.seated)
			continue;
		run->lent += end_seat(&rs->seat);
		collect(spares, rs);
	}
	depths_end(&spares->count.depth, run->ctl->name,
		   run->job.split.min_chunk);
	run->chunks += spares->chunks;
	kt_store(&run->units, run->units + spares->units);
	kt_store(&spares->units, 0);
	run->helper_cpu_ns += spares->cpu_ns;
	run->threads += spares->threads;
}

unsigned spares_nr(const struct run *run)
{
	return run->spares ? run->spares->nr : 0;
}

const struct kt_worker *spares_worker_at(const struct run *run, unsigned index)
{
	return &run->spares->seats[index].worker;
}

void spares_release(struct run *run)
{
	if (!run->spares)
		return;
	if (run->spares->bell >= 0)
		close(run->spares->bell);
	free(run->spares->seats);
	free(run->spares->last);
	free(run->spares);
	run->spares = NULL;
}
