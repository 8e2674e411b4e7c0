/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See monitor.h and ktask/monitor.h.
 *
 * Behaves badly: with two jobs that block in one process nobody can tell whose
 * threads are ready, and both managers read the states of their threads from /proc.
 */
#include <errno.h>
#include <string.h>

#include <ktask/monitor.h>

#include "core/deps.h"
#include "lib/monitor.h"
#include "lib/pool.h"
#include "util/struct_size.h"

static struct ktask_monitor monitor;
static uint32_t there; /* monitor is set */
static uint32_t generation; /* of the process that set it */
static uint32_t nr_members;

static __thread bool member;

static bool is_there(void)
{
	return kt_load_acquire(&there) &&
	       kt_load(&generation) == pool_generation();
}

static int take_monitor(struct ktask_monitor *own,
			const struct ktask_monitor *wanted)
{
	int error =
		struct_size_read(own, sizeof(*own), wanted,
				 STRUCT_SIZE_TO(struct ktask_monitor, calm));

	if (error)
		return error;
	return own->add && own->remove && own->ready && own->calm ? 0 : -EINVAL;
}

int ktask_set_monitor(const struct ktask_monitor *wanted)
{
	struct ktask_monitor own = { 0 };
	int error = wanted ? take_monitor(&own, wanted) : 0;

	if (pool_busy())
		return -EBUSY;
	if (error)
		return error;
	kt_store_release(&there, 0);
	if (!wanted)
		return 0;
	monitor = own;
	kt_store(&generation, pool_generation());
	kt_store(&nr_members, 0);
	kt_store_release(&there, 1);
	return 0;
}

void monitor_join(void)
{
	if (member || !is_there() || monitor.add(monitor.arg))
		return;
	member = true;
	kt_add(&nr_members, 1);
}

void monitor_leave(void)
{
	if (!member)
		return;
	member = false;
	if (!is_there())
		return;
	monitor.remove(monitor.arg);
	kt_add(&nr_members, (uint32_t)-1);
}

int monitor_ready(unsigned working)
{
	if (!is_there() || kt_load(&nr_members) != working)
		return -1;
	return monitor.ready(monitor.arg);
}

int monitor_fd(void)
{
	return is_there() ? monitor.fd : -1;
}

void monitor_calm(void)
{
	if (is_there())
		monitor.calm(monitor.arg);
}
