/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits: CPUs, affinity, the cap, the environment, and idle CPUs where
 * priority could not be lent.  The least of them holds; ktask_limits() tells
 * people why.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include <ktask/ktask.h>

#include "core/caps.h"
#include "lib/config.h"
#include "lib/limits.h"
#include "lib/pool.h"
#include "lib/prio.h"
#include "lib/topo.h"

#define NO_LIMIT 65536u

static unsigned affinity_threads(struct kt_cpus *cpus)
{
	if (cpus_get_affinity(cpus))
		return cpus_count(cpus);
	memset(cpus, 0xff, sizeof(*cpus));
	return NO_LIMIT;
}

static unsigned env_threads(void)
{
	unsigned max = config_get()->max_threads;

	return max ? max : NO_LIMIT;
}

unsigned limits_threads(struct kt_cpus *cpus)
{
	unsigned threads = affinity_threads(cpus);

	threads = KT_MIN(threads, env_threads());
	threads = KT_MIN(threads, pool_machine()->limit + 1);
	return KT_MAX(threads, 1);
}

bool limits_idle_only(void)
{
	enum prio_mode mode = prio_mode();

	return mode == PRIO_KEEP || (mode == PRIO_UNKNOWN && !prio_may_lend());
}

/* The fourth field of /proc/loadavg, "running/all"; 0 if unreadable.  It costs
 * 3 us, a twentieth of /proc/stat on a large machine. */
static unsigned running_threads(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	unsigned running = 0;

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) > 0 &&
	    sscanf(text, "%*s %*s %*s %u/", &running) != 1)
		running = 0;
	close(fd);
	return running;
}

unsigned limits_idle_threads(unsigned own)
{
	unsigned cpus = topo_get()->nr_cpus;
	unsigned running = running_threads();
	unsigned others = running > own ? running - own : 0;

	return others < cpus ? cpus - others : 1;
}

struct listing {
	struct ktask_limit *limits;
	unsigned nr, room;
};

__attribute__((format(printf, 4, 5))) static void list(struct listing *listing,
						       const char *name,
						       unsigned threads,
						       const char *why, ...)
{
	struct ktask_limit *limit;
	va_list args;

	if (listing->nr++ >= listing->room)
		return;
	limit = &listing->limits[listing->nr - 1];
	limit->name = name;
	limit->threads = threads;
	va_start(args, why);
	vsnprintf(limit->why, sizeof(limit->why), why, args);
	va_end(args);
}

static void list_priority(struct listing *listing)
{
	if (!limits_idle_only())
		list(listing, "priority", NO_LIMIT,
		     "helpers run as SCHED_IDLE and nice 19 and are lent the "
		     "caller's priority at the end");
	else
		list(listing, "priority", limits_idle_threads(1),
		     "no right to raise a thread again (CAP_SYS_NICE, "
		     "RLIMIT_NICE): helpers only on CPUs that idle now");
}

unsigned ktask_limits(struct ktask_limit *limits, unsigned nr)
{
	struct listing listing = { .limits = limits, .room = nr };
	const struct topo *topo = topo_get();
	unsigned percent = config_get()->cap_percent;
	unsigned env = config_get()->max_threads;
	int saved = errno;
	struct kt_cpus cpus;

	list(&listing, "cpus", topo->nr_cpus, "%u CPUs online, %u NUMA nodes",
	     topo->nr_cpus, topo->nr_nodes);
	list(&listing, "affinity", affinity_threads(&cpus),
	     "CPUs that the calling thread may run on");
	list(&listing, "cap", pool_machine()->limit + 1,
	     "helpers may use %u %% of the CPUs; and the caller", percent);
	if (env)
		list(&listing, "env", env, "KTASK_MAX_THREADS=%u", env);
	list_priority(&listing);
	errno = saved;
	return listing.nr;
}
