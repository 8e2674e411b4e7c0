/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See user_monitor.h and ktask/monitor.h.
 *
 * Behaves badly: with two jobs that block in one process nobody can tell whose
 * threads are ready, and both managers read the states of their threads from /proc.
 *
 * Locking: there is no lock.
 *	S: set by ktask_set_monitor(), while no job runs
 *	A: written by any thread, read by any: kt_load() and kt_store()
 */
#include <errno.h>

#include <ktask/monitor.h>

#include "core/deps.h"
#include "user/blocking/user_monitor.h"
#include "user/pool/user_pool.h"
#include "common/struct_size.h"

static struct ktask_monitor program_monitor; /* S */
static uint32_t monitor_set; /* program_monitor is valid; S, A */
static uint32_t monitor_generation; /* of the process that set it; S, A */
static uint32_t nr_members; /* A */

static __thread bool is_member;

static bool is_there(void)
{
	return kt_load_acquire(&monitor_set) &&
	       kt_load(&monitor_generation) == pool_generation();
}

static int take_monitor(struct ktask_monitor *own,
			const struct ktask_monitor *wanted)
{
	int error =
		struct_size_read(own, sizeof(*own), wanted,
				 STRUCT_SIZE_TO(struct ktask_monitor, drain));

	if (error)
		return error;
	return own->add && own->remove && own->ready && own->drain ? 0
								   : -EINVAL;
}

int ktask_set_monitor(const struct ktask_monitor *wanted)
{
	struct ktask_monitor own = { 0 };
	int error = wanted ? take_monitor(&own, wanted) : 0;

	if (pool_busy())
		return -EBUSY;
	if (error)
		return error;
	kt_store_release(&monitor_set, 0);
	if (!wanted)
		return 0;
	program_monitor = own;
	kt_store(&monitor_generation, pool_generation());
	kt_store(&nr_members, 0);
	kt_store_release(&monitor_set, 1);
	return 0;
}

void monitor_join(void)
{
	if (is_member || !is_there() ||
	    program_monitor.add(program_monitor.arg))
		return;
	is_member = true;
	kt_add(&nr_members, 1);
}

void monitor_leave(void)
{
	if (!is_member)
		return;
	is_member = false;
	if (!is_there())
		return;
	kt_assert(kt_load(&nr_members));
	program_monitor.remove(program_monitor.arg);
	kt_add(&nr_members, (uint32_t)-1);
}

int monitor_ready(unsigned working)
{
	if (!is_there() || kt_load(&nr_members) != working)
		return -1;
	return program_monitor.ready(program_monitor.arg);
}

int monitor_fd(void)
{
	return is_there() ? program_monitor.fd : -1;
}

void monitor_drain(void)
{
	if (is_there())
		program_monitor.drain(program_monitor.arg);
}
