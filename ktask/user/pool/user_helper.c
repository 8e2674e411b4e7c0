/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a helper thread does by itself: it takes items, parks, and leaves items.  Also how
 * its thread is made and placed.
 *
 * Does not know who submits items (user/pool/user_pool.c), nor what a job is.
 * user/pool/user_helper.h has the protocol and says who owns which field.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <ktask/ktask.h>

#include "user/limits/config.h"
#include "util/futex.h"
#include "user/pool/user_helper.h"
#include "user/machine/topo.h"

#define STACK_BYTES (256 * 1024)
/* How long a helper may spin for the next job before it sleeps: about what
 * sleeping and waking cost (5 to 50 us); less where jobs are rare. */
#define SPIN_MAX_NS 50000
#define SPIN_MIN_NS 1000
/* The same after the item that woke it was cancelled: long enough for the next job
 * of a series, and no longer, because the helper is not low. */
#define SPIN_WOKEN_NS 10000
/* Between two tries to begin. */
#define NAP_MIN_NS 250000
#define NAP_MAX_NS 2000000
/* A helper's CPUs are set anew after this time, should somebody have changed
 * them. */
#define PLACED_NS 1000000000
/* How often a helper that idled long enough to end checks whether jobs run.  It
 * stays while they do, since no helper is made then. */
#define BUSY_POLL_NS 100000000

/* Spin for @spin_ns.  Return: the word when there is an item or the time is up. */
static uint32_t spin_for_item(struct helper *h, uint64_t spin_ns)
{
	uint64_t until = kt_now_ns() + spin_ns;
	uint32_t word;

	kt_store(&h->spin_until_ns, until);
	do {
		for (int i = 0; i < 32; i++) {
			word = kt_load_acquire(&h->word);
			if (phase_of(word) == QUEUED)
				return word;
			cpu_relax();
		}
	} while (kt_now_ns() < until);
	return word;
}

/* Notes whether this item came soon after the one before.  Called before the item is taken,
 * because a caller that cancels the item reads the answer. */
static void note_item(struct helper *h, uint64_t *since_ns)
{
	uint64_t now_ns = kt_now_ns();

	kt_store(&h->in_series, now_ns - *since_ns <= SPIN_MAX_NS);
	*since_ns = now_ns;
}

static void adapt_spin(struct helper *h)
{
	if (kt_load(&h->in_series))
		h->spin_ns = SPIN_MAX_NS;
	else
		h->spin_ns = KT_MAX(h->spin_ns / 2, SPIN_MIN_NS);
}

/* Only the helper itself may change its priority without owning the word. */
static void assert_may_raise(struct helper *h)
{
	kt_assert(phase_of(kt_load(&h->word)) == CLAIMED ||
		  helper_tid(h) == gettid());
}

void helper_raise(struct helper *h)
{
	assert_may_raise(h);
	if (!kt_load(&h->low))
		return;
	prio_raise(helper_tid(h));
	kt_store(&h->low, 0);
}

/* A helper that is not low yet has a CPU.  It finds no item and raises itself. */
void helper_raise_taker(struct helper *h)
{
	if (prio_is_lowest(helper_tid(h)))
		helper_raise(h);
}

/*
 * QUEUED -> TAKING -> RUNNING, at the lowest priority that is allowed.
 *
 * If the item was cancelled, the helper raises itself, even if another thread has raised
 * it: that may have been before it lowered itself.  But if items follow each other
 * closely, the helper stays low and spins for the next one.  Otherwise a series of short
 * jobs, each of which ends before the helper is low, took twice as long: 5 us a job
 * instead of 2.3.
 *
 * Return: false if the item was cancelled.
 */
static bool take_item(struct helper *h, uint32_t word)
{
	/* A thread that has not run yet has begun no item, and is not waited for. */
	kt_assert(helper_tid(h) == gettid());
	if (kt_load(&h->low) || prio_mode() != PRIO_LEND || pool_closing())
		return helper_move(h, &word, RUNNING);
	if (!helper_move(h, &word, TAKING))
		return false;
	kt_store(&h->low, 1);
	prio_lower();
	word = with_phase(word, TAKING);
	if (helper_move(h, &word, RUNNING))
		return true;
	if (kt_load(&h->in_series))
		return false;
	prio_raise(0);
	kt_store(&h->low, 0);
	return false;
}

/*
 * IDLE -> ASLEEP.  The helper raises itself before it sleeps.  It stays IDLE until then, so
 * that it can get an item: raising may take long, and a caller that finds no idle helper
 * tries again only at its next tick.  No other thread lowers the helper; a caller that
 * cancels its item raises it too.
 *
 * Return: false if an item came first.
 */
static bool fall_asleep(struct helper *h, uint32_t word)
{
	helper_raise(h);
	return helper_move(h, &word, ASLEEP);
}

/* Sleep until the word changes.  Return: false when it is time to end. */
static bool sleep_for_item(struct helper *h, uint32_t word)
{
	uint64_t idle_ns = (uint64_t)config_get()->idle_ms * 1000000 + 1;

	if (phase_of(word) == IDLE && !fall_asleep(h, word))
		return true;
	word = with_phase(word, ASLEEP);
	while (kt_load_acquire(&h->word) == word) {
		bool end = kt_load(&h->dismissed);

		if (!end && futex_wait(&h->word, word, idle_ns) == -ETIMEDOUT) {
			end = !pool_busy();
			idle_ns = KT_MAX(idle_ns, BUSY_POLL_NS);
		}
		if (!end)
			continue;
		/* Set this first: from EMPTY on another thread may be made here. */
		kt_store_release(&h->ended_tid, (uint32_t)helper_tid(h));
		if (helper_move(h, &word, EMPTY))
			return false;
		kt_store(&h->ended_tid, 0);
		return true;
	}
	return true;
}

/* Return: true with an item taken, false when the thread shall end. */
static bool next_item(struct helper *h)
{
	uint64_t since_ns = kt_now_ns();
	uint64_t spin_ns = h->spin_ns;

	for (;;) {
		uint32_t word = spin_for_item(h, spin_ns);

		if (phase_of(word) == QUEUED) {
			note_item(h, &since_ns);
			if (!take_item(h, word))
				continue;
			adapt_spin(h);
			return true;
		}
		if (phase_of(word) == CLAIMED)
			continue;
		if (!sleep_for_item(h, word))
			return false;
		spin_ns = KT_MIN(h->spin_ns, SPIN_WOKEN_NS);
	}
}

/* @phase: IDLE for good, QUEUED to try again.  From then on the item and its job may
 * not exist any more. */
static void leave_item(struct helper *h, enum phase phase)
{
	uint32_t word = kt_load_acquire(&h->word);

	kt_assert(helper_tid(h) == gettid());
	do {
		/* The caller is inside one system call. */
		while (phase_of(word) == LENDING) {
			sched_yield();
			word = kt_load_acquire(&h->word);
		}
	} while (!helper_move(h, &word, phase));
	if (phase_of(word) == WAITED)
		futex_wake(&h->word, 1);
	kt_store(&h->loans, 0);
}

/* The helper could not begin: try again soon, unless the item is cancelled.  A
 * helper that got a loan is no longer low, and lowers itself when it tries again. */
static void decline_item(struct helper *h)
{
	uint32_t word = with_phase(kt_load(&h->word), QUEUED);

	kt_store(&h->spin_until_ns, 0);
	leave_item(h, QUEUED);
	futex_wait(&h->word, word, h->nap_ns);
	h->nap_ns = KT_MIN(h->nap_ns * 2, NAP_MAX_NS);
}

void helper_note_loan(struct helper *h, const struct prio *prio)
{
	helper_assert_phase(h, LENDING);
	kt_store_release(&h->loans, kt_load(&h->loans) + 1);
	kt_store_release(&h->loan.policy, prio->policy);
	kt_store_release(&h->loan.nice, prio->nice);
	kt_store_release(&h->loan.rt_priority, prio->rt_priority);
	/* A helper that has read half of it reads it again. */
	kt_store_release(&h->loans, kt_load(&h->loans) + 1);
}

/*
 * The caller may have lent its priority just before this helper changed its own priority,
 * which undid the loan.  So take the loan again.  A later loan overwrites what is set
 * here.  A loan during this function is counted, and taken in the next round.
 */
static void keep_loan(struct helper *h)
{
	uint32_t loans = kt_load_acquire(&h->loans);
	uint32_t taken = 0;

	while (taken != loans) {
		struct prio prio = { kt_load_acquire(&h->loan.policy),
				     kt_load_acquire(&h->loan.nice),
				     kt_load_acquire(&h->loan.rt_priority) };

		taken = loans;
		prio_take(&prio);
		loans = kt_load_acquire(&h->loans);
	}
}

/* Before the helper leaves an item for good: while low it might get no CPU to leave. */
static void raise_self(struct helper *h)
{
	if (!kt_load(&h->low) || (kt_load(&h->in_series) && !h->blocks))
		return;
	if (!kt_load_acquire(&h->loans))
		prio_raise(0);
	keep_loan(h);
	kt_store(&h->low, 0);
}

/* Leave the item after its work.  Give back a lent priority only after that, because the
 * caller may be waiting.  By then the helper is IDLE and may get another item: see
 * fall_asleep(). */
static void finish_item(struct helper *h)
{
	raise_self(h);
	h->blocks = false;
	leave_item(h, IDLE);
	if (h->lent) {
		h->lent = false;
		kt_store(&h->low, 1);
		helper_raise(h);
	}
}

void pool_item_blocks(struct pool_item *item)
{
	struct helper *h = item->helper;

	if (h->blocks || prio_mode() != PRIO_LEND)
		return;
	h->blocks = true;
	/* A loan is noted before it is made, so none is missed here. */
	if (!kt_load_acquire(&h->loans))
		prio_blocks();
	keep_loan(h);
}

void pool_item_lower(struct pool_item *item)
{
	prio_lower();
	keep_loan(item->helper);
}

bool pool_item_was_raised(const struct pool_item *item)
{
	struct helper *h = item->helper;

	kt_assert(helper_tid(h) == gettid());
	/* Last: the end of the process is told before it raises helpers. */
	return kt_load(&h->low) && !h->blocks && !kt_load_acquire(&h->loans) &&
	       !prio_is_lowest(0) && !pool_closing();
}

bool pool_item_cpus(const struct pool_item *item, struct kt_cpus *cpus)
{
	struct helper *h = item->helper;

	kt_assert(item->anywhere && helper_tid(h) == gettid());
	return cpus_get_affinity(cpus) && !cpus_equal(cpus, &h->placement.cpus);
}

/*
 * Allow the helper all CPUs of its item.  No caller places the helpers of a detached job
 * anew, so the scheduler has to move them when other CPUs idle.  A thread that was just
 * made may still be bound to fewer CPUs.
 */
static void widen_self(struct helper *h)
{
	uint32_t word = kt_load(&h->word);

	do {
		/* The caller is widening it now. */
		if (phase_of(word) == LENDING)
			return;
	} while (!helper_move(h, &word, LENDING));
	helper_widen(h);
	kt_store_release(&h->word, word);
}

static bool mode_changed(enum prio_mode mode)
{
	return mode == PRIO_LEND && prio_mode() != PRIO_LEND;
}

/*
 * Helpers block all signals, which are meant for the program, but not those of faults.
 * Blocking these would only keep a fault from the handler of the program or of the
 * operation.
 */
static void helper_signals(sigset_t *set)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGILL,
				      SIGFPE,  SIGTRAP, SIGSYS };

	sigfillset(set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(set, faults[i]);
}

static void assert_signals_blocked(void)
{
#ifdef KT_ASSERTS
	sigset_t wanted, now;

	helper_signals(&wanted);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	sigdelset(&wanted, SIGKILL);
	sigdelset(&wanted, SIGSTOP);
	for (int i = 1; i < NSIG; i++)
		kt_assert(sigismember(&wanted, i) != 1 ||
			  sigismember(&now, i) == 1);
#endif
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;
	enum prio_mode mode = PRIO_UNKNOWN;

	prctl(PR_SET_NAME, "ktask", 0, 0, 0);
	assert_signals_blocked();

	while (next_item(h)) {
		uint32_t generation = pool_generation();

		if (mode == PRIO_UNKNOWN)
			mode = prio_mode();
		if (h->item->anywhere)
			widen_self(h);
		if (!h->item->work(h->item)) {
			decline_item(h);
			continue;
		}
		h->nap_ns = NAP_MIN_NS;
		/* A chunk forked, and this is the only thread of the child, which has no
		 * job to return to.  End the helpers of jobs that the chunk ran in the
		 * child: they would keep the process alive until they end by
		 * themselves. */
		if (generation != pool_generation()) {
			ktask_trim();
			pthread_exit(NULL);
		}
		finish_item(h);
		/* The process gave up its rights: it can never raise this thread. */
		if (mode_changed(mode))
			kt_store(&h->dismissed, 1);
	}
	return NULL;
}

/* The clock of a thread by its id, as pthread_getcpuclockid() makes it.  Not by
 * clock_ns(), because a thread that has ended must be told from one that never ran. */
uint64_t helper_cpu_ns(uint32_t tid)
{
	clockid_t clock = (clockid_t)(~tid << 3 | 6);
	struct timespec ts;
	int saved = errno;
	bool known = !clock_gettime(clock, &ts);

	errno = saved;
	return known ? (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec
		     : UINT64_MAX;
}

/* ---- making and placing helpers ---- */

/*
 * Helpers are kept off the caller's CPU, because the scheduler alone does worse.  In a
 * virtual machine, an idle CPU often counts as preempted by the host.  A SCHED_IDLE thread
 * that wakes is then queued behind the caller.  Under KVM it took 1.9 ms until it ran, and
 * 0.03 ms with this.
 */
static void choose_cpus(const struct placement *placement, struct kt_cpus *mask)
{
	kt_placement_cpus(placement->cores, placement->cpus.words,
			  placement->avoid, placement->level, mask->words);
	for (size_t i = 0; i < KT_CPUS_MAX / 64; i++)
		kt_assert(!(mask->words[i] & ~placement->cpus.words[i]));
}

static bool bind_thread(pid_t tid, const struct placement *placement)
{
	struct kt_cpus mask;

	choose_cpus(placement, &mask);
	return cpus_set_affinity(tid, &mask);
}

/* The kernel widens the mask of a thread whose last CPU goes, and resets it when the
 * control group's CPUs change.  It does not tell the process. */
static bool is_fresh(const struct helper *h, uint64_t now_ns)
{
	return now_ns >= h->placed_ns && now_ns - h->placed_ns < PLACED_NS;
}

bool helper_place(struct helper *h, const struct pool_item *item)
{
	const struct kt_cores *cores = &topo_get()->cores;
	bool same = cpus_equal(&h->placement.cpus, item->cpus);
	pid_t tid = helper_tid(h);
	int here = item->anywhere ? -1 : sched_getcpu();
	struct placement placement;

	helper_assert_phase(h, CLAIMED);
	if (same && h->placement.avoid == here &&
	    h->placement.level == item->level && h->placement.cores == cores &&
	    is_fresh(h, item->now_ns))
		return same;
	placement = (struct placement){ *item->cpus, item->level, here, cores };
	if (!bind_thread(tid, &placement))
		return same;
	h->placement = placement;
	h->placed_ns = item->now_ns;
	return true;
}

/* The caller is about to sleep: its CPU may be the only idle one. */
void helper_widen(struct helper *h)
{
	struct placement *placement = &h->placement;

	helper_assert_phase(h, LENDING);
	if (placement->avoid < 0 && placement->level == KT_PLACEMENT_ANY)
		return;
	if (!cpus_set_affinity(helper_tid(h), &placement->cpus))
		return;
	placement->avoid = -1;
	placement->level = KT_PLACEMENT_ANY;
}

static void set_attributes(pthread_attr_t *attr,
			   const struct placement *placement)
{
	struct sched_param normal = { .sched_priority = 0 };
	struct kt_cpus mask;

	pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(attr, STACK_BYTES);
	if (!placement)
		return;
	/* Not the caller's real-time policy. */
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &normal);
	choose_cpus(placement, &mask);
	pthread_attr_setaffinity_np(attr, sizeof(mask),
				    (const cpu_set_t *)&mask);
}

/* POSIX threads do not tell the kernel's id, but the id of the thread's clock
 * contains it.  The thread must not have ended. */
static pid_t tid_of(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0
						     : (pid_t) ~(clock >> 3);
}

/* @placement: NULL to inherit CPUs and policy.  Return: 0 or a positive errno. */
static int start_thread(struct helper *h, const struct placement *placement)
{
	sigset_t blocked, saved;
	pthread_attr_t attr;
	pthread_t thread;
	int error = pthread_attr_init(&attr);

	helper_assert_phase(h, CLAIMED);
	if (error)
		return error;
	set_attributes(&attr, placement);
	helper_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &saved);
	error = pthread_create(&thread, &attr, helper_main, h);
	/* While CLAIMED it does not end. */
	if (!error)
		kt_store_release(&h->tid, tid_of(thread));
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/* For sandboxes that forbid to choose CPUs or policy (QEMU's under libvirt). */
static int start_where_we_are(struct helper *h)
{
	h->placement.avoid = -1;
	if (!cpus_get_affinity(&h->placement.cpus))
		memset(&h->placement.cpus, 0xff, sizeof(h->placement.cpus));
	return start_thread(h, NULL);
}

bool helper_make(struct helper *h, const struct kt_cpus *cpus)
{
	uint32_t word = kt_load(&h->word);
	int error;

	if (phase_of(word) != EMPTY || !helper_move(h, &word, CLAIMED))
		return true;
	kt_store(&h->tid, 0);
	h->lent = false;
	h->blocks = false;
	kt_store(&h->in_series, 0);
	kt_store(&h->low, 0);
	kt_store(&h->spin_until_ns, 0);
	kt_store(&h->loans, 0);
	kt_store(&h->node, -1);
	h->spin_ns = SPIN_MAX_NS;
	h->nap_ns = NAP_MIN_NS;
	kt_store(&h->dismissed, 0);
	h->placement = (struct placement){ *cpus, KT_PLACEMENT_ANY,
					   sched_getcpu(), &topo_get()->cores };
	h->placed_ns = kt_now_ns();
	error = start_thread(h, &h->placement);
	if (error == EPERM || error == EINVAL)
		error = start_where_we_are(h);
	if (!error && !prio_find_out(helper_tid(h)))
		kt_store(&h->dismissed, 1);
	/* Only a thread that exists may be given an item. */
	kt_store_release(&h->word, with_phase(word, error ? EMPTY : IDLE));
	return !error;
}
