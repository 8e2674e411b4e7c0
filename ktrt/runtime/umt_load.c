/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel takes some tenths of a second to load UMT's program, and tasks need not
 * wait for that.  So a thread opens UMT while workers begin without it.  Once it is open,
 * each worker has itself monitored, between two tasks or as it continues.  When all
 * workers that do not sleep are monitored, UMT's counts replace the runtime's own.
 *
 * Without UMT the runtime is the same, but blocked workers are replaced late.
 *
 * A runtime that ends before UMT is open does not wait for the thread, which then closes
 * UMT.
 *
 * An idle runtime must not cost other programs anything, but UMT's program runs at each
 * of their context switches.  So UMT pauses when all workers have slept for half a
 * second.  When somebody has worked for 10 ms a thread resumes it, as if it had just been
 * loaded.  Workers that continue in between are not monitored, and are again afterwards,
 * so that no count is stale.
 *
 * Behaves badly with a task that computes for long while UMT is loaded: until it ends,
 * all workers do without UMT.  A fork() waits until UMT is open.  A program that closes
 * descriptors that are not its own may close those that are being opened: it should
 * start with KTRT_UMT_FIRST.
 *
 * Locking: rt.h.  One thread at a time writes the fields of rt that belong to UMT.  If UMT
 * comes first, that is the thread that starts the runtime.  Otherwise it is the thread that
 * opens or wakes UMT while rt.loading is set, and the leader while it is not.  The order of
 * the writes is such that others never find rt.counts without rt.umt, and that while UMT
 * comes, rt.has_umt or rt.loading says so (ktrt-info):
 *
 *	use_umt()	umt, watching, counts, has_umt; then resting and loading go
 *	umt_rest()	resting; then watching and counts go; has_umt stays
 *
 * Of struct umt_load:
 *
 *	I: before the thread is made
 *	A: any thread: by atomic operations
 *	D: rt.load_lock, or the thread that starts the runtime
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "trace.h"

#define NAP_NS 1000000

/* Return: NULL if UMT counts nothing, or not all cores.  Workers are monitored even then,
 * because a program may read their counts. */
static const struct umt_core *usable_counts(struct umt *umt)
{
	if (umt_backend(umt) == UMT_EXPLICIT)
		return NULL;
	for (unsigned i = 0; i < rt.nr_cores; i++)
		if (rt.cores[i].cpu >= umt_nr_cores(umt))
			return NULL;
	return umt_cores(umt);
}

/* From now on UMT tells the leader about blocked cores. */
static void take_over(struct umt *umt, const struct umt_core *counts)
{
	at_store_seq(&rt.counts, counts);
	at_store(&rt.has_umt, 1);
	umt_want(umt, !idle_cores());
	leader_kick();
}

/* From now on workers have themselves monitored. */
static void use_umt(struct umt *umt)
{
	const struct timespec nap = { 0, NAP_NS };
	const struct umt_core *counts = usable_counts(umt);

	at_store_seq(&rt.watching, umt);
	if (!counts)
		return;
	while (!worker_all_monitored() && !at_load(&rt.stop))
		nanosleep(&nap, NULL);
	if (!at_load(&rt.stop))
		take_over(umt, counts);
}

/* Written once: whoever has seen its counts may read it. */
static void begin_with(struct umt *umt)
{
	at_store_seq(&rt.umt, umt);
	use_umt(umt);
}

/* With events of all kinds if tasks are traced and the backend has them. */
static int open_umt(struct umt **umt, bool traces)
{
	const struct umt_options traced = { .size = sizeof(traced),
					    .flags = UMT_TRACE };

	if (traces && !umt_open(umt, &traced))
		return 0;
	return umt_open(umt, NULL);
}

/* Whoever changes this first decides whether the runtime is still there. */
enum { LOAD_BEGUN, LOAD_DONE, LOAD_ABANDONED };

struct umt_load {
	uint32_t state; /* A */
	bool traces; /* I */
	pthread_t thread; /* D */
};

/* ktrt_stop() waits for this thread. */
static void *waker_main(void *arg)
{
	int error;

	pthread_setname_np(pthread_self(), "ktrt/umt");
	error = umt_resume(rt.umt);
	/* Or it cannot rest. */
	if (!error || error == -ENOTSUP)
		use_umt(rt.umt);
	else
		at_store(&rt.has_umt, 0);
	at_store(&rt.resting, 0);
	at_store(&rt.loading, 0);
	/* It joins this thread, and may have gone to sleep meanwhile. */
	leader_kick();
	return NULL;
}

static void *loader_main(void *arg)
{
	uint32_t begun = LOAD_BEGUN;
	struct umt_load *load = arg;
	struct umt *umt = NULL;
	int error;

	pthread_setname_np(pthread_self(), "ktrt/umt");
	error = open_umt(&umt, load->traces);
	if (!at_cas(&load->state, &begun, (uint32_t)LOAD_DONE)) {
		if (!error)
			umt_close(umt);
		free(load);
		return NULL;
	}
	if (!error)
		begin_with(umt);
	at_store(&rt.loading, 0);
	/* It joins this thread. */
	leader_kick();
	return NULL;
}

/* The stack that the program chose for its tasks may be too small for this. */
static bool start_loader(bool again)
{
	struct umt_load *load = calloc(1, sizeof(*load));
	sigset_t all, before;
	bool started;

	rt_assert_locked(again ? RANK_LOAD : RANK_START);
	if (!load)
		return false;
	load->traces = rt.trace;
	load->state = again ? LOAD_DONE : LOAD_BEGUN;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	at_store(&rt.loading, 1);
	started = !pthread_create(&load->thread, NULL,
				  again ? waker_main : loader_main, load);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started) {
		rt.load = load;
		return true;
	}
	at_store(&rt.loading, 0);
	free(load);
	return false;
}

void umt_load_start(void)
{
	struct umt *umt;

	if (rt.options.flags & (KTRT_NO_UMT | KTRT_UNBOUND))
		return;
	if (!(rt.options.flags & KTRT_UMT_FIRST) && start_loader(false))
		return;
	if (!open_umt(&umt, rt.trace))
		begin_with(umt);
}

void umt_load_stop(void)
{
	struct umt_load *load;
	uint32_t begun = LOAD_BEGUN;
	pthread_t thread;

	/* The leader starts no other, as rt.stop is set. */
	mutex_take(&rt.load_lock, RANK_LOAD);
	load = rt.load;
	rt.load = NULL;
	mutex_drop(&rt.load_lock, RANK_LOAD);
	if (!load)
		return;
	thread = load->thread;
	/* Whoever abandons the load must not touch it any more. */
	if (at_cas(&load->state, &begun, (uint32_t)LOAD_ABANDONED)) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	free(load);
}

/* ---- resting ---- */

/* Both the runtime's own counts and UMT's, which are updated a moment later, must agree. */
static bool all_sleep(const struct umt_core *counts)
{
	bool sleep = true;

	for (unsigned i = 0; i < rt.nr_cores && sleep; i++) {
		struct core *core = &rt.cores[i];

		core_lock(core);
		sleep = !core->active && !core->suspended &&
			umt_ready(counts, core->cpu) <= 0;
		core_unlock(core);
	}
	return sleep;
}

/* A thread that has opened or resumed UMT has ended, or is about to. */
static void join_ended(void)
{
	rt_assert_locked(RANK_LOAD);
	if (!rt.load)
		return;
	pthread_join(rt.load->thread, NULL);
	free(rt.load);
	rt.load = NULL;
}

void umt_load_join_ended(void)
{
	leader_assert();
	if (at_load(&rt.loading))
		return;
	mutex_take(&rt.load_lock, RANK_LOAD);
	join_ended();
	mutex_drop(&rt.load_lock, RANK_LOAD);
}

static void wake_umt(void)
{
	mutex_take(&rt.load_lock, RANK_LOAD);
	if (!at_load(&rt.stop)) {
		join_ended();
		start_loader(true);
	}
	mutex_drop(&rt.load_lock, RANK_LOAD);
}

/*
 * A worker that continues after the second check finds that nobody is monitored.  The
 * second check finds a worker that has continued before it.
 */
bool umt_rest(void)
{
	const struct umt_core *counts = rt_counts();
	int error;

	leader_assert();
	if (!counts || at_peek(&rt.never_rests) || rt.trace ||
	    at_load(&rt.loading) || !all_sleep(counts))
		return false;
	at_store(&rt.resting, 1);
	at_store_seq(&rt.watching, NULL);
	at_store_seq(&rt.counts, NULL);
	error = all_sleep(counts) ? umt_pause(rt.umt) : -EAGAIN;
	at_store(&rt.never_rests, error && error != -EAGAIN);
	if (error)
		wake_umt();
	return !error;
}

void umt_rest_ends(void)
{
	leader_assert();
	if (at_load(&rt.resting) && !at_load(&rt.loading))
		wake_umt();
}
