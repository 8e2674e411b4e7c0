/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See free_cpus.h.
 *
 * The time of this process's helpers would have been idle without them.  Its other threads
 * keep their CPUs.  A caller that used less than a CPU is about to use one.
 *
 * Locking, for free_state: there is no lock.
 *	B: busy, taken by compare-and-swap.  No thread waits for it.  In the child of a
 *	   fork it may hold the parent's generation, and is taken over.
 *	A: written under B, read by any thread: kt_load() and kt_store()
 */
#include "core/deps.h"
#include "user/limits/free_cpus.h"
#include "user/machine/topo.h"
#include "user/pool/user_pool.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/idle_cpus.h"

struct reading {
	uint64_t now_ns, idle_ns, helpers_ns, process_ns;
};

static struct {
	uint32_t busy; /* 0, or 1 + the generation of who reads */
	struct reading last; /* B */
	uint64_t mark; /* of the CPUs that it is about; A */
	uint64_t read_ns; /* last.now_ns; A */
	int32_t free[2]; /* without a caller, and beside one; A */
} free_state;

unsigned free_cpus_part(struct kt_cpus *cpus)
{
	unsigned nr;

	if (!cpus_get_affinity(cpus))
		return 0;
	nr = cpus_count(cpus);
	return nr < topo_nr_cpus() ? nr : 0;
}

static int whole_cpus(int64_t ns, int64_t passed_ns)
{
	return ns > 0 ? (int)((ns + passed_ns / 2) / passed_ns) : 0;
}

static void compare_readings(const struct reading *last,
			     const struct reading *now)
{
	int64_t passed_ns = (int64_t)(now->now_ns - last->now_ns);
	int64_t helpers_ns = (int64_t)(now->helpers_ns - last->helpers_ns);
	int64_t others_ns =
		(int64_t)(now->process_ns - last->process_ns) - helpers_ns;
	int64_t left_ns = (int64_t)(now->idle_ns - last->idle_ns) + helpers_ns;
	/* The sum becomes less when a helper ends. */
	bool known = last->now_ns && now->now_ns &&
		     passed_ns < IDLE_CPUS_MOST_NS && helpers_ns >= 0;

	kt_store(&free_state.free[0],
		 known ? whole_cpus(left_ns, passed_ns) : FREE_CPUS_UNKNOWN);
	if (others_ns < passed_ns)
		left_ns -= passed_ns - KT_MAX(others_ns, 0);
	kt_store(&free_state.free[1],
		 known ? whole_cpus(left_ns, passed_ns) : FREE_CPUS_UNKNOWN);
}

static bool lock_state(void)
{
	uint32_t self = 1 + pool_generation();
	uint32_t busy = kt_load(&free_state.busy);

	return busy != self && kt_cas(&free_state.busy, &busy, self);
}

static void take_reading(const struct kt_cpus *cpus, uint64_t mark,
			 uint64_t now_ns)
{
	struct reading now = {
		.now_ns = now_ns,
		.helpers_ns = pool_cpu_ns(),
		.process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	};

	if (!idle_cpus_read(cpus, &now.idle_ns))
		now.now_ns = 0;
	if (mark != kt_load(&free_state.mark))
		free_state.last.now_ns = 0;
	compare_readings(&free_state.last, &now);
	free_state.last = now;
	kt_store(&free_state.mark, mark);
	kt_store(&free_state.read_ns, now_ns);
}

/* @now_ns may be older than what another thread has noted. */
static bool is_due(uint64_t now_ns)
{
	uint64_t read_ns = kt_load(&free_state.read_ns);

	return !read_ns || (int64_t)(now_ns - read_ns) >= IDLE_CPUS_NS;
}

int free_cpus(const struct kt_cpus *cpus, uint64_t now_ns, bool beside_caller)
{
	uint64_t mark = text_mark((const char *)cpus, sizeof(*cpus), FILE_MARK);

	if (is_due(now_ns) && lock_state()) {
		if (is_due(now_ns))
			take_reading(cpus, mark, now_ns);
		kt_store_release(&free_state.busy, 0);
	}
	if (mark != kt_load(&free_state.mark))
		return FREE_CPUS_UNKNOWN;
	return kt_load(&free_state.free[beside_caller]);
}
