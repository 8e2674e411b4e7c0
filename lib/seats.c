/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Seats: the helpers of a run, from the offer to what they leave behind.
 *
 * Only helpers that have begun are waited for; an offer that nobody took is
 * withdrawn, so a job is never slower for a helper that gets no CPU.
 */
#include <time.h>

#include "lib/monitor.h"
#include "lib/places.h"
#include "lib/slots.h"
#include "lib/spares.h"

/* An offer that nobody took for so long shall be made for any CPU. */
#define STARVED_NS 3000000

/* A helper of the lowest priority that has to share its CPU runs for a tick of
 * the scheduler and then waits for a second: so long a chunk is none of ours
 * (a millisecond), or a helper without a CPU.  Which of the two, the number of
 * running threads tells.  Beside threads as low as itself it would not wait so
 * long. */
#define STUCK_NS 20000000

/* How often a helper that may use idle CPUs only, and has no caller that looks,
 * looks whether there is one for it. */
#define IDLE_LOOK_NS 4000000

static __thread struct run_context this_thread;

struct run_context *run_context(void)
{
	return &this_thread;
}

uint64_t run_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Seat i is the (i + 2)-th thread, counting the caller. */
static bool must_leave(struct run_seat *rs)
{
	return rs->index + 2 > kt_load(&rs->run->job.threads) ||
	       rs->places != kt_load(&rs->run->places) || pool_closing() ||
	       slots_must_leave(rs->slot, pool_seat_tid(&rs->seat));
}

static bool over(const struct kt_job *job)
{
	return kt_job_stopped(job) || kt_job_idle(job) ||
	       (job->deadline_ns && kt_now_ns() >= job->deadline_ns);
}

/* By a helper that has to look for itself, if it is time to: until a CPU is
 * idle, or somebody waits for the job. */
static void await_idle_cpu(struct run_seat *rs, uint64_t now_ns)
{
	const struct timespec nap = { .tv_nsec = IDLE_LOOK_NS };

	if (!kt_load(&rs->run->alone) || now_ns < rs->next_look_ns ||
	    !limits_idle_only())
		return;
	while (kt_load(&rs->run->alone) && !over(&rs->run->job) &&
	       !must_leave(rs) && !limits_idle_room())
		nanosleep(&nap, NULL);
	rs->next_look_ns = kt_now_ns() + IDLE_LOOK_NS;
}

static bool helper_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run_seat *rs =
		(struct run_seat *)((char *)worker -
				    offsetof(struct run_seat, worker));

	if (kt_load(&rs->run->spares))
		monitor_join();
	if (spares_wanted(rs->run))
		pool_seat_blocks(&rs->seat);
	await_idle_cpu(rs, now_ns);
	return must_leave(rs);
}

static void put_slots(struct run_seat *rs)
{
	if (rs->node_cap)
		kt_cap_put(rs->node_cap);
	kt_cap_put(pool_machine());
	kt_cap_put(rs->run->budget);
}

static bool helper_work(struct seat *seat)
{
	struct run_seat *rs = (struct run_seat *)seat;
	struct run *run = rs->run;
	struct run_context *context = run_context();
	struct run_context outer = *context;
	uint64_t cpu_ns = run->measure_cpu ? run_cpu_ns() : 0;
	int slot = slots_take(pool_seat_tid(seat));

	if (slot < 0) {
		slots_demand_alive(run->demand, kt_now_ns());
		return false;
	}
	kt_store(&rs->slot, slot);
	context->run = run;
	context->worker = &rs->worker;
	kt_store(&rs->tid, pool_seat_tid(seat));
	rs->next_look_ns = 0;
	await_idle_cpu(rs, rs->seat.now_ns);
	kt_job_work(&run->job, &rs->worker);
	monitor_leave();
	kt_store(&rs->tid, 0);
	*context = outer;
	if (run->measure_cpu)
		rs->cpu_ns = run_cpu_ns() - cpu_ns;
	if (kt_load(&run->generation) != pool_generation())
		return true; /* the child of a fork; the slot is the parent's */
	slots_put(slot);
	put_slots(rs);
	return true;
}

/* Take the slots that a helper needs.  Return: false if there are none. */
static bool get_slots(struct run_seat *rs, int node_index)
{
	int bound;

	if (!kt_cap_get(rs->run->budget))
		return false;
	bound = kt_caps_get(pool_machine(), pool_node(node_index));
	if (bound < 0) {
		kt_cap_put(rs->run->budget);
		return false;
	}
	rs->node_cap = bound ? pool_node(node_index) : NULL;
	return true;
}

static bool offer_seat(struct run *run, unsigned index)
{
	struct run_seat *rs = &run->seats[index];
	unsigned range = kt_place_deal(&run->job, NULL);
	int node = places_node(run, range, index);

	rs->run = run;
	rs->index = index;
	rs->range = range;
	rs->cpu_ns = 0;
	rs->seen_ns = 0;
	rs->slot = -1;
	kt_store(&rs->tid, 0);
	rs->seen_cpu_ns = UINT64_MAX;
	rs->seat.work = helper_work;
	rs->seat.now_ns = run->seat_ns;
	rs->seat.anywhere = run->alone;
	if (!get_slots(rs, node))
		goto undeal;
	places_seat(run, rs, node);
	kt_worker_begin(&rs->worker, &run->job,
			rs->node_cap ? run->topo->ids[node] : KT_NO_NODE, 0);
	rs->worker.range = range;
	rs->worker.tick = helper_tick;
	if (pool_offer(&rs->seat, node))
		return true;
	put_slots(rs);
undeal:
	kt_place_undeal(&run->job, range);
	return false;
}

/* A helper has left: keep what it did, free the seat. */
static void collect(struct run *run, struct run_seat *rs)
{
	kt_store(&rs->seat.seated, false);
	kt_place_undeal(&run->job, rs->range);
	run->chunks += rs->worker.chunks;
	kt_store(&run->units, run->units + rs->worker.units);
	run->helper_cpu_ns += rs->cpu_ns;
	if (rs->worker.chunks && !rs->counted) {
		rs->counted = true;
		run->threads++;
	}
	/* Counted; a failure is kept for undo. */
	rs->worker.chunks = 0;
	kt_store(&rs->worker.units, 0);
}

/* Return: false if a helper has begun. */
static bool take_back(struct run *run, struct run_seat *rs)
{
	if (!pool_withdraw(&rs->seat))
		return false;
	put_slots(rs);
	kt_place_undeal(&run->job, rs->range);
	kt_store(&rs->seat.seated, false);
	return true;
}

/* Is it in a chunk of which no end is seen? */
static bool stuck(struct run_seat *rs, uint64_t now_ns)
{
	uint64_t units = kt_load(&rs->worker.units);

	if (!rs->seat.seated || pool_seat_state(&rs->seat) != SEAT_RUNNING)
		return false;
	if (!rs->seen_ns || units != rs->seen_units) {
		rs->seen_units = units;
		rs->seen_ns = now_ns;
	}
	return now_ns - rs->seen_ns >= STUCK_NS;
}

bool run_helper_stuck(struct run *run, uint64_t now_ns)
{
	bool any = false;

	for (unsigned i = 0; i < run->nr_seated; i++)
		any |= stuck(&run->seats[i], now_ns);
	return any;
}

/* The choicest CPUs may be busy with other work while others idle. */
static bool starves(const struct run *run, const struct run_seat *rs)
{
	return rs->seat.level != KT_PLACE_ANY &&
	       run->seat_ns - rs->seat.now_ns >= STARVED_NS &&
	       pool_seat_state(&rs->seat) == SEAT_OFFERED;
}

/* Is the seat taken?  What a helper left behind is collected. */
static bool occupied(struct run *run, struct run_seat *rs)
{
	if (!rs->seat.seated)
		return false;
	if (pool_seat_state(&rs->seat) == SEAT_DONE) {
		collect(run, rs);
		return false;
	}
	if (!starves(run, rs) || !take_back(run, rs))
		return true;
	rs->starved = true;
	return false;
}

/*
 * Has a helper that shall leave not left yet?  If it was given no CPU since the
 * last look it may not be for long: its slot is of use to others meanwhile.
 */
static bool leaving(struct run_seat *rs)
{
	uint64_t cpu_ns;

	if (!rs->seat.seated || pool_seat_state(&rs->seat) != SEAT_RUNNING)
		return false;
	cpu_ns = pool_seat_cpu_ns(&rs->seat);
	if (cpu_ns == rs->seen_cpu_ns && cpu_ns != UINT64_MAX)
		slots_stand_aside(kt_load(&rs->slot), pool_seat_tid(&rs->seat));
	rs->seen_cpu_ns = cpu_ns;
	return true;
}

/* Make @threads work on the job, as far as helpers can be had. */
void run_seat_threads(struct run *run, unsigned threads)
{
	unsigned nr = 1;

	threads = KT_MIN(threads, run->nr_seats + 1);
	for (; nr < threads; nr++) {
		struct run_seat *rs = &run->seats[nr - 1];

		if (nr <= run->nr_seated && occupied(run, rs))
			continue;
		/* What it left is needed for undo, and the job ends. */
		if (nr <= run->nr_seated && rs->worker.failed)
			break;
		if (nr > run->nr_seated) {
			rs->counted = false;
			rs->starved = false;
		}
		/* Before the offer: the helper compares itself with it. */
		kt_store(&run->job.threads, nr + 1);
		if (!offer_seat(run, nr - 1))
			break;
		/* With what offer_seat() wrote there: the watcher of spares
		 * reads it. */
		kt_store_release(&run->nr_seated, KT_MAX(run->nr_seated, nr));
	}
	kt_store(&run->job.threads, nr);
	run->leaving = false;
	for (unsigned i = nr - 1; i < run->nr_seated; i++) {
		struct run_seat *rs = &run->seats[i];

		/* One that only begins when it shall leave would do a chunk. */
		if (rs->seat.seated && !take_back(run, rs))
			run->leaving |= leaving(rs);
	}
}

/* First all offers that nobody took, so that no more helpers begin. */
void run_withdraw_offers(struct run *run)
{
	for (unsigned i = 0; i < run->nr_seated; i++) {
		struct run_seat *rs = &run->seats[i];

		if (rs->seat.seated)
			take_back(run, rs);
	}
}

static void wait_for_helper(struct run *run, struct run_seat *rs)
{
	run->lent += pool_wait(&rs->seat);
	if (pool_seat_state(&rs->seat) == SEAT_DONE)
		collect(run, rs);
}

/* One at a time: exactly one thread runs at the caller's priority. */
void run_wait_for_helpers(struct run *run)
{
	for (unsigned i = 0; i < run->nr_seated; i++) {
		struct run_seat *rs = &run->seats[i];

		while (rs->seat.seated && !take_back(run, rs))
			wait_for_helper(run, rs);
	}
}
