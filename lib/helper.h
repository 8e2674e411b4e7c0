/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper thread, and the word through which all hand-over goes:
 *
 *   EMPTY   no thread
 *   IDLE    awake, looks at its word          --offer-->  OFFERED
 *   ASLEEP  sleeps on its word                --offer-->  OFFERED (woken)
 *   CLAIMED a caller writes the offer, or the thread is being made
 *   OFFERED --helper takes it--> RUNNING,  --caller withdraws--> IDLE
 *   RUNNING --caller sleeps on the word--> WAITED,  --done--> IDLE,
 *           --cannot begin--> OFFERED
 *   LENDING the caller changes the helper's priority; then WAITED.  Or the
 *           helper its own CPUs; then what it was before
 *
 * The word also counts offers (the ticket), so that a caller never mistakes a
 * later offer for its own.  No lock is held by a helper, ever: a helper that
 * gets no CPU can delay only a chunk that it has begun.
 */
#ifndef KTASK_LIB_HELPER_H
#define KTASK_LIB_HELPER_H

#include "core/deps.h"
#include "lib/cpus.h"
#include "lib/pool.h"

enum phase { EMPTY, IDLE, ASLEEP, CLAIMED, OFFERED, RUNNING, LENDING, WAITED };

#define PHASE_MASK 7u
#define TICKET_ONE 8u

/* What the affinity of a helper is made of. */
struct placement {
	struct kt_cpus cpus;
	enum kt_place_level level;
	int avoid; /* the CPU that the caller was on; -1 none */
	const struct kt_cores *cores;
};

struct helper {
	KT_CACHE_ALIGNED uint32_t word; /* ticket and phase; futex */
	bool lent; /* by the caller, while LENDING */
	/* What was lent last, by the caller, while LENDING. */
	uint32_t loans; /* counted before and after each is noted here */
	struct prio loan;
	bool blocks; /* its own: it went up for this seat */
	uint32_t dismissed; /* end when idle */
	struct seat *seat; /* valid from OFFERED to the end of RUNNING */
	pid_t tid; /* 0 until the thread runs */
	int node; /* dense index it was last asked for, or -1 */
	uint64_t spin_ns, nap_ns;
	struct placement place; /* owned by who holds CLAIMED */
	uint64_t placed_ns;
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

static inline pid_t helper_tid(struct helper *h)
{
	return kt_load_acquire(&h->tid);
}

/*
 * helper_make - start a thread in an EMPTY helper, on @cpus
 *
 * Return: false if the thread could not be made; true also when there is one.
 */
bool helper_make(struct helper *h, const struct kt_cpus *cpus);

/*
 * helper_place - by the owner of a CLAIMED helper: run it where @seat says
 *
 * Return: false if it cannot be had there.
 */
bool helper_place(struct helper *h, const struct seat *seat);

/* helper_note_loan - while LENDING, before @prio is lent: a helper that changes
 * its own priority meanwhile finds it */
void helper_note_loan(struct helper *h, const struct prio *prio);

/* helper_widen - while LENDING: let it run on its caller's CPU as well */
void helper_widen(struct helper *h);

#endif /* KTASK_LIB_HELPER_H */
