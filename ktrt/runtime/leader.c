/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader: the thread that is told of cores whose workers blocked, puts other
 * workers there, and makes threads if there are too few.
 *
 * It sleeps until UMT reports such a core or a worker asks for a thread.  To make up for
 * missed events it also polls all cores: every millisecond while there are tasks that
 * nobody has taken, every ten while anybody works, and not at all when all have been
 * idle for a tenth of a second.
 *
 * Leader-follower (after Schmidt, Pyarali et al., "Leader/Followers", 2000; proposed for
 * UMT in the founding paper): a leader that finds an idle core makes a sleeping worker
 * the leader, and becomes the core's worker itself.  So the core need not wait until
 * the sleeping worker runs.
 *
 * Locking: rt.h; what it marks C is written here, and in umt_load.c.  A leader that
 * has passed its leadership on writes none of that any more: the next one has what it
 * wrote by way of the signal.  struct watch is each leader's own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "trace.h"

#define TICK_MS 1
#define SLOW_TICK_MS 10
#define SLEEP_AFTER_NS 100000000
/* If no task has begun for this long, threads are added beyond the number asked for. */
#define STALL_NS 20000000

struct watch {
	uint64_t due_ns; /* the next poll that counts as a sample */
	uint64_t polled_ns;
	uint64_t busy_ns; /* when somebody last worked */
	uint64_t moved_ns; /* when a task was last begun */
	uint64_t tasks;
	bool work; /* tasks that nobody has taken */
	uint64_t rest_ns; /* when UMT may rest, unless somebody works */
	unsigned busy_polls; /* since it rests */
	unsigned in_vain; /* stalls that followed a search by all */
};

#ifdef RANK_ASSERTS
__thread bool leads_now;
#endif

static void set_leads(bool leads)
{
#ifdef RANK_ASSERTS
	leads_now = leads;
#else
	(void)leads;
#endif
}

void leader_kick(void)
{
	uint64_t one = 1;

	/* No cancellation point: its callers are in the middle of something.
	 * Where it fails the descriptor is readable already. */
	syscall(SYS_write, at_load(&rt.leader_fd), &one, sizeof(one));
}

/* ---- threads ---- */

/* Start a thread for a core for which there is no worker, unless the limit is reached. */
static bool add_thread(struct core *core)
{
	if (threads_at_limit())
		return false;
	at_add(&rt.idlers, IDLERS_SEARCH);
	park_arrive(core);
	if (!worker_start(core))
		return true;
	at_sub(&rt.idlers, IDLERS_SEARCH);
	park_arrive_not(core, NULL);
	return false;
}

static bool try_dispatch(struct core *core, bool blocked)
{
	at_add(&rt.idlers, IDLERS_SEARCH);
	if (park_dispatch(core, blocked))
		return true;
	at_sub(&rt.idlers, IDLERS_SEARCH);
	return false;
}

/* Prefer a worker that left the core because UMT was missing to a new thread. */
static bool add_worker(struct core *core)
{
	if (!rt_counts())
		park_stuck(core);
	at_add(&rt.idlers, IDLERS_SEARCH);
	if (park_reinforce(core))
		return true;
	at_sub(&rt.idlers, IDLERS_SEARCH);
	return add_thread(core);
}

/* A thread was wanted for the core; by now the core may have a worker. */
static void serve_wish(struct core *core)
{
	if (!at_peek(&core->wants_thread) || !at_swap(&core->wants_thread, 0))
		return;
	if (core_ready(core) > 0 || at_peek(&core->arriving))
		return;
	if (!sched_work_visible() && !at_peek(&core->nr_suspended))
		return;
	add_thread(core);
}

static void serve_wishes(void)
{
	for (unsigned i = 0; i < rt.nr_cores; i++)
		serve_wish(&rt.cores[i]);
}

/* ---- idle cores ---- */

/* A new leader, while this one goes to work. */
static bool pass_leadership(struct worker *w, struct core *core)
{
	struct worker *next;

	leader_assert();
	next = park_take_idle();
	if (!next)
		return false;
	at_add(&rt.idlers, IDLERS_SEARCH);
	park_arrive(core);
	at_poke(&w->core, core);
	w->leads = false;
	worker_bind(w);
	set_leads(false);
	next->leads = true;
	at_poke(&next->core, NULL);
	signal_give(&next->wake);
	return true;
}

/* true: the leader has become the core's worker. */
static bool serve_core(struct worker *w, struct core *core)
{
	if (core_ready(core) > 0 || at_peek(&core->arriving))
		return false;
	if (!sched_work_visible() && !at_peek(&core->nr_suspended)) {
		park_mark_idle(core);
		if (!sched_work_visible())
			return false;
	}
	if (!at_peek(&core->nr_suspended))
		early_note_served(core, now_ns());
	if (w && !at_peek(&core->nr_suspended) && pass_leadership(w, core)) {
		count_up(&w->counts.replaced);
		return true;
	}
	if (try_dispatch(core, true))
		at_add(&rt.replaced, 1);
	return false;
}

static bool serve_events(struct worker *w)
{
	struct umt_event event;

	while (rt_counts() && umt_next(rt.umt, &event) == 1) {
		int index = event.kind == UMT_IDLE && event.cpu < rt.nr_cpus
				    ? rt.core_of_cpu[event.cpu]
				    : -1;

		if (unlikely(rt.trace))
			trace_umt(&event);
		if (index >= 0 && serve_core(w, &rt.cores[index]))
			return true;
	}
	return false;
}

/* ---- polling all cores ---- */

static uint64_t tasks_begun(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);

		sum += w ? at_peek(&w->counts.tasks) : 0;
	}
	return sum;
}

/* Does every worker, and every attached thread that does a task or visits a core, sleep in the
 * middle of a task, having searched since the last stall?  A thread that was signalled and has
 * not run yet does not count as sleeping. */
static bool all_wait(void)
{
	bool wait = false;

	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);
		uint32_t *signal;

		if (!w || !worker_is_inside(w))
			continue;
		signal = at_load(&w->awaited);
		wait = signal && !signal_given(signal) &&
		       at_peek(&w->stalls) == rt.stalls;
		if (!wait)
			return false;
	}
	return wait;
}

/* After so many such stalls all have searched once, and none of the workers waits for the
 * tasks that attached threads have left to them. */
#define SEARCHED 2
/* After so many all have searched twice.  If external events are outstanding, allow a
 * second, because another thread rather than a task may end them. */
#define IN_VAIN 3
#define IN_VAIN_EVENTS 50

/* No thread can be added: threads that sleep in the middle of tasks must search. */
static void have_all_search(struct watch *watch)
{
	leader_assert();
	watch->in_vain = all_wait() ? watch->in_vain + 1 : 0;
	if (watch->in_vain >= SEARCHED)
		at_store(&rt.searched, rt.stalls + 1);
	if (watch->in_vain >= (at_load(&rt.events) ? IN_VAIN_EVENTS : IN_VAIN))
		at_store(&rt.in_vain, rt.stalls + 1);
	at_store(&rt.stalls, rt.stalls + 1);
	search_by_all();
}

/*
 * A stall: tasks are ready, none begins, no worker is left, and a core idles because its
 * workers wait for what only another task can do.  Then add threads, slowly, up to the
 * limit.
 */
static void break_stall(struct watch *watch, uint64_t now)
{
	uint64_t tasks = tasks_begun();
	unsigned i = 0;

	if (tasks != watch->tasks || !watch->work) {
		watch->tasks = tasks;
		watch->moved_ns = now;
		watch->in_vain = 0;
		return;
	}
	if (now - watch->moved_ns < STALL_NS)
		return;
	watch->moved_ns = now;
	while (i < rt.nr_cores && !worker_all_blocked(&rt.cores[i]))
		i++;
	if (i < rt.nr_cores && !add_worker(&rt.cores[i]))
		have_all_search(watch);
}

static bool somebody_suspended(void)
{
	for (unsigned i = 0; i < rt.nr_cores; i++)
		if (at_peek(&rt.cores[i].nr_suspended))
			return true;
	return false;
}

/*
 * Only polls by the clock count as samples.  Events come when workers block and wake,
 * which is when cores are overloaded, and would bias the figure.
 */
static void sample_cores(void)
{
	leader_assert();
	for (unsigned i = 0; i < rt.nr_cores; i++) {
		at_poke(&rt.samples, rt.samples + 1);
		if (core_ready(&rt.cores[i]) > 1)
			at_poke(&rt.overloaded, rt.overloaded + 1);
	}
}

static bool poll_cores(struct worker *w, struct watch *watch)
{
	for (unsigned i = 0; i < rt.nr_cores; i++) {
		struct core *core = &rt.cores[i];

		if (core_ready(core) > 0 ||
		    !(watch->work || at_peek(&core->nr_suspended)))
			continue;
		if (rt_counts()) {
			if (serve_core(w, core))
				return true;
		} else {
			try_dispatch(core, false);
		}
	}
	return false;
}

/* How long the leader may sleep. */
static int next_poll_ms(const struct watch *watch, uint64_t now)
{
	if (!watch->work && now - watch->busy_ns >= SLEEP_AFTER_NS) {
		if (!rt_counts() || at_peek(&rt.never_rests))
			return -1;
		return now < watch->rest_ns
			       ? (int)((watch->rest_ns - now) / 1000000) + 1
			       : TICK_MS;
	}
	return now < watch->due_ns ? (int)((watch->due_ns - now) / 1000000) + 1
				   : 0;
}

/* Return: false if the descriptor is not the leader's any more: the program has
 * closed it, and something else has its number. */
static bool take_event(void)
{
	uint64_t count;
	ssize_t got = read(rt.leader_fd, &count, sizeof(count));

	return got == sizeof(count) || (got < 0 && errno == EAGAIN);
}

static void wait_for_events(int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = rt.leader_fd, .events = POLLIN },
		{ .fd = rt_counts() ? umt_fd(rt.umt) : -1, .events = POLLIN },
	};
	bool sleeps = timeout_ms < 0 || timeout_ms > SLOW_TICK_MS;
	bool lost;

	if (sleeps)
		at_store_seq(&rt.leader_sleeps, 1);
	/* A worker may have begun before it could see that the leader sleeps. */
	if (sleeps && idle_cores() < rt.nr_cores)
		timeout_ms = SLOW_TICK_MS;
	poll(fds, 2, timeout_ms);
	at_store(&rt.leader_sleeps, 0);
	/* If the program has closed a descriptor, poll() returns at once: sleep here. */
	lost = (fds[0].revents | fds[1].revents) & POLLNVAL;
	if (fds[0].revents && !take_event())
		lost = true;
	if (lost)
		poll(NULL, 0, SLOW_TICK_MS);
}

/*
 * Is it time to poll all cores?  If not, the leader was woken shortly after the last poll,
 * whose result is out of date.  So the leader must not sleep for long because of it.
 */
static bool is_time(struct watch *watch, uint64_t now)
{
	uint64_t next_ns;

	if (now >= watch->due_ns) {
		sample_cores();
	} else if (now - watch->polled_ns < TICK_MS * 1000000 / 2) {
		watch->busy_ns = now;
		return false;
	}
	watch->polled_ns = now;
	watch->work = sched_work_visible() || somebody_suspended();
	if (watch->work || idle_cores() < rt.nr_cores) {
		watch->busy_ns = now;
		watch->rest_ns = now + at_peek(&rt.rest_after_ns);
	}
	next_ns = now + (watch->work ? TICK_MS : SLOW_TICK_MS) * 1000000ull;
	if (now >= watch->due_ns || next_ns < watch->due_ns)
		watch->due_ns = next_ns;
	return true;
}

/* UMT resumes after this many busy polls, which are some milliseconds apart. */
#define POLLS_TO_WAKE 2

static void rest_or_not(struct watch *watch, uint64_t now)
{
	bool busy = watch->busy_ns == now;

	if (at_load(&rt.resting)) {
		watch->busy_polls = busy ? watch->busy_polls + 1 : 0;
		if (watch->busy_polls >= POLLS_TO_WAKE)
			umt_rest_ends();
		return;
	}
	watch->busy_polls = 0;
	if (!busy && now >= watch->rest_ns && !umt_rest())
		watch->rest_ns = now + at_peek(&rt.rest_after_ns);
}

void leader_lead(struct worker *w)
{
	struct watch watch = { .busy_ns = now_ns() };

	watch.rest_ns = watch.busy_ns + at_peek(&rt.rest_after_ns);

	/*
	 * Only leaders make threads, and leader_stop() waits for the last leader.
	 * Between two leaders there may be none for a moment.  The next one counts
	 * itself here before it reads rt.stop, and leader_stop() sets rt.stop before
	 * it reads the count.  So it waits for this leader, or this one makes none.
	 */
	at_add(&rt.leading, 1);
	set_leads(true);
	if (w)
		worker_monitor(w, false);
	while (!at_load_seq(&rt.stop)) {
		uint64_t now = now_ns();

		wait_for_events(next_poll_ms(&watch, now));
		if (serve_events(w))
			break;
		serve_wishes();
		now = now_ns();
		if (!is_time(&watch, now))
			continue;
		if (rt_counts())
			umt_want(rt.umt, !idle_cores());
		umt_load_join_ended();
		rest_or_not(&watch, now);
		if (poll_cores(w, &watch))
			break;
		break_stall(&watch, now);
	}
	set_leads(false);
	if (w)
		worker_monitor(w, true);
	at_sub(&rt.leading, 1);
}

static void *leader_main(void *arg)
{
	pthread_setname_np(pthread_self(), "ktrt/leader");
	leader_lead(NULL);
	return NULL;
}

int leader_start(void)
{
	at_store(&rt.leader_fd, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (rt.leader_fd < 0)
		return -errno;
	if (rt.options.flags & KTRT_FOLLOW)
		return 0;
	if (worker_thread(&rt.leader, leader_main, NULL)) {
		/* What loads UMT writes to it. */
		umt_load_stop();
		close(rt.leader_fd);
		at_store(&rt.leader_fd, -1);
		return -EAGAIN;
	}
	return 0;
}

void leader_stop(void)
{
	leader_kick();
	if (!(rt.options.flags & KTRT_FOLLOW))
		pthread_join(rt.leader, NULL);
	while (at_load_seq(&rt.leading))
		sched_yield();
}
