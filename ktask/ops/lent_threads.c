/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See lent_threads.h.
 *
 * Locking: lent_threads.h.
 */
#include <stdbool.h>
#include <unistd.h>

#include "lent_threads.h"
#include "user/job_waits.h"
#include "user/pool/user_prio.h"

int lent_threads_enter(struct lent_threads *threads)
{
	pid_t self = gettid();

	for (int i = 0; i < LENT_THREADS_MAX; i++) {
		pid_t none = 0;

		if (!atomic_compare_exchange_strong(&threads->tids[i], &none,
						    self))
			continue;
		atomic_fetch_add(&threads->nr, 1);
		return i;
	}
	return -1;
}

void lent_threads_leave(struct lent_threads *threads, int index)
{
	pid_t self;

	if (index < 0)
		return;
	self = atomic_exchange(&threads->tids[index], 0);
	atomic_fetch_sub(&threads->nr, 1);
	job_return_loan(atomic_compare_exchange_strong(&threads->lent[index],
						       &self, 0));
}

static void lend_at(struct lent_threads *threads, int index,
		    const struct prio *own)
{
	pid_t tid = atomic_load(&threads->tids[index]);

	if (!tid || !prio_is_lowest(tid))
		return;
	/* Note the loan first: the helper looks for it when it leaves. */
	atomic_store(&threads->lent[index], tid);
	if (atomic_load(&threads->tids[index]) == tid)
		prio_lend(tid, own);
}

void lent_threads_lend(struct lent_threads *threads)
{
	struct prio own;

	if (!atomic_load(&threads->nr) || prio_mode() != PRIO_LEND ||
	    !prio_own(&own) || prio_lowest(&own))
		return;
	for (int i = 0; i < LENT_THREADS_MAX; i++)
		lend_at(threads, i, &own);
}

void lent_threads_forked(struct lent_threads *threads)
{
	for (int i = 0; i < LENT_THREADS_MAX; i++) {
		atomic_store(&threads->tids[i], 0);
		atomic_store(&threads->lent[i], 0);
	}
	atomic_store(&threads->nr, 0);
}
