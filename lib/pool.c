/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pool of helpers: creation, hand-over, parking, forking, the end.
 *
 * Does not know what a job is.  Behaves badly when a caller starts a job in
 * the instant between another's pool_enter() and its first chunk: both may
 * then create threads.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <ktask/ktask.h>

#include "lib/config.h"
#include "lib/futex.h"
#include "lib/pool.h"
#include "lib/slots.h"
#include "lib/topo.h"

enum phase { EMPTY, IDLE, ASLEEP, CLAIMED, OFFERED, RUNNING, LENDING, WAITED };

#define PHASE_MASK 7u
#define TICKET_ONE 8u

#define STACK_BYTES (256 * 1024)
/* Helpers made at once by the first job, so that jobs which start while it
 * runs find some. */
#define FIRST_HELPERS 16
/* How long a helper may look for the next job before it sleeps: about what
 * sleeping and waking cost (5 to 50 us); less where jobs are rare. */
#define SPIN_MAX_NS 50000
#define SPIN_MIN_NS 1000
/* A caller looks this long for a chunk to end before it sleeps and lends. */
#define WAIT_SPIN_NS 20000
#define TRIM_POLL_NS 200000
#define TRIM_POLLS 10000

struct helper {
	KT_CACHE_ALIGNED uint32_t word; /* ticket and phase; futex */
	bool lent; /* by the caller, while LENDING */
	uint32_t dismissed; /* end when idle */
	struct seat *seat; /* valid from OFFERED to the end of RUNNING */
	pid_t tid;
	int node; /* dense index it was last asked for, or -1 */
	uint64_t spin_ns;
	/* Its affinity is cpus less the CPU avoid; owned by who holds CLAIMED. */
	int avoid;
	struct kt_cpus cpus;
};

static struct {
	struct helper helpers[POOL_MAX];
	uint32_t nr; /* helpers that were ever made */
	uint32_t hint; /* where the last search ended */
	uint32_t jobs; /* in this process now */
	uint32_t generation;
	uint32_t closing;
	uint32_t pid;
	uint32_t ready; /* init() succeeded */
	struct kt_cap machine;
	struct kt_cap nodes[TOPO_NODES_MAX];
} pool;

static pthread_once_t once = PTHREAD_ONCE_INIT;
void (*pool_on_fork_child)(void);

/* ---- the word ---- */

static enum phase phase_of(uint32_t word)
{
	return (enum phase)(word & PHASE_MASK);
}

static uint32_t with_phase(uint32_t word, enum phase phase)
{
	return (word & ~PHASE_MASK) | (uint32_t)phase;
}

static bool move(struct helper *h, uint32_t *word, enum phase phase)
{
	return kt_cas(&h->word, word, with_phase(*word, phase));
}

/* ---- the helper's side ---- */

/* Look for an offer for a while.  Return: the word when one is there or the
 * time is up. */
static uint32_t spin_for_offer(struct helper *h)
{
	uint64_t until = kt_now_ns() + h->spin_ns;
	uint32_t word;

	do {
		for (int i = 0; i < 32; i++) {
			word = kt_load_acquire(&h->word);
			if (phase_of(word) == OFFERED)
				return word;
			cpu_relax();
		}
	} while (kt_now_ns() < until);
	return word;
}

static void adapt_spin(struct helper *h, uint64_t idle_ns)
{
	if (idle_ns <= SPIN_MAX_NS)
		h->spin_ns = SPIN_MAX_NS;
	else
		h->spin_ns = KT_MAX(h->spin_ns / 2, SPIN_MIN_NS);
}

/* Sleep until the word changes.  Return: false when it is time to end. */
static bool sleep_for_offer(struct helper *h, uint32_t word)
{
	uint64_t idle_ns = (uint64_t)config_get()->idle_ms * 1000000 + 1;

	if (phase_of(word) == IDLE && !move(h, &word, ASLEEP))
		return true;
	word = with_phase(word, ASLEEP);
	while (kt_load_acquire(&h->word) == word) {
		if (kt_load(&h->dismissed) ||
		    futex_wait(&h->word, word, idle_ns) == -ETIMEDOUT)
			return !move(h, &word, EMPTY);
	}
	return true;
}

/* Return: true with an offer taken, false when the thread shall end. */
static bool next_offer(struct helper *h)
{
	uint64_t since = kt_now_ns();

	for (;;) {
		uint32_t word = spin_for_offer(h);

		if (phase_of(word) == OFFERED) {
			if (!move(h, &word, RUNNING))
				continue;
			adapt_spin(h, kt_now_ns() - since);
			return true;
		}
		if (phase_of(word) == CLAIMED)
			continue;
		if (!sleep_for_offer(h, word))
			return false;
	}
}

/*
 * Leave the seat.  After the word says IDLE the seat, and the job around it,
 * may be gone.  Only then is a lent priority given back: lowered before, the
 * helper might not get a CPU to say that it is done.
 */
static void leave_seat(struct helper *h)
{
	uint32_t word = kt_load_acquire(&h->word);

	do {
		/* The caller is inside one system call. */
		while (phase_of(word) == LENDING) {
			sched_yield();
			word = kt_load_acquire(&h->word);
		}
	} while (!move(h, &word, IDLE));
	if (phase_of(word) == WAITED)
		futex_wake(&h->word, 1);
	if (h->lent) {
		h->lent = false;
		prio_lower();
	}
}

static bool mode_changed(enum prio_mode mode)
{
	return mode == PRIO_LEND && prio_mode() != PRIO_LEND;
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;
	enum prio_mode mode;

	prctl(PR_SET_NAME, "ktask", 0, 0, 0);
	prio_helper_begin();
	mode = prio_mode();
	__atomic_store_n(&h->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);

	while (next_offer(h)) {
		uint32_t generation = pool_generation();

		h->seat->work(h->seat);
		/* A chunk forked, and this is the child's only thread: there is
		 * nothing to return to. */
		if (generation != pool_generation())
			pthread_exit(NULL);
		leave_seat(h);
		/* Rights were given up: this thread can never be raised. */
		if (mode_changed(mode))
			kt_store(&h->dismissed, 1);
	}
	return NULL;
}

/* ---- making and placing helpers ---- */

/*
 * Helpers are kept off the CPU that the caller runs on.  The scheduler alone
 * does worse: in virtual machines an idle CPU often counts as preempted by the
 * host, and a woken SCHED_IDLE thread then queues behind the caller (measured
 * under KVM: 1.9 ms until it ran, with this 0.03 ms).
 */
static struct kt_cpus placement(const struct kt_cpus *cpus, int avoid)
{
	struct kt_cpus mask = *cpus;

	if (avoid >= 0)
		cpus_clear(&mask, (unsigned)avoid);
	return cpus_count(&mask) ? mask : *cpus;
}

/* By the owner of a CLAIMED helper. */
static void place(struct helper *h, const struct kt_cpus *cpus)
{
	pid_t tid = __atomic_load_n(&h->tid, __ATOMIC_ACQUIRE);
	int here = sched_getcpu();
	struct kt_cpus mask;

	if (!tid || (h->avoid == here && cpus_equal(&h->cpus, cpus)))
		return;
	mask = placement(cpus, here);
	if (!cpus_set_affinity(tid, &mask))
		return;
	h->avoid = here;
	h->cpus = *cpus;
}

/*
 * Helpers take no signal that is meant for the program.  Faults stay open:
 * blocking them does not stop a fault, it only takes the program's handler
 * (or an operation's recovery) away.
 */
static void helper_signals(sigset_t *set)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGILL,
				      SIGFPE,  SIGTRAP, SIGSYS };

	sigfillset(set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(set, faults[i]);
}

static int thread_attributes(pthread_attr_t *attr, const struct kt_cpus *mask)
{
	struct sched_param normal = { .sched_priority = 0 };
	int error = pthread_attr_init(attr);

	if (error)
		return error;
	/* Not the caller's real-time policy. */
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &normal);
	pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(attr, STACK_BYTES);
	pthread_attr_setaffinity_np(attr, sizeof(*mask),
				    (const cpu_set_t *)mask);
	return 0;
}

static bool make_helper(struct helper *h, const struct kt_cpus *cpus)
{
	uint32_t word = kt_load(&h->word);
	struct kt_cpus mask;
	sigset_t blocked, saved;
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	if (phase_of(word) != EMPTY || !move(h, &word, CLAIMED))
		return true;
	h->tid = 0;
	h->lent = false;
	h->node = -1;
	h->spin_ns = SPIN_MAX_NS;
	kt_store(&h->dismissed, 0);
	h->avoid = sched_getcpu();
	h->cpus = *cpus;
	mask = placement(cpus, h->avoid);

	error = thread_attributes(&attr, &mask);
	if (error)
		goto out;
	helper_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &saved);
	error = pthread_create(&thread, &attr, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
out:
	/* Only a thread that exists may be offered a seat. */
	kt_store_release(&h->word, with_phase(word, error ? EMPTY : IDLE));
	return !error;
}

static void make_helpers(unsigned wanted, const struct kt_cpus *cpus)
{
	for (unsigned i = 0; i < wanted && i < POOL_MAX; i++) {
		if (!make_helper(&pool.helpers[i], cpus))
			break;
		if (kt_load(&pool.nr) <= i)
			kt_store_release(&pool.nr, i + 1);
	}
}

/* ---- the process ---- */

static void fork_child(void)
{
	for (uint32_t i = 0; i < pool.nr; i++)
		pool.helpers[i].word = EMPTY;
	pool.nr = 0;
	pool.jobs = 0;
	pool.machine.used = 0;
	for (unsigned i = 0; i < TOPO_NODES_MAX; i++)
		pool.nodes[i].used = 0;
	pool.pid = (uint32_t)getpid();
	pool.generation++;
	prio_fork_child();
	if (pool_on_fork_child)
		pool_on_fork_child();
}

static void init(void)
{
	const struct topo *topo = topo_get();
	unsigned percent = config_get()->cap_percent;

	pool.machine.limit = kt_cap_limit(topo->nr_cpus, percent);
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		pool.nodes[i].limit =
			kt_cap_limit(topo->nodes[i].nr_cpus, percent);
	slots_open(pool.machine.limit);
	pool.pid = (uint32_t)getpid();
	kt_store_release(&pool.ready, !pthread_atfork(NULL, NULL, fork_child));
}

/* Helpers run on through exit handlers and destructors, but take no further
 * chunk: what a chunk uses may be torn down. */
__attribute__((destructor)) static void at_exit(void)
{
	kt_store_release(&pool.closing, 1);
}

void pool_enter(unsigned wanted, const struct kt_cpus *cpus)
{
	uint32_t others;

	pthread_once(&once, init);
	/* A child made behind the C library's back (clone, _Fork). */
	if (kt_load(&pool.pid) != (uint32_t)getpid())
		fork_child();
	others = __atomic_fetch_add(&pool.jobs, 1, __ATOMIC_RELAXED);
	if (!wanted || others || !kt_load_acquire(&pool.ready) ||
	    pool_closing())
		return;
	wanted = KT_MAX(wanted, KT_MIN(FIRST_HELPERS, pool.machine.limit));
	make_helpers(wanted, cpus);
}

void pool_leave(void)
{
	kt_add(&pool.jobs, (uint32_t)-1);
}

uint32_t pool_generation(void)
{
	return kt_load(&pool.generation);
}

bool pool_closing(void)
{
	return kt_load(&pool.closing);
}

struct kt_cap *pool_machine(void)
{
	pthread_once(&once, init);
	return &pool.machine;
}

struct kt_cap *pool_node(int index)
{
	return index >= 0 && index < TOPO_NODES_MAX ? &pool.nodes[index] : NULL;
}

/* ---- the caller's side ---- */

static bool offer_to(struct helper *h, struct seat *seat)
{
	uint32_t word = kt_load(&h->word);
	enum phase phase = phase_of(word);
	uint32_t claimed = with_phase(word + TICKET_ONE, CLAIMED);

	if ((phase != IDLE && phase != ASLEEP) || kt_load(&h->dismissed))
		return false;
	if (!kt_cas(&h->word, &word, claimed))
		return false;
	place(h, seat->cpus);
	h->seat = seat;
	seat->helper = h;
	seat->ticket = with_phase(claimed, EMPTY);
	seat->seated = true;
	kt_store_release(&h->word, with_phase(claimed, OFFERED));
	if (phase == ASLEEP)
		futex_wake(&h->word, 1);
	return true;
}

/* One round from where the last search ended; first over the helpers that
 * know the node, then over all. */
bool pool_offer(struct seat *seat, int node)
{
	uint32_t nr = kt_load_acquire(&pool.nr);
	uint32_t start = kt_load(&pool.hint);

	for (int pass = node < 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < nr; i++) {
			struct helper *h = &pool.helpers[(start + i) % nr];

			if (!pass && kt_load(&h->node) != node)
				continue;
			if (!offer_to(h, seat))
				continue;
			kt_store(&h->node, node);
			kt_store(&pool.hint, (start + i + 1) % nr);
			return true;
		}
	}
	return false;
}

enum seat_state pool_seat_state(const struct seat *seat)
{
	uint32_t word = kt_load_acquire(&seat->helper->word);

	if (with_phase(word, EMPTY) != seat->ticket)
		return SEAT_DONE;
	if (phase_of(word) == OFFERED)
		return SEAT_OFFERED;
	return phase_of(word) >= RUNNING ? SEAT_RUNNING : SEAT_DONE;
}

bool pool_withdraw(struct seat *seat)
{
	uint32_t word = with_phase(seat->ticket, OFFERED);

	return move(seat->helper, &word, IDLE);
}

/* RUNNING -> LENDING -> WAITED; false if the helper has left by then. */
static bool lend(struct helper *h, uint32_t *word, const struct prio *prio)
{
	pid_t tid = __atomic_load_n(&h->tid, __ATOMIC_ACQUIRE);

	if (!move(h, word, LENDING))
		return false;
	h->lent = prio_lend(tid, prio);
	*word = with_phase(*word, WAITED);
	kt_store_release(&h->word, *word);
	return h->lent;
}

bool pool_wait(struct seat *seat, const struct prio *prio)
{
	struct helper *h = seat->helper;
	uint64_t until = kt_now_ns() + WAIT_SPIN_NS;
	uint32_t word = with_phase(seat->ticket, RUNNING);
	bool lent = false;

	while (pool_seat_state(seat) != SEAT_DONE && kt_now_ns() < until)
		cpu_relax();
	if (prio && prio_mode() == PRIO_LEND)
		lent = lend(h, &word, prio);
	while (pool_seat_state(seat) != SEAT_DONE) {
		word = with_phase(seat->ticket, RUNNING);
		move(h, &word, WAITED);
		futex_wait(&h->word, with_phase(seat->ticket, WAITED), 0);
	}
	return lent;
}

/* Let an idle helper end.  Return: its thread id, 0 if it is not idle. */
static pid_t dismiss(struct helper *h)
{
	enum phase phase = phase_of(kt_load(&h->word));

	if (phase != IDLE && phase != ASLEEP)
		return 0;
	kt_store_release(&h->dismissed, 1);
	futex_wake(&h->word, 1);
	/* A thread that has not run yet tells its id when it does. */
	for (int n = 0; n < TRIM_POLLS; n++) {
		pid_t tid = __atomic_load_n(&h->tid, __ATOMIC_ACQUIRE);

		if (tid)
			return tid;
		nanosleep(&(struct timespec){ .tv_nsec = TRIM_POLL_NS }, NULL);
	}
	return 0;
}

static bool wait_until_gone(struct helper *h, pid_t tid)
{
	for (int n = 0; n < TRIM_POLLS; n++) {
		if (syscall(SYS_tgkill, getpid(), tid, 0))
			return true;
		futex_wake(&h->word, 1);
		nanosleep(&(struct timespec){ .tv_nsec = TRIM_POLL_NS }, NULL);
	}
	return false;
}

unsigned ktask_trim(void)
{
	uint32_t nr = kt_load_acquire(&pool.nr);
	unsigned nr_ended = 0;
	int saved = errno;

	for (uint32_t i = 0; i < nr; i++) {
		pid_t tid = dismiss(&pool.helpers[i]);

		if (tid)
			nr_ended += wait_until_gone(&pool.helpers[i], tid);
	}
	errno = saved;
	return nr_ended;
}
