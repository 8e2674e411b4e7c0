/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See thread_account.h.  At each moment the lost time is the smaller of two numbers:
 *
 *	cores on which no thread of the program runs or waits to run
 *	threads of the program that are blocked in work: I/O, a lock, a page fault or
 *	other, but not asleep, in poll() or stopped
 *
 * UMT could use this many cores, if there was work for them.
 *
 * Behaves badly: cores that other programs use count as free.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "thread_account.h"
#include "thread_names.h"
#include "util/monotonic_clock.h"

/* The size of the hash table: searches stay short for about as many threads. */
#define BUCKETS 65536

bool is_work(int reason)
{
	return reason != UMT_WAITING && reason != UMT_STOPPED;
}

const char *state_name(enum state state)
{
	static const char *const names[] = { "running", "ready", "blocked",
					     "gone" };

	return names[state];
}

int account_begin(struct account *account, int nr_cpus)
{
	cpu_set_t set;

	account->nr_cpus = nr_cpus;
	account->nr_cores = nr_cpus;
	if (!sched_getaffinity(0, sizeof(set), &set))
		account->nr_cores = CPU_COUNT(&set);
	account->cores = calloc((size_t)nr_cpus, sizeof(*account->cores));
	account->newest = calloc(BUCKETS, sizeof(*account->newest));
	account->start_ns = account->now_ns = monotonic_ns();
	return account->cores && account->newest ? 0 : -ENOMEM;
}

void account_end(struct account *account)
{
	free(account->threads);
	free(account->newest);
	free(account->cores);
}

/* ---- threads ---- */

static void read_comm(struct thread *thread)
{
	names_read(thread->tid, thread->comm, sizeof(thread->comm));
}

/* The newest thread first: the kernel may give the number of an ended thread again. */
static struct thread *find_from(const struct account *account, unsigned next,
				uint32_t tid)
{
	while (next) {
		struct thread *thread = &account->threads[next - 1];

		if (thread->tid == tid && thread->state != GONE)
			return thread;
		next = thread->older;
	}
	return NULL;
}

static struct thread *find_thread(const struct account *account, uint32_t tid)
{
	return find_from(account, account->newest[tid % BUCKETS], tid);
}

/*
 * A thread that executes a program takes the number of its process's first thread, whose
 * end may be reported later.  So of several threads with the number, the oldest has ended.
 */
static struct thread *find_oldest(const struct account *account, uint32_t tid)
{
	struct thread *thread = find_thread(account, tid), *found = NULL;

	for (; thread; thread = find_from(account, thread->older, tid))
		found = thread;
	return found;
}

static int add_thread(struct account *account, const struct umt_event *event)
{
	unsigned capacity = account->capacity ? 2 * account->capacity : 64;
	struct thread *threads = account->threads;

	if (account->nr_threads == account->capacity) {
		threads = realloc(threads, capacity * sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		account->threads = threads;
		account->capacity = capacity;
	}
	threads += account->nr_threads++;
	memset(threads, 0, sizeof(*threads));
	threads->tid = event->tid;
	threads->older = account->newest[event->tid % BUCKETS];
	account->newest[event->tid % BUCKETS] = account->nr_threads;
	threads->pid = (uint32_t)event->detail;
	threads->cpu = event->cpu;
	threads->state = READY;
	threads->since_ns = account->now_ns;
	account->count[READY]++;
	read_comm(threads);
	return 0;
}

/* A thread that ended before its name was read is shown by the name of its process. */
const char *account_name(const struct account *account,
			 const struct thread *thread)
{
	unsigned next = account->newest[thread->pid % BUCKETS];

	if (thread->comm[0])
		return thread->comm;
	for (; next; next = account->threads[next - 1].older)
		if (account->threads[next - 1].tid == thread->pid)
			return account->threads[next - 1].comm;
	return "";
}

void account_forget(struct account *account)
{
	unsigned i, nr = 0;

	memset(account->newest, 0, BUCKETS * sizeof(*account->newest));
	for (i = 0; i < account->nr_threads; i++) {
		struct thread *thread = &account->threads[nr];
		unsigned *newest;

		if (account->threads[i].state == GONE)
			continue;
		*thread = account->threads[i];
		newest = &account->newest[thread->tid % BUCKETS];
		thread->older = *newest;
		*newest = ++nr;
	}
	account->nr_threads = nr;
	account->count[GONE] = 0;
}

/* ---- time ---- */

static void pass_time(struct account *account, uint64_t until)
{
	int used = account->count[RUNNING] + account->count[READY];
	int unused = account->nr_cores - used;
	uint64_t ns = until - account->now_ns;
	int cpu;

	if (until <= account->now_ns)
		return;
	if (unused > account->in_work)
		unused = account->in_work;
	if (unused > 0)
		account->lost_core_ns += (uint64_t)unused * ns;
	for (cpu = 0; cpu < account->nr_cpus; cpu++) {
		struct core *core = &account->cores[cpu];

		if (core->running > 0)
			core->busy_ns += ns;
		else
			core->idle_ns += ns;
		if (core->running <= 0 && account->in_work)
			core->idle_while_ns += ns;
	}
	account->now_ns = until;
}

static void leave_state(struct account *account, struct thread *thread)
{
	uint64_t ns = account->now_ns - thread->since_ns;

	thread->ns[thread->state] += ns;
	account->count[thread->state]--;
	if (thread->state == RUNNING)
		account->cores[thread->cpu].running--;
	if (thread->state == BLOCKED) {
		thread->reason_ns[thread->reason] += ns;
		account->in_work -= is_work(thread->reason);
	}
	if (account->stretch && ns && thread->state != GONE)
		account->stretch(account->arg, thread, account->now_ns);
}

static void enter_state(struct account *account, struct thread *thread,
			enum state state, const struct umt_event *event)
{
	leave_state(account, thread);
	if (thread->state == BLOCKED || !thread->comm[0])
		read_comm(thread);
	thread->state = state;
	thread->since_ns = account->now_ns;
	thread->cpu = event->cpu;
	thread->reason = event->reason;
	account->count[state]++;
	if (state == RUNNING)
		account->cores[thread->cpu].running++;
	if (state == BLOCKED)
		account->in_work += is_work(thread->reason);
}

static void apply_event(struct account *account, struct thread *thread,
			const struct umt_event *event)
{
	switch (event->kind) {
	case UMT_BLOCK:
		thread->nr_blocks++;
		enter_state(account, thread, BLOCKED, event);
		break;
	case UMT_PREEMPT:
		thread->nr_preempts++;
		enter_state(account, thread, READY, event);
		break;
	case UMT_WAKE:
		enter_state(account, thread, READY, event);
		break;
	case UMT_RUN:
		enter_state(account, thread, RUNNING, event);
		break;
	case UMT_GONE:
		enter_state(account, thread, GONE, event);
		break;
	}
}

static bool is_sane(const struct account *account,
		    const struct umt_event *event)
{
	return event->cpu < account->nr_cpus && event->reason < UMT_NR_REASONS;
}

int account_event(struct account *account, const struct umt_event *event)
{
	struct thread *thread;
	int error = 0;

	if (!is_sane(account, event))
		return 0;
	account->nr_events++;
	/* Events of different cores may come out of order; the account never goes back. */
	pass_time(account, event->time_ns);
	thread = event->kind == UMT_GONE ? find_oldest(account, event->tid)
					 : find_thread(account, event->tid);
	if (event->kind == UMT_NEW)
		error = add_thread(account, event);
	else if (thread)
		apply_event(account, thread, event);
	return error;
}

void account_close(struct account *account)
{
	unsigned i;

	pass_time(account, monotonic_ns());
	for (i = 0; i < account->nr_threads; i++) {
		struct thread *thread = &account->threads[i];

		leave_state(account, thread);
		if (thread->state == RUNNING)
			account->cores[thread->cpu].running++;
		if (thread->state == BLOCKED)
			account->in_work += is_work(thread->reason);
		account->count[thread->state]++;
		thread->since_ns = account->now_ns;
	}
}
