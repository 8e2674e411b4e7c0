/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pool of helpers, as callers see it: submitting, waiting, forks, the end.
 *
 * Does not know what a job is, nor what a helper does in between (user_helper.c).
 * Behaves badly when a caller starts a job in the instant between another's
 * pool_enter() and its first chunk: both may then create threads.
 *
 * Locking, for process_pool: there is no lock.  A helper is owned as user/pool/user_helper.h
 * says.
 *	I: set once, by watch_process() or init_pool(), and in the child of a fork, which
 *	   has one thread
 *	A: written by any thread, read by any: kt_load(), kt_store(), kt_cas()
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <ktask/ktask.h>

#include "user/limits/cgroup.h"
#include "user/limits/config.h"
#include "util/futex.h"
#include "user/pool/user_helper.h"
#include "user/limits/permits.h"
#include "user/machine/topo.h"
#include "util/large_static.h"
#include "util/scoped.h"

/* Helpers made at once by the first job, so that jobs which start while it
 * runs find some. */
#define FIRST_HELPERS 16
/* A caller spins this long for a chunk to end before it lends and sleeps, */
#define WAIT_SPIN_NS 20000
/* and then polls this often whether its own priority has changed. */
#define WAIT_POLL_NS 5000000
/* A thread needs a CPU in order to die: on a busy machine that takes a while. */
#define TRIM_POLL_NS 200000
#define TRIM_WAIT_NS 10000000000

static struct {
	struct helper helpers[POOL_MAX];
	uint32_t nr; /* helpers that were ever made; only grows; A */
	uint32_t hint; /* where the last search ended; A */
	uint32_t jobs; /* in this process now; A */
	uint32_t generation; /* counts forks; I, A */
	uint32_t pid; /* 0: forks are not watched yet; I, A */
	uint32_t watched; /* there is a handler of forks; I */
	uint32_t ready; /* init_pool() succeeded; I, A */
	struct kt_cap machine; /* A */
	struct kt_cap nodes[TOPO_NODES_MAX]; /* A */
} process_pool LARGE_STATIC;

/* Until the process exits; A.  Not above: of a process without helpers no page of that is
 * touched. */
static uint32_t is_open = 1;
/* init_pool() was called: only then is there anything to raise at the end; A.  Not above
 * either. */
static uint32_t has_begun;

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

/* Raise the number of helpers to @nr, unless another thread has raised it further. */
static void cover_helpers(unsigned nr)
{
	uint32_t now = kt_load(&process_pool.nr);

	while (now < nr && !kt_cas(&process_pool.nr, &now, nr))
		;
}

static bool may_make_helpers(void)
{
	return kt_load_acquire(&process_pool.ready) && !pool_closing();
}

static void make_helpers(unsigned wanted, const struct kt_cpus *cpus)
{
	for (unsigned i = 0; i < wanted && i < POOL_MAX; i++) {
		/* First, so that a fork finds every helper being made. */
		cover_helpers(i + 1);
		if (!helper_make(&process_pool.helpers[i], cpus))
			break;
	}
}

void pool_more(unsigned nr, const struct kt_cpus *cpus)
{
	unsigned may;

	if (!may_make_helpers())
		return;
	may = cgroup_start_threads(0) - 1;
	for (unsigned i = 0; i < POOL_MAX && nr; i++) {
		enum phase phase =
			phase_of(kt_load(&process_pool.helpers[i].word));

		if (phase == EMPTY && i < may) {
			cover_helpers(i + 1);
			if (!helper_make(&process_pool.helpers[i], cpus))
				return;
		} else if (phase != IDLE && phase != ASLEEP) {
			continue;
		}
		nr--;
	}
}

/* ---- the process ---- */

static void fork_child(void)
{
	/* By kt_store(), as the parent's threads wrote these fields. */
	for (uint32_t i = 0; i < process_pool.nr; i++)
		kt_store(&process_pool.helpers[i].word, (uint32_t)EMPTY);
	kt_store(&process_pool.nr, 0);
	kt_store(&process_pool.jobs, 0);
	kt_store(&process_pool.machine.used, 0);
	for (unsigned i = 0; i < TOPO_NODES_MAX; i++)
		kt_store(&process_pool.nodes[i].used, 0);
	kt_store(&process_pool.pid, (uint32_t)getpid());
	process_pool.generation++;
	prio_fork_child();
	pool_on_fork_child();
}

static void set_caps(void)
{
	const struct topo *topo = topo_get();
	const struct config *config = config_get();

	kt_store(&process_pool.machine.limit,
		 kt_cap_limit(topo->nr_cpus, config->cap_percent));
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		kt_store(&process_pool.nodes[i].limit,
			 kt_cap_node_limit(topo->nr_node_cpus[i],
					   config->node_cap_percent));
}

void pool_refresh(void)
{
	set_caps();
	permits_set_limit(kt_load(&process_pool.machine.limit));
}

static void watch_process(void)
{
	kt_store(&process_pool.pid, (uint32_t)getpid());
	process_pool.watched = !pthread_atfork(NULL, NULL, fork_child);
}

static void init_pool(void)
{
	kt_store(&has_begun, 1);
	pthread_once(&watch_once, watch_process);
	set_caps();
	permits_open(process_pool.machine.limit);
	kt_store_release(&process_pool.ready, process_pool.watched);
}

static bool may_raise_all(void)
{
	return prio_mode() == PRIO_LEND &&
	       process_pool.pid == (uint32_t)getpid();
}

/*
 * Raise helpers that are in chunks, and those that stayed low between two jobs: the end of
 * the process waits for them.  Without any, this makes no system call: the process may
 * have set a filter that kills for it, before which helpers were ended.
 */
static void raise_all(void)
{
	for (uint32_t i = 0; i < kt_load_acquire(&process_pool.nr); i++) {
		struct helper *h = &process_pool.helpers[i];

		if (!kt_load(&h->low))
			continue;
		if (!may_raise_all())
			return;
		prio_raise(helper_tid(h));
	}
}

/* Helpers run on through exit handlers and destructors, but take no further
 * chunk: what a chunk uses may be torn down. */
__attribute__((destructor)) static void at_exit(void)
{
	kt_store_release(&is_open, 0);
	if (kt_load(&has_begun))
		raise_all();
}

/* For a child that was made without the C library's fork handlers (clone, _Fork). */
void pool_check_fork(void)
{
	if (kt_load(&process_pool.pid) != (uint32_t)getpid())
		fork_child();
}

void pool_watch_forks(void)
{
	pthread_once(&watch_once, watch_process);
	pool_check_fork();
}

void pool_enter(unsigned wanted, const struct kt_cpus *cpus)
{
	uint32_t others, extra;

	pthread_once(&init_once, init_pool);
	pool_check_fork();
	others = __atomic_fetch_add(&process_pool.jobs, 1, __ATOMIC_RELAXED);
	if (!wanted || others || !may_make_helpers())
		return;
	extra = KT_MIN(FIRST_HELPERS, kt_load(&process_pool.machine.limit));
	/* Do not try at each job to make threads that the control group would refuse. */
	if (extra > wanted)
		extra = KT_MIN(extra, cgroup_start_threads(0) - 1);
	make_helpers(KT_MAX(wanted, extra), cpus);
}

void pool_leave(void)
{
	kt_assert(kt_load(&process_pool.jobs));
	kt_add(&process_pool.jobs, (uint32_t)-1);
}

bool pool_busy(void)
{
	return kt_load(&process_pool.jobs);
}

unsigned pool_helpers(void)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < kt_load_acquire(&process_pool.nr); i++)
		nr += phase_of(kt_load(&process_pool.helpers[i].word)) != EMPTY;
	return nr;
}

unsigned pool_spinning(void)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < kt_load_acquire(&process_pool.nr); i++)
		nr += phase_of(kt_load(&process_pool.helpers[i].word)) == IDLE;
	return nr;
}

uint32_t pool_generation(void)
{
	return kt_load(&process_pool.generation);
}

bool pool_closing(void)
{
	return !kt_load(&is_open);
}

struct kt_cap *pool_machine(void)
{
	pthread_once(&init_once, init_pool);
	return &process_pool.machine;
}

struct kt_cap *pool_node(int index)
{
	return index >= 0 && index < TOPO_NODES_MAX ? &process_pool.nodes[index]
						    : NULL;
}

/* ---- the caller's side ---- */

/* A claimed helper cannot be used after all: as if its item had been cancelled.  A
 * sleeper must be woken to fall asleep again. */
static void give_back(struct helper *h, uint32_t claimed, enum phase phase)
{
	helper_assert_phase(h, CLAIMED);
	kt_store_release(&h->word, with_phase(claimed, IDLE));
	if (phase == ASLEEP)
		futex_wake(&h->word, 1);
}

/* An idle helper may be falling asleep, or waking, while it is claimed.
 * Return: false, or its word as claimed and what it did before. */
static bool claim_helper(struct helper *h, uint32_t *claimed, enum phase *phase)
{
	uint32_t word = kt_load(&h->word);

	do {
		*phase = phase_of(word);
		if ((*phase != IDLE && *phase != ASLEEP) ||
		    kt_load(&h->dismissed))
			return false;
		*claimed = with_phase(word + TICKET_ONE, CLAIMED);
	} while (!kt_cas(&h->word, &word, *claimed));
	return true;
}

static bool submit_to(struct helper *h, struct pool_item *item)
{
	uint32_t claimed;
	enum phase phase;

	if (!claim_helper(h, &claimed, &phase))
		return false;
	if (!helper_place(h, item)) {
		give_back(h, claimed, phase);
		return false;
	}
	h->item = item;
	kt_store(&item->helper, h);
	kt_store(&item->ticket, with_phase(claimed, EMPTY));
	kt_store(&item->submitted, true);
	helper_assert_phase(h, CLAIMED);
	kt_store_release(&h->word, with_phase(claimed, QUEUED));
	if (phase == ASLEEP)
		futex_wake(&h->word, 1);
	return true;
}

/* One round from where the last search ended; first over the helpers that
 * know the node, then over all. */
bool pool_submit(struct pool_item *item, int node)
{
	uint32_t nr = kt_load_acquire(&process_pool.nr);
	uint32_t start = kt_load(&process_pool.hint);

	for (int pass = node < 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < nr; i++) {
			struct helper *h =
				&process_pool.helpers[(start + i) % nr];

			if (!pass && kt_load(&h->node) != node)
				continue;
			if (!submit_to(h, item))
				continue;
			kt_store(&h->node, node);
			kt_store(&process_pool.hint, (start + i + 1) % nr);
			return true;
		}
	}
	return false;
}

enum pool_item_state pool_item_state(const struct pool_item *item)
{
	uint32_t word = kt_load_acquire(&kt_load(&item->helper)->word);

	if (with_phase(word, EMPTY) != kt_load(&item->ticket))
		return POOL_ITEM_DONE;
	if (phase_of(word) == QUEUED || phase_of(word) == TAKING)
		return POOL_ITEM_QUEUED;
	return phase_of(word) >= RUNNING ? POOL_ITEM_RUNNING : POOL_ITEM_DONE;
}

uint32_t pool_item_tid(const struct pool_item *item)
{
	return (uint32_t)helper_tid(item->helper);
}

uint64_t pool_item_cpu_ns(const struct pool_item *item)
{
	return helper_cpu_ns(pool_item_tid(item));
}

uint64_t pool_cpu_ns(void)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < kt_load_acquire(&process_pool.nr); i++) {
		struct helper *h = &process_pool.helpers[i];
		uint32_t tid = (uint32_t)helper_tid(h);
		uint64_t cpu_ns = tid ? helper_cpu_ns(tid) : UINT64_MAX;

		if (cpu_ns != UINT64_MAX &&
		    phase_of(kt_load(&h->word)) != EMPTY)
			sum_ns += cpu_ns;
	}
	return sum_ns;
}

/* Does the helper probably have a CPU?  It has one while it spins. */
static bool has_cpu(const struct helper *h, uint64_t now_ns)
{
	return now_ns < kt_load(&h->spin_until_ns);
}

/* A low helper that has a CPU raises itself before it sleeps.  One that has none may get
 * none for long, and is raised here. */
static bool cancel_queued(struct helper *h, uint32_t word, uint64_t now_ns)
{
	if (!kt_load(&h->low) || has_cpu(h, now_ns))
		return helper_move(h, &word, IDLE);
	if (!helper_move(h, &word, CLAIMED))
		return false;
	helper_raise(h);
	kt_store_release(&h->word, with_phase(word, IDLE));
	return true;
}

/* A helper whose items come soon after each other stays low, if it has a CPU. */
static bool cancel_taking(struct helper *h, uint32_t word, uint64_t now_ns)
{
	/* From then on h->in_series is that of this item. */
	if (kt_load_acquire(&h->word) != word)
		return false;
	if (kt_load(&h->in_series) && has_cpu(h, now_ns))
		return helper_move(h, &word, IDLE);
	if (!helper_move(h, &word, CLAIMED))
		return false;
	helper_raise_taker(h);
	kt_store_release(&h->word, with_phase(word, IDLE));
	return true;
}

bool pool_cancel(struct pool_item *item, uint64_t now_ns)
{
	struct helper *h = item->helper;

	return cancel_queued(h, with_phase(item->ticket, QUEUED), now_ns) ||
	       cancel_taking(h, with_phase(item->ticket, TAKING), now_ns);
}

/* What the caller gave the helper that it waits for. */
struct loan {
	struct prio prio;
	bool placed; /* the caller's CPU too */
};

/* RUNNING or WAITED -> LENDING -> WAITED; false if the helper has left.
 * @prio: NULL to leave that as it is. */
static bool lend_to_helper(struct helper *h, uint32_t word,
			   const struct prio *prio, bool widen)
{
	bool lent = false;

	if (!helper_move(h, &word, LENDING))
		return false;
	if (widen)
		helper_widen(h);
	if (prio) {
		helper_note_loan(h, prio);
		lent = prio_lend(helper_tid(h), prio);
	}
	if (lent) {
		h->lent = true;
		kt_store(&h->low, 0);
	}
	helper_assert_phase(h, LENDING);
	/* From here on the helper owns itself again. */
	kt_store_release(&h->word, with_phase(word, WAITED));
	return lent;
}

/* Is there a priority to lend that the helper does not have yet? */
static bool may_lend(const struct loan *loan, struct prio *own)
{
	return prio_mode() == PRIO_LEND && prio_own(own) && !prio_lowest(own) &&
	       memcmp(own, &loan->prio, sizeof(*own));
}

/*
 * Lend the calling thread's present priority.  It may have changed while the thread waits:
 * in a nested job the thread may be a helper itself and have been lent a priority.
 */
static bool lend_own(struct helper *h, uint32_t ticket, struct loan *loan)
{
	uint32_t word = kt_load(&h->word);
	struct prio own;
	bool may = may_lend(loan, &own);

	if (!may && loan->placed)
		return false;
	if (word != with_phase(ticket, RUNNING) &&
	    word != with_phase(ticket, WAITED))
		return false;
	if (may)
		loan->prio = own;
	loan->placed = true;
	return lend_to_helper(h, word, may ? &own : NULL, true);
}

bool pool_hurry(struct pool_item *item)
{
	uint32_t word = with_phase(item->ticket, RUNNING);
	struct loan loan = { .prio.policy = UINT32_MAX };
	struct prio own;

	return may_lend(&loan, &own) &&
	       lend_to_helper(item->helper, word, &own, false);
}

bool pool_wait(struct pool_item *item)
{
	struct helper *h = item->helper;
	uint64_t until = kt_now_ns() + WAIT_SPIN_NS;
	struct loan loan = { .prio.policy = UINT32_MAX };
	bool lent = false;

	while (pool_item_state(item) == POOL_ITEM_RUNNING &&
	       kt_now_ns() < until)
		cpu_relax();
	while (pool_item_state(item) == POOL_ITEM_RUNNING) {
		uint32_t word = with_phase(item->ticket, RUNNING);

		lent |= lend_own(h, item->ticket, &loan);
		helper_move(h, &word, WAITED);
		futex_wait(&h->word, with_phase(item->ticket, WAITED),
			   WAIT_POLL_NS);
	}
	return lent;
}

static void pause_trim(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = TRIM_POLL_NS }, NULL);
}

/* Wait for a helper that is about to become idle, having left an item. */
static enum phase await_phase(struct helper *h, uint64_t until_ns)
{
	enum phase phase = phase_of(kt_load_acquire(&h->word));

	while (phase == CLAIMED && kt_now_ns() < until_ns) {
		pause_trim();
		phase = phase_of(kt_load_acquire(&h->word));
	}
	return phase;
}

/* Let an idle helper end.  Return: its thread id, 0 if it is not idle. */
static pid_t dismiss_helper(struct helper *h, uint64_t until_ns)
{
	enum phase phase = await_phase(h, until_ns);

	if (phase != IDLE && phase != ASLEEP)
		return 0;
	kt_store_release(&h->dismissed, 1);
	futex_wake(&h->word, 1);
	return helper_tid(h);
}

static bool is_thread(pid_t tid)
{
	return !syscall(SYS_tgkill, getpid(), tid, 0);
}

/* Return: false if it is still there: a job got it first, or it gets no CPU. */
static bool wait_until_gone(struct helper *h, pid_t tid, uint64_t until_ns)
{
	while (is_thread(tid)) {
		if (phase_of(kt_load(&h->word)) >= QUEUED ||
		    kt_now_ns() >= until_ns)
			return false;
		futex_wake(&h->word, 1);
		pause_trim();
	}
	return true;
}

/* The last thread of this helper may not be gone yet, whether it ended by itself or
 * another thread dismissed it. */
static void await_ended(struct helper *h, uint64_t until_ns)
{
	uint32_t tid = kt_load_acquire(&h->ended_tid);

	while (tid && kt_load(&h->ended_tid) == tid && is_thread((pid_t)tid) &&
	       kt_now_ns() < until_ns)
		pause_trim();
	/* Another thread may have its number later. */
	kt_cas(&h->ended_tid, &tid, 0);
}

unsigned ktask_trim(void)
{
	uint64_t until_ns = kt_now_ns() + TRIM_WAIT_NS;
	uint32_t nr = kt_load_acquire(&process_pool.nr);
	unsigned nr_ended = 0;
	keep_errno();

	for (uint32_t i = 0; i < nr; i++) {
		struct helper *h = &process_pool.helpers[i];
		pid_t tid = dismiss_helper(h, until_ns);

		if (tid)
			nr_ended += wait_until_gone(h, tid, until_ns);
		await_ended(h, until_ns);
	}
	return nr_ended;
}
