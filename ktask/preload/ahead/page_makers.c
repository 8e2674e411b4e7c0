/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See page_makers.h.
 *
 * Locking: there is no lock, and nothing is allocated, because a signal handler may map
 * memory.  A slot has 0, or the thread id of the helper that claimed it.  A thread that
 * raises the helper sets RAISING for that time.  The helper does not leave while RAISING
 * is set: its id could belong to another thread next.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/ahead/page_makers.h"
#include "preload/shim.h"
#include "util/sched_attr.h"
#include "util/scoped.h"

/* Further helpers are not raised. */
#define NR_SLOTS 64
#define RAISING (1u << 31)
/* RAISING may never be cleared: a signal handler may have left the raising thread by
 * longjmp(). */
#define YIELDS_MOST 1000

static _Atomic uint32_t maker_slots[NR_SLOTS];

static uint32_t own_number(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

void page_makers_join(void)
{
	uint32_t own = own_number();

	for (size_t i = 0; i < NR_SLOTS; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&maker_slots[i], &none, own))
			return;
	}
}

static void free_slot(_Atomic uint32_t *slot, uint32_t own)
{
	uint32_t word = own;

	for (int i = 0;
	     !atomic_compare_exchange_strong(slot, &word, 0) && i < YIELDS_MOST;
	     i++) {
		word = own;
		sched_yield();
	}
	if (word != own)
		atomic_store(slot, 0);
}

void page_makers_leave(void)
{
	uint32_t own = own_number();

	for (size_t i = 0; i < NR_SLOTS; i++) {
		if ((atomic_load(&maker_slots[i]) & ~RAISING) != own)
			continue;
		free_slot(&maker_slots[i], own);
		return;
	}
}

/* Return: whether the calling thread has a priority to lend. */
static bool find_loan(struct sched_attr_v0 *loan)
{
	struct sched_attr_v0 own = { 0 };

	if (syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) ||
	    own.policy == SCHED_IDLE)
		return false;
	*loan = (struct sched_attr_v0){ .size = sizeof(*loan),
					.policy = SCHED_OTHER };
	if (own.policy == SCHED_OTHER || own.policy == SCHED_BATCH)
		loan->nice = own.nice;
	return true;
}

static void raise_maker(_Atomic uint32_t *slot,
			const struct sched_attr_v0 *loan)
{
	uint32_t word = atomic_load(slot), raising = word | RAISING;

	if (!word || word == raising ||
	    !atomic_compare_exchange_strong(slot, &word, raising))
		return;
	if (sched_getscheduler((pid_t)word) == SCHED_IDLE)
		syscall(SYS_sched_setattr, word, loan, 0);
	atomic_compare_exchange_strong(slot, &raising, word);
}

void page_makers_raise(void)
{
	struct sched_attr_v0 loan;
	keep_errno();

	if (!shim_filter_allows() || !find_loan(&loan))
		return;
	for (size_t i = 0; i < NR_SLOTS; i++)
		raise_maker(&maker_slots[i], &loan);
}

void page_makers_forget(void)
{
	for (size_t i = 0; i < NR_SLOTS; i++)
		atomic_store(&maker_slots[i], 0);
}
