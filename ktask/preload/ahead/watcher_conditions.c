/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whether this process may have a watcher, and helpers for it: not where they could not
 * help, nor where they would count against a limit that the program may reach itself.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/ahead/ahead.h"
#include "preload/shim.h"
#include "user/limits/config.h"
#include "util/clock.h"
#include "util/cpus.h"
#include "util/file.h"
#include "util/running_threads.h"
#include "util/threads_left.h"

/* How much of a limit on processes must be left: of the user's limit RESERVE_THREADS, of a
 * control group's, which counts exactly, RESERVE_IN_GROUP and one for each CPU. */
#define RESERVE_THREADS 1024
#define RESERVE_IN_GROUP 256
/* What policy allows is asked again after so long. */
#define REFUSED_NS 1000000000u

static rlim_t read_limit(int resource)
{
	struct rlimit limit;

	return getrlimit((__rlimit_resource_t)resource, &limit)
		       ? 0
		       : limit.rlim_cur;
}

/* The stacks of the shim's threads would count against a limit. */
static bool is_unlimited(int resource)
{
	return read_limit(resource) == RLIM_INFINITY;
}

bool ahead_is_unlimited(void)
{
	return is_unlimited(RLIMIT_AS) && is_unlimited(RLIMIT_DATA);
}

/*
 * All threads of the user count against this limit, those of the shim as well.  No file
 * says how many the user has, but there are at most as many as on the whole machine.
 */
static bool user_has_threads(void)
{
	rlim_t limit = read_limit(RLIMIT_NPROC);
	struct machine_load load;

	return limit == RLIM_INFINITY ||
	       (machine_load_read(&load) &&
		limit >= (rlim_t)load.threads + RESERVE_THREADS);
}

static bool groups_have_threads(void)
{
	uint64_t left = threads_left_in_groups();
	struct kt_cpus cpus;

	return left == UINT64_MAX ||
	       (cpus_get_affinity(&cpus) &&
		left >= RESERVE_IN_GROUP + cpus_count(&cpus));
}

bool ahead_may_have_threads(void)
{
	return user_has_threads() && groups_have_threads();
}

/* Files that cannot be read count as a limit. */
enum shim_why ahead_why_no_threads(void)
{
	struct machine_load load;

	return machine_load_read(&load) ? WHY_AHEAD_LIMITS : WHY_AHEAD_PROC;
}

static bool has_cpus(void)
{
	struct kt_cpus cpus;

	return cpus_get_affinity(&cpus) && cpus_count(&cpus) > 1;
}

/* Does policy allow a helper?  The first answer takes 0.3 ms, later ones 0.04. */
static bool has_helpers(void)
{
	/* Locking: none.  Two threads that ask at once both ask policy. */
	static _Atomic uint64_t refused_ns;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), then = refused_ns;

	if (then && now_ns - then < REFUSED_NS)
		return false;
	if (shim_lasting_limit() > 1)
		return true;
	refused_ns = now_ns;
	return false;
}

/* Real-time threads would make the watcher one. */
bool ahead_is_ordinary(void)
{
	int policy = sched_getscheduler(0), mode = 0;

	return (policy == SCHED_OTHER || policy == SCHED_BATCH) &&
	       !syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) && !mode;
}

bool ahead_is_allowed(void)
{
	return config_get()->ahead != CONFIG_AHEAD_OFF;
}

/* The stack of a thread counts against what all processes together may have, also once
 * the thread has ended. */
static bool is_overcommitted(void)
{
	char text[16];

	return file_text("/proc/sys/vm/overcommit_memory", text,
			 sizeof(text)) <= 0 ||
	       *text != '2';
}

enum shim_why ahead_why_not(void)
{
	if (!ahead_is_unlimited() || !is_overcommitted())
		return WHY_AHEAD_LIMITS;
	if (!has_cpus())
		return WHY_AHEAD_HELPERS;
	if (!real_knows_advice(MADV_POPULATE_WRITE))
		return WHY_AHEAD_KERNEL;
	if (!ahead_may_have_threads())
		return ahead_why_no_threads();
	return has_helpers() ? SHIM_NR_WHY : WHY_AHEAD_HELPERS;
}
