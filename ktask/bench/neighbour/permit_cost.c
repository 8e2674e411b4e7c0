/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What getting and returning a permit of the shared registry costs where nobody
 * else wants one.  The one place here that looks into the library.
 */
#include <errno.h>
#include <stdlib.h>

#include <ktask/ktask.h>

#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "user/limits/permits.h"
#include "parts.h"
#include "table.h"

#define BATCHES 101
#define BATCH 1000
/* Others may hold all permits for a while. */
#define WAIT_NS 90000000000u
#define PAUSE_NS 1000000

/* Opens the registry, as the first job of a process does. */
static bool open_table(void)
{
	struct ktask_permits_info info = KTASK_PERMITS_INFO_INIT;

	ktask_jobs(NULL, 0, &info);
	return permits_shared();
}

/* Return: ns for one, or 0 where another process had the last permit. */
static double one_batch(void)
{
	uint64_t start_ns = clock_ns();

	for (int i = 0; i < BATCH; i++) {
		int permit = permits_take(1);

		if (permit < 0)
			return 0;
		permits_put(permit);
	}
	return (double)(clock_ns() - start_ns) / BATCH;
}

int permit_cost_run(const struct settings *set)
{
	uint64_t until = clock_ns() + WAIT_NS;
	bool shared = open_table();
	double ns[BATCHES];

	for (int batch = 0; batch < BATCHES;) {
		ns[batch] = one_batch();
		if (ns[batch] > 0)
			batch++;
		else if (clock_ns() > until)
			return EBUSY;
		else
			clock_pause_ns(PAUSE_NS);
	}
	table_begin("permits", "a permit taken and returned, uncontended");
	table_add(json_pack("{s:s s:f s:f}", "table",
			    shared ? "shared" : "none", "median_us",
			    stats_of(ns, BATCHES).median / 1e3, "worst_us",
			    ns[BATCHES - 1] / 1e3));
	return 0;
}
