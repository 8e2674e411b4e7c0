/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The watcher: a thread that polls where large mappings are touched, decides how far
 * ahead they are made, and has helpers do it.  It makes no page itself.
 *
 * A process gets a watcher with its first large mapping.  It gets none if a watcher
 * could not help: on one CPU, if policy allows no helper, with a memory policy, before
 * Linux 5.14.  Nor does it get one that would count against a limit on the address space,
 * on data or on processes, or against what all processes together may have
 * (watcher_conditions.c).  It sleeps on a futex while there is nothing to watch, and
 * ends once the main thread is gone (exit/main_thread.c).  While nothing moves it polls
 * less and less often, down to every 50 ms.  Where all that it watches rests it ends, as it
 * counts against limits (watch_shared.c).  The next one goes on with the table as it is.
 *
 * It has the priority of the process, like idle helpers.  At the lowest priority it
 * would delay the end of the process on a busy machine.  It works at most for some
 * microseconds in every 100.
 *
 * It blocks the program's signals and has its own descriptor table.  The helpers that
 * it makes share that table, so they must not work on files (shim_ahead_end()).
 *
 *	NONE --start--> STARTING --> RUNNING --end--> ENDING --> NONE
 *	RUNNING --rest--> RESTING --start--> STARTING, or --end--> ENDING
 *
 * Locking: there is no lock.  Whoever brings the state to STARTING or to ENDING, by
 * compare-and-swap, owns watcher_thread until the next state.  Only the watcher brings it to
 * RESTING.  Any thread increments nr_news, and the watcher and its owner set is_quitting.
 * For the mappings see large_mappings.h.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/ahead/ahead.h"
#include "preload/ahead/grown_areas.h"
#include "preload/ahead/inherited_mappings.h"
#include "preload/ahead/joined_ranges.h"
#include "preload/exit/counts.h"
#include "preload/shim.h"
#include "util/clock.h"
#include "util/sched_attr.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define STACK_BYTES ((size_t)256 << 10)

/* How long an exec waits for its account. */
#define TELL_NS 500000000u

/* The shortest slice of a CPU that may be had. */
#define SLICE_NS 100000

/* SCHED_FLAG_RESET_ON_FORK, which older C libraries lack. */
#define RESET_ON_FORK 1

enum watcher_state { NONE, STARTING, RUNNING, RESTING, ENDING };

static _Atomic int watcher_state;
static pthread_t watcher_thread;
/* Changes when there is something new. */
static _Atomic uint32_t nr_news;
static atomic_bool is_quitting;
/* Requests to count what is watched, and those that were served: futexes. */
static _Atomic uint32_t nr_asked, nr_told;

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* ---- one mapping ---- */

static void begin_watching(struct large_mapping *mapping, uint64_t now)
{
	size_t nr_pages = (mapping->end - mapping->start) / AHEAD_PAGE_BYTES;
	size_t phase = mapping->start / AHEAD_PAGE_BYTES % AHEAD_BLOCK_PAGES;

	touch_tracker_init(&mapping->tracker, nr_pages, phase,
			   ahead_read_present, mapping);
	touch_steps_init(&mapping->steps, nr_pages, phase, ahead_read_present,
			 mapping);
	poll_schedule_init(&mapping->schedule, now);
	mapping->since_ns = now;
	mapping->helped_ns = 0;
	mapping->nr_windows = 0;
	mapping->advised_pages = 0;
	mapping->told = (struct told_pages){ 0 };
	mapping->is_left = false;
	mapping->short_of_memory = false;
	mapping->seen = true;
	if (mapping->waste)
		ahead_begin_shared(mapping);
	/* Pages that it has already were touched before the effort was noted. */
	ahead_restart_effort();
}

/* Return: whether there are new frontiers, or an error. */
static int scan_if_due(struct large_mapping *mapping, uint64_t now)
{
	int found;

	if (now < mapping->schedule.scan_due_ns)
		return 0;
	found = touch_tracker_scan(&mapping->tracker);
	/* Pages at a distance are not counted for all processes together. */
	if (!found && !mapping->tracker.nr && mapping->tracker.present &&
	    !mapping->waste)
		found = touch_steps_find(&mapping->steps);
	poll_schedule_scanned(&mapping->schedule, found, now, now_ns() - now);
	return found;
}

static bool is_window_passed(const struct large_mapping *mapping)
{
	return mapping->window.step
		       ? touch_steps_passed(&mapping->steps, &mapping->window)
		       : touch_tracker_passed(&mapping->tracker,
					      &mapping->window);
}

/* The program works on all CPUs, and would at this moment lose one to this thread. */
static bool leave_mapping(struct large_mapping *mapping, uint64_t now)
{
	if (!poll_schedule_may_leave(&mapping->schedule, now) ||
	    !ahead_is_needless(mapping, now))
		return false;
	poll_schedule_leave(&mapping->schedule, now);
	return true;
}

static void poll_mapping(struct large_mapping *mapping, uint64_t now)
{
	bool working = atomic_load(&mapping->job);
	int moved = touch_tracker_follow(&mapping->tracker);
	int found = moved < 0 ? moved : touch_tracker_probe(&mapping->tracker);

	poll_schedule_read(&mapping->schedule, now);
	moved |= found;
	if (found >= 0)
		found = touch_steps_follow(&mapping->steps);
	moved |= found;
	if (found >= 0)
		found = scan_if_due(mapping, now);
	if (found < 0 ||
	    (mapping->waste && atomic_load(&mapping->waste->given_back))) {
		/* The program changed the mapping without the shim. */
		large_mapping_give_up(mapping);
		return;
	}
	/* Cancel the job if the program has passed the window before helpers made it. */
	if (working && ahead_made(mapping, !atomic_load(&mapping->nr_blocks) ||
						   is_window_passed(mapping))) {
		ahead_note_result(mapping);
		working = false;
		moved = 1;
	}
	if (!working && !ahead_begin_window(mapping, now))
		atomic_store(&is_quitting, true);
	poll_schedule_next(&mapping->schedule, moved || found,
			   atomic_load(&mapping->job), now);
	if (poll_schedule_rests(&mapping->schedule))
		touch_tracker_rest(&mapping->tracker);
	if (mapping->waste)
		ahead_shared_polled(mapping, now);
}

/* Pages that were made, and perhaps never touched.  @is_there: pages can be read. */
static size_t wasted_pages(struct large_mapping *mapping, bool is_there)
{
	size_t pages = touch_tracker_pending(&mapping->tracker);
	long present = is_there ? touch_tracker_present(&mapping->tracker) : -1;

	if (present >= 0)
		pages = (size_t)present;
	pages += touch_steps_pending(&mapping->steps);
	return pages < mapping->made_pages ? pages : mapping->made_pages;
}

/* Count it for the report, less what an earlier report has told. */
static void account_mapping(struct large_mapping *mapping, bool is_there)
{
	struct told_pages *told = &mapping->told;
	const struct touch_tracker *tracker = &mapping->tracker;
	size_t touched = tracker->touched + mapping->steps.touched;

	if (touched > tracker->nr_pages)
		touched = tracker->nr_pages;
	shim_count_watched(&(struct shim_watched){
		.bytes = tracker->nr_pages * AHEAD_PAGE_BYTES,
		.first =
			ahead_first_pages(tracker->nr_pages) * AHEAD_PAGE_BYTES,
		.touched = (touched > told->touched ? touched - told->touched
						    : 0) *
			   AHEAD_PAGE_BYTES,
		.scattered = tracker->present * AHEAD_PAGE_BYTES,
		.made = mapping->made_pages * AHEAD_PAGE_BYTES,
		.advised = (mapping->advised_pages - told->advised) *
			   AHEAD_PAGE_BYTES,
		.wasted = wasted_pages(mapping, is_there && shim_tells()) *
			  AHEAD_PAGE_BYTES,
		.moving = touch_tracker_moving(tracker) + mapping->steps.moves,
		.short_of_memory = mapping->short_of_memory,
		.unhelped = mapping->nr_windows && !mapping->made_pages,
	});
	told->touched = touched;
	told->advised = mapping->advised_pages;
}

/* Pages from @at to @made, in the direction of a frontier or a walk. */
static void keep_pages(const struct large_mapping *mapping, bool down,
		       size_t at, size_t made)
{
	size_t from = down ? mapping->tracker.nr_pages - made : at;

	shim_made_add((void *)(mapping->start + from * AHEAD_PAGE_BYTES),
		      (made - at) * AHEAD_PAGE_BYTES, MADE_PRIVATE);
}

/* The program handles faults itself, and must get those that it would have had. */
static void keep_for_undo(const struct large_mapping *mapping)
{
	const struct touch_tracker *tracker = &mapping->tracker;
	const struct touch_steps *steps = &mapping->steps;
	bool kept = touch_steps_pending(steps);

	if (kept)
		keep_pages(mapping, steps->down, steps->at, steps->made);
	for (unsigned i = 0; i < tracker->nr; i++) {
		const struct touch_frontier *frontier = &tracker->frontiers[i];

		if (frontier->made <= frontier->at)
			continue;
		keep_pages(mapping, frontier->down, frontier->at,
			   frontier->made);
		kept = true;
	}
	/* From now on the shim must be told of changes, to update its table. */
	atomic_fetch_add(&shim_ahead_watched, kept);
}

static void end_job(struct large_mapping *mapping)
{
	if (!atomic_load(&mapping->job))
		return;
	ahead_made(mapping, true);
	ahead_note_result(mapping);
}

/* @is_there: the memory is still there */
static void end_watching(struct large_mapping *mapping, bool is_there)
{
	/* What other processes have stored to cannot be given back. */
	if (mapping->seen && shim_memory_is_watched() && !mapping->waste)
		keep_for_undo(mapping);
	if (mapping->seen) {
		end_job(mapping);
		account_mapping(mapping, is_there);
		ahead_restart_effort();
	}
	large_mapping_free(mapping);
}

/* The last touches before the end of the process or an exec may not have been seen.
 * Return: whether they are now. */
static bool follow_to_end(struct large_mapping *mapping)
{
	return mapping->seen && !shim_memory_is_watched() &&
	       atomic_load(&mapping->state) == MAPPING_WATCHED &&
	       touch_tracker_follow(&mapping->tracker) >= 0 &&
	       touch_steps_follow(&mapping->steps) >= 0;
}

static void tell_mapping(struct large_mapping *mapping, bool follow)
{
	bool followed;

	if (!mapping->seen || atomic_load(&mapping->state) != MAPPING_WATCHED)
		return;
	followed = follow && follow_to_end(mapping);
	ahead_note_made(mapping, 0);
	account_mapping(mapping, followed);
}

static void tell_all(bool follow)
{
	for (size_t i = 0; i < large_mappings_used(); i++)
		tell_mapping(&large_mappings[i], follow);
}

static bool is_window_done(const struct large_mapping *mapping)
{
	return atomic_load(&mapping->job) && !atomic_load(&mapping->nr_blocks);
}

/* All of it is touched.  Return: when it is to be served next. */
static uint64_t leave_done(struct large_mapping *mapping, uint64_t now)
{
	return large_mappings_are_many() && large_mapping_retire(mapping)
		       ? now
		       : UINT64_MAX;
}

/* Return: when it is to be polled next; UINT64_MAX: never. */
static uint64_t serve_mapping(struct large_mapping *mapping, uint64_t now)
{
	switch (atomic_load(&mapping->state)) {
	case MAPPING_STOPPED:
		end_watching(mapping, false);
		return UINT64_MAX;
	case MAPPING_WATCHED:
		break;
	default:
		return UINT64_MAX;
	}
	if (!mapping->seen)
		begin_watching(mapping, now);
	if (mapping->waste && ahead_shared_rests(mapping, now))
		return UINT64_MAX;
	if (touch_tracker_done(&mapping->tracker) &&
	    !atomic_load(&mapping->job))
		return leave_done(mapping, now);
	if ((now >= mapping->schedule.due_ns || is_window_done(mapping)) &&
	    !leave_mapping(mapping, now))
		poll_mapping(mapping, now);
	return mapping->schedule.due_ns;
}

/* ---- the thread ---- */

static void sleep_until(uint32_t seen, uint64_t due_ns, uint64_t now)
{
	uint64_t wait_ns = due_ns > now ? due_ns - now : 0;
	struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u),
	};

	shim_main_wait(&nr_news, seen, &wait);
}

static void watch_found(uintptr_t start, uintptr_t end)
{
	large_mapping_add(start, end, 0, true);
}

/* Return: when to poll again. */
static uint64_t poll_areas(uint32_t news, uint64_t now)
{
	static uint32_t last_news;
	uint64_t due_ns;

	if (news != last_news)
		grown_areas_expect(now);
	last_news = news;
	if (grown_areas_poll(now, &due_ns))
		grown_areas_find(watch_found);
	return due_ns;
}

/* Somebody waits for this, but not for long. */
static void tell_if_asked(void)
{
	uint32_t asked = atomic_load(&nr_asked);

	if (asked == atomic_load(&nr_told))
		return;
	tell_all(true);
	atomic_store(&nr_told, asked);
	syscall(SYS_futex, &nr_told, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL,
		0);
}

/* Who ends a rest first tells of news and then looks whether there is a watcher. */
static bool begin_rest(uint32_t seen, bool idle)
{
	int running = RUNNING, resting = RESTING;

	return large_mappings_rest(idle) &&
	       atomic_compare_exchange_strong(&watcher_state, &running,
					      RESTING) &&
	       (atomic_load(&nr_news) == seen ||
		!atomic_compare_exchange_strong(&watcher_state, &resting,
						RUNNING));
}

/* Return: whether all rests; else nothing is watched any more. */
static bool serve_all(void)
{
	while (!atomic_load(&is_quitting)) {
		uint32_t seen = atomic_load(&nr_news);
		uint64_t now = now_ns(), due_ns = poll_areas(seen, now);

		for (size_t i = 0; i < large_mappings_used(); i++) {
			uint64_t due = serve_mapping(&large_mappings[i], now);

			due_ns = due < due_ns ? due : due_ns;
		}
		tell_if_asked();
		if (shim_main_is_gone())
			atomic_store(&is_quitting, true);
		else if (begin_rest(seen, due_ns == UINT64_MAX))
			return true;
		now = now_ns();
		if (due_ns < now + POLL_LEAST_NS / 4)
			due_ns = now + POLL_LEAST_NS / 4;
		if (!atomic_load(&is_quitting))
			sleep_until(seen, due_ns, now);
	}
	return false;
}

static void end_all(void)
{
	for (size_t i = 0; i < large_mappings_used(); i++) {
		bool followed = follow_to_end(&large_mappings[i]);

		large_mapping_give_up(&large_mappings[i]);
		if (atomic_load(&large_mappings[i].state) == MAPPING_STOPPED)
			end_watching(&large_mappings[i], followed);
	}
}

/* If all CPUs are busy, a thread that wakes waits for the next tick, up to 4 ms.  In that
 * time a program touches more than a window.  Since Linux 6.12 a thread that asks for
 * short slices does not wait; older kernels ignore the request. */
static void ask_for_short_slices(void)
{
	struct sched_attr_v0 attr;

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0))
		return;
	attr.runtime = SLICE_NS;
	/* Helpers, which this thread makes, shall have ordinary slices. */
	attr.flags |= RESET_ON_FORK;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *run_watcher(void *unused)
{
	shim_set_busy(true);
	ask_for_short_slices();
	syscall(SYS_prctl, PR_SET_NAME, "ktask-ahead", 0, 0, 0);
	if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE))
		atomic_store(&is_quitting, true);
	else
		ahead_open_pages();
	ahead_page_size_init();
	if (!serve_all())
		end_all();
	return NULL;
}

static void block_signals(sigset_t *saved)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGILL,
				      SIGFPE,  SIGTRAP, SIGSYS };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, saved);
}

static int create_thread(void)
{
	pthread_attr_t attr;
	sigset_t saved;
	int error = pthread_attr_init(&attr);

	if (error)
		return error;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	block_signals(&saved);
	error = pthread_create(&watcher_thread, &attr, run_watcher, NULL);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

void ahead_wake_watcher(void)
{
	atomic_fetch_add(&nr_news, 1);
	shim_main_wake();
}

/* Return: whether the state was RESTING and is @state now; there is no thread any more. */
static bool take_rested(int state)
{
	int resting = RESTING;

	if (!atomic_compare_exchange_strong(&watcher_state, &resting, state))
		return false;
	pthread_join(watcher_thread, NULL);
	ahead_forget_pages();
	return true;
}

bool ahead_start_watcher(void)
{
	int none = NONE;

	if (atomic_load(&watcher_state) == RUNNING)
		return true;
	if (!take_rested(STARTING) &&
	    !atomic_compare_exchange_strong(&watcher_state, &none, STARTING))
		return false;
	atomic_store(&is_quitting, false);
	if (create_thread()) {
		end_all();
		atomic_store(&watcher_state, NONE);
		return false;
	}
	atomic_store(&watcher_state, RUNNING);
	/* Both look at what the other one has set. */
	if (shim_main_has_ended())
		shim_ahead_end();
	return true;
}

bool ahead_is_ending(void)
{
	return atomic_load(&is_quitting);
}

/* By a thread that is about to call exec, perhaps in a signal handler that interrupted an
 * allocator for which the watcher waits.  So this waits no longer than TELL_NS. */
void shim_ahead_tell_now(void)
{
	uint64_t end_ns = now_ns() + TELL_NS;
	uint32_t asked, told;

	if (atomic_load(&watcher_state) == RESTING)
		tell_all(false);
	if (atomic_load(&watcher_state) != RUNNING)
		return;
	asked = atomic_fetch_add(&nr_asked, 1) + 1;
	ahead_wake_watcher();
	while ((int32_t)(asked - (told = atomic_load(&nr_told))) > 0 &&
	       now_ns() < end_ns)
		syscall(SYS_futex, &nr_told, FUTEX_WAIT_PRIVATE, told,
			&(struct timespec){ .tv_nsec = TELL_NS / 10 }, NULL, 0);
}

void shim_ahead_end(void)
{
	size_t unwatched = grown_areas_drop();
	int running = RUNNING;

	if (unwatched)
		shim_decline(WHY_ALLOCATOR, unwatched);
	if (take_rested(ENDING)) {
		end_all();
	} else {
		if (!atomic_compare_exchange_strong(&watcher_state, &running,
						    ENDING))
			return;
		atomic_store(&is_quitting, true);
		ahead_wake_watcher();
		pthread_join(watcher_thread, NULL);
	}
	atomic_store(&watcher_state, NONE);
}

bool shim_ahead_running(void)
{
	return atomic_load(&watcher_state) == RUNNING;
}

bool ahead_is_resting(void)
{
	return atomic_load(&watcher_state) == RESTING;
}

void shim_ahead_forked(void)
{
	ahead_forget_effort();
	ahead_forget_objections();
	grown_areas_forget();
	joined_ranges_forked();
	large_mappings_forget_calls();
	if (atomic_load(&watcher_state) != NONE)
		large_mappings_forget();
	else
		atomic_fetch_sub(&shim_ahead_watched, inherited_mappings_nr());
	atomic_store(&watcher_state, NONE);
	inherited_mappings_forked();
}
