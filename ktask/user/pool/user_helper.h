/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper thread, and the word through which all hand-over goes:
 *
 *   EMPTY   no thread
 *   IDLE    awake, polls its word             --submit--> QUEUED
 *   ASLEEP  sleeps on its word                --submit--> QUEUED (woken)
 *   CLAIMED a caller submits an item, or raises the thread; or the thread is
 *           being made
 *   QUEUED  --helper takes it--> TAKING,  --caller cancels--> IDLE
 *   TAKING  the helper lowers itself; then RUNNING.  The caller may still
 *           cancel the item.  Then it raises the helper, unless jobs follow
 *           each other
 *   RUNNING --caller sleeps on the word--> WAITED,  --done--> IDLE,
 *           --cannot begin--> QUEUED
 *   LENDING the caller changes the helper's priority; then WAITED.  Or the
 *           helper changes its own CPUs; then the phase before
 *
 * A parked helper has the priority of the process.  Otherwise a process that ends would
 * wait until SCHED_IDLE threads get a CPU to die on.  A helper lowers itself when it takes
 * an item, and raises itself before it leaves the item.  The caller does neither, because
 * changing a thread that runs on another CPU takes 10 us in a guest.  If jobs follow each
 * other within the spin time of a helper, the helper stays low between them.  It raises
 * itself before it sleeps.  If it loses its CPU while it is low, it is raised by the next job
 * that cancels an item of it, or by exit().
 *
 * The word also counts items (the ticket), so that a caller never mistakes a later
 * item for its own.  A helper never holds a lock: a helper that gets no CPU can delay
 * only a chunk that it has begun.
 *
 * Locking: the phase in the word says which thread owns the fields.  helper_move()
 * changes it by compare-and-swap.
 *
 *	C: the thread that moved the word to CLAIMED
 *	L: the thread that moved the word to LENDING
 *	H: the helper's own thread, from TAKING to the end of its item
 *	A: read by any thread: kt_load() and kt_store()
 */
#ifndef KTASK_USER_HELPER_H
#define KTASK_USER_HELPER_H

#include "core/deps.h"
#include "util/cpus.h"
#include "user/pool/user_pool.h"

enum phase {
	EMPTY,
	IDLE,
	ASLEEP,
	CLAIMED,
	QUEUED,
	TAKING,
	RUNNING,
	LENDING,
	WAITED
};

#define PHASE_MASK 15u
#define TICKET_ONE 16u

/* What the affinity of a helper is made of. */
struct placement {
	struct kt_cpus cpus;
	enum kt_placement_level level;
	int avoid; /* the CPU that the caller was on; -1 none */
	const struct kt_cores *cores;
};

struct helper {
	KT_CACHE_ALIGNED uint32_t word; /* ticket and phase; futex; A */
	bool lent; /* L; read by the helper when it leaves its item */
	/* What was lent last. */
	uint32_t loans; /* counted before and after each is noted here; L, A */
	struct prio loan; /* L, A */
	bool blocks; /* it was raised since this item blocks; H */
	/* Lowered and not raised since.  Set by H and by the helper while IDLE;
	 * cleared by these, by C and by L; A. */
	uint32_t low;
	uint32_t in_series; /* its last item soon followed another; H, A */
	uint32_t dismissed; /* end when idle; A */
	struct pool_item *item; /* C; valid from QUEUED to the end of RUNNING */
	pid_t tid; /* 0 until the thread is made; C, A */
	uint32_t ended_tid; /* of the thread that was here last, 0 if gone; A */
	int node; /* dense index it was last asked for, or -1; A */
	uint64_t spin_ns, nap_ns; /* H */
	uint64_t spin_until_ns; /* it spins until then; the helper's, A */
	struct placement placement; /* C, L */
	uint64_t placed_ns; /* C */
};

static inline enum phase phase_of(uint32_t word)
{
	return (enum phase)(word & PHASE_MASK);
}

static inline uint32_t with_phase(uint32_t word, enum phase phase)
{
	return (word & ~PHASE_MASK) | (uint32_t)phase;
}

/* helper_move - from *@word to @phase; false, and *@word new, if it changed */
static inline bool helper_move(struct helper *h, uint32_t *word,
			       enum phase phase)
{
	return kt_cas(&h->word, word, with_phase(*word, phase));
}

/* Is the word at @phase, which only the thread that moved it there may leave? */
static inline void helper_assert_phase(const struct helper *h, enum phase phase)
{
	kt_assert(phase_of(kt_load(&h->word)) == phase);
}

static inline pid_t helper_tid(struct helper *h)
{
	return kt_load_acquire(&h->tid);
}

/*
 * helper_make - start a thread in an EMPTY helper, on @cpus
 *
 * Return: false if no thread could be made; true also if the helper has one already.
 */
bool helper_make(struct helper *h, const struct kt_cpus *cpus);

/*
 * helper_place - run a CLAIMED helper where @item says; by the thread that claimed it
 *
 * Return: false if it cannot run there.
 */
bool helper_place(struct helper *h, const struct pool_item *item);

/* helper_cpu_ns - CPU time of thread @tid so far; UINT64_MAX if there is none */
uint64_t helper_cpu_ns(uint32_t tid);

/* helper_raise - to the priority of the process; by the thread that claimed it */
void helper_raise(struct helper *h);

/*
 * helper_raise_taker - the same, for a helper that was TAKING when its item was cancelled
 *
 * Waits for nothing.  If the helper is preempted after this check, in the microsecond in
 * which it lowers itself, it stays low until it gets a CPU, the next job cancels its item,
 * or the process exits.
 */
void helper_raise_taker(struct helper *h);

/* helper_note_loan - call this while LENDING, before @prio is lent: a helper that changes
 * its own priority at that time then finds the loan */
void helper_note_loan(struct helper *h, const struct prio *prio);

/* helper_widen - while LENDING: let it run on its caller's CPU as well */
void helper_widen(struct helper *h);

#endif /* KTASK_USER_HELPER_H */
