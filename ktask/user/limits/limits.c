/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits: CPUs, affinity, the cap, the administrator's file, the environment, control
 * groups, energy, and, if priority cannot be lent, idle CPUs.  The least limit applies;
 * ktask_limits() tells people why.
 *
 * Locking: there is no lock.
 *	A: written by any thread, read by any: kt_load() and kt_store().  If two threads
 *	   write at the same time, one value is lost, which costs a refresh.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <ktask/ktask.h>

#include "common/struct_size.h"
#include "core/caps.h"
#include "user/limits/cgroup.h"
#include "user/limits/config.h"
#include "user/limits/energy.h"
#include "user/limits/free_cpus.h"
#include "util/file.h"
#include "user/limits/limits.h"
#include "user/pool/user_pool.h"
#include "user/pool/user_prio.h"
#include "user/user_job.h"
#include "user/machine/topo.h"
#include "util/scoped.h"

#define NO_LIMIT 65536u

static unsigned affinity_threads(struct kt_cpus *cpus)
{
	if (cpus_get_affinity(cpus))
		return cpus_count(cpus);
	memset(cpus, 0xff, sizeof(*cpus));
	return NO_LIMIT;
}

static unsigned config_threads(void)
{
	unsigned max = config_get()->max_threads;

	return max ? max : NO_LIMIT;
}

/* The limits for which files must be read. */
static unsigned policy_threads(uint64_t now_ns)
{
	return KT_MIN(cgroup_start_threads(now_ns), energy_threads(now_ns));
}

void limits_refresh(uint64_t now_ns)
{
	if (topo_refresh(now_ns))
		pool_refresh();
}

/* On a machine of one CPU jobs do not refresh: do it here. */
static unsigned cap_threads(void)
{
	if (!kt_load(&pool_machine()->limit))
		limits_refresh(kt_now_ns());
	return kt_load(&pool_machine()->limit) + 1;
}

unsigned limits_threads(struct kt_cpus *cpus)
{
	unsigned threads = affinity_threads(cpus);
	unsigned policy = policy_threads(0);

	threads = KT_MIN(threads, config_threads());
	threads = KT_MIN(threads, cap_threads());
	/* The job shall not suffer from what may have passed. */
	if (policy < threads)
		policy = policy_threads(kt_now_ns());
	return KT_MAX(KT_MIN(threads, policy), 1);
}

/* CPUs that other threads of the program keep busy, by what it says. */
static int32_t others_work; /* A */

void ktask_others_work(int change)
{
	__atomic_fetch_add(&others_work, change, __ATOMIC_RELAXED);
}

/* The caller is one of them, as a rule. */
static unsigned others_leave(void)
{
	unsigned cpus = topo_get()->nr_cpus;
	int32_t others = kt_load(&others_work);

	if (others <= 1)
		return NO_LIMIT;
	return (unsigned)others <= cpus ? cpus - (unsigned)others + 1 : 1;
}

unsigned limits_now(uint64_t now_ns)
{
	unsigned threads = cgroup_threads(now_ns);

	threads = KT_MIN(threads, others_leave());
	return KT_MIN(threads, energy_threads(now_ns));
}

bool limits_idle_only(void)
{
	enum prio_mode mode = prio_mode();

	return mode == PRIO_KEEP || (mode == PRIO_UNKNOWN && !prio_may_lend());
}

/* The fourth field of /proc/loadavg, "running/all".  It costs 3 us, a twentieth
 * of /proc/stat on a large machine. */
unsigned limits_running(void)
{
	unsigned running = 0;
	char text[128];

	if (system_text(text, sizeof(text), "/proc/loadavg") <= 0 ||
	    sscanf(text, "%*s %*s %*s %u/", &running) != 1)
		return 0;
	return running;
}

/* If the job may not use all CPUs, others that run may be elsewhere. */
bool limits_has_idle_cpu(const struct kt_cpus *cpus)
{
	int nr_free = FREE_CPUS_UNKNOWN;

	if (cpus_count(cpus) < topo_nr_cpus())
		nr_free = free_cpus(cpus, kt_now_ns(), false);
	if (nr_free != FREE_CPUS_UNKNOWN)
		return nr_free;
	return limits_running() <= topo_nr_cpus() + pool_spinning();
}

unsigned limits_idle_threads(unsigned own)
{
	struct kt_cpus own_cpus;
	bool part = free_cpus_part(&own_cpus);
	int nr_free = part ? free_cpus(&own_cpus, kt_now_ns(), true)
			   : FREE_CPUS_UNKNOWN;
	unsigned cpus = topo_nr_cpus();
	unsigned mine = own + pool_spinning();
	unsigned running, others;

	if (nr_free != FREE_CPUS_UNKNOWN)
		return 1 + (unsigned)nr_free;
	running = limits_running();
	others = running > mine ? running - mine : 0;
	return others < cpus ? cpus - others : 1;
}

struct listing {
	struct ktask_limit *limits;
	unsigned nr, capacity;
};

__attribute__((format(printf, 4, 5))) static void
list_limit(struct listing *listing, const char *name, unsigned threads,
	   const char *why, ...)
{
	struct ktask_limit limit = { .name = name, .threads = threads };
	va_list args;

	if (listing->nr++ >= listing->capacity)
		return;
	va_start(args, why);
	vsnprintf(limit.why, sizeof(limit.why), why, args);
	va_end(args);
	struct_size_write_at(listing->limits, listing->nr - 1, &limit,
			     sizeof(limit));
}

static void list_priority(struct listing *listing)
{
	if (!limits_idle_only())
		list_limit(
			listing, "priority", NO_LIMIT,
			"helpers run as SCHED_IDLE and nice 19 and are lent the "
			"caller's priority at the end");
	else if (!limits_running())
		list_limit(listing, "priority", limits_idle_threads(1),
			   "no right to raise a thread again (CAP_SYS_NICE, "
			   "RLIMIT_NICE), and how many run could not be read");
	else
		list_limit(listing, "priority", limits_idle_threads(1),
			   "no right to raise a thread again (CAP_SYS_NICE, "
			   "RLIMIT_NICE): helpers only on CPUs that idle now");
}

static int append_value(char *text, size_t size, int len, const char *format,
			int value)
{
	if (value < 0 || len < 0 || (size_t)len >= size)
		return len;
	return len + snprintf(text + len, size - (size_t)len, format, value);
}

static void list_config(struct listing *listing)
{
	const struct config_file *file = &config_get()->file;
	char text[96] = "";
	int len = 0;

	if (file->refused) {
		list_limit(listing, "config", NO_LIMIT,
			   CONFIG_PATH " is not used: %s", file->refused);
		return;
	}
	len = append_value(text, sizeof(text), len, " cap_percent %d",
			   file->cap_percent);
	len = append_value(text, sizeof(text), len, " node_cap_percent %d",
			   file->node_cap_percent);
	append_value(text, sizeof(text), len, " max_threads %d",
		     file->max_threads);
	if (file->energy < 0 && file->ahead < 0 && !text[0])
		return;
	list_limit(listing, "config",
		   file->max_threads > 0 ? (unsigned)file->max_threads
					 : NO_LIMIT,
		   CONFIG_PATH ":%s%s%s%s%s", text,
		   file->energy < 0 ? "" : " energy ",
		   file->energy < 0 ? "" : config_energy_name(file->energy),
		   file->ahead < 0 ? "" : " ahead ",
		   file->ahead < 0 ? "" : config_ahead_name(file->ahead));
}

/* ---- control groups ---- */

#define GIB 1073741824.0
#define NAME_SHOWN 40

/* The end of a long name tells more than its beginning. */
static const char *shown_name(const char *name)
{
	size_t len = strlen(name);

	return len > NAME_SHOWN ? name + len - NAME_SHOWN : name;
}

/* Why a group's limit is not known; NULL: it is. */
static const char *why_unseen(const struct cgroup *cg, int kind)
{
	char text[16];

	if (cg->dirs[kind].version)
		return NULL;
	if (cg->finder.version[kind])
		return "could not be read: the group's files are not to be seen here";
	/* A kernel without control groups has mounts all the same. */
	return system_text(text, sizeof(text), "/proc/self/mountinfo") <= 0
		       ? "could not be read: /proc is not to be seen here"
		       : NULL;
}

static void list_unlimited(struct listing *listing, const struct cgroup *cg,
			   int kind, const char *name, const char *why)
{
	const char *unseen = why_unseen(cg, kind);

	list_limit(listing, name, NO_LIMIT, "%s", unseen ? unseen : why);
}

static void list_quota(struct listing *listing, struct cgroup *cg)
{
	const struct cgroup_level *level;
	char name[CGROUP_PATH];
	unsigned threads, now;

	level = cgroup_least(cg, name, sizeof(name));
	if (!level) {
		list_unlimited(listing, cg, CGROUP_CPU, "cgroup-quota",
			       "no CPU quota");
		return;
	}
	threads = cgroup_most(cg);
	now = cgroup_threads(kt_now_ns());
	list_limit(listing, "cgroup-quota", KT_MIN(threads, now),
		   "%.2f CPUs in group %s%s", level->quota.milli / 1000.0,
		   shown_name(name), now < threads ? ", partly in use" : "");
}

static void list_memory(struct listing *listing, const struct cgroup *cg)
{
	uint64_t helpers = pool_helpers() + cgroup_memory_threads(cg);

	if (cg->memory_left == UINT64_MAX)
		list_unlimited(listing, cg, CGROUP_MEMORY, "cgroup-memory",
			       "no memory limit");
	else
		list_limit(listing, "cgroup-memory",
			   (unsigned)KT_MIN(1 + helpers, NO_LIMIT),
			   "%.2f GiB of memory left to the group",
			   (double)cg->memory_left / GIB);
}

static void list_pids(struct listing *listing, const struct cgroup *cg)
{
	unsigned helpers = pool_helpers();

	if (cg->pids_left >= NO_LIMIT)
		list_unlimited(listing, cg, CGROUP_PIDS, "cgroup-pids",
			       "no limit on threads that matters");
	else
		list_limit(
			listing, "cgroup-pids",
			1 + helpers + (unsigned)cg->pids_left,
			"threads that the group may still make: %u, helpers there are: %u",
			(unsigned)cg->pids_left, helpers);
}

/* Reads anew: the process's own view belongs to the thread that refreshes it. */
static void list_cgroups(struct listing *listing)
{
	const struct cgroup_own none = { 0, 1 };
	struct cgroup *cg = malloc(sizeof(*cg));

	if (!cg)
		return;
	cgroup_init(cg, file_root);
	cgroup_refresh(cg, kt_now_ns(), &none);
	list_quota(listing, cg);
	list_pids(listing, cg);
	list_memory(listing, cg);
	free(cg);
}

static void list_energy(struct listing *listing)
{
	char why[sizeof(listing->limits->why)];
	unsigned threads = energy_explain(why, sizeof(why));

	list_limit(listing, "energy", threads, "%s", why);
}

/* In a chunk: nested jobs draw their helpers from the outermost one's budget. */
static void list_job(struct listing *listing)
{
	const struct user_job *job = job_current()->job;
	unsigned used, most;

	if (!job)
		return;
	used = kt_load(&job->ctx.budget->used);
	most = kt_load(&job->ctx.budget->limit);
	list_limit(
		listing, "job", 1 + (most > used ? most - used : 0),
		"the calling thread is in a chunk of a job, whose helpers it shares");
}

static void list_all(struct listing *listing)
{
	const struct topo *topo = topo_get();
	unsigned env = config_get()->env_max_threads;
	unsigned left = others_leave();
	struct kt_cpus cpus;

	list_limit(listing, "cpus", topo->nr_cpus,
		   "%u CPU%s online, %u NUMA node%s", topo->nr_cpus,
		   topo->nr_cpus == 1 ? "" : "s", topo->nr_nodes,
		   topo->nr_nodes == 1 ? "" : "s");
	list_limit(listing, "affinity", affinity_threads(&cpus),
		   "CPUs that the calling thread may run on");
	list_limit(listing, "cap", pool_machine()->limit + 1,
		   "helpers may use %u %% of the CPUs; and the caller",
		   config_get()->cap_percent);
	if (env)
		list_limit(listing, "env", env, "KTASK_MAX_THREADS=%u", env);
	if (kt_load(&others_work) > 0)
		list_limit(listing, "others", KT_MIN(left, topo->nr_cpus),
			   "other threads of the program work on %d CPUs",
			   kt_load(&others_work));
	list_job(listing);
	list_config(listing);
	list_cgroups(listing);
	list_energy(listing);
	list_priority(listing);
}

/* Nothing is known of an array without elements. */
static int check_size_of_limits(const struct ktask_limit *limits, unsigned nr)
{
	if (!nr)
		return 0;
	return limits ? struct_size_check(limits->struct_size, STRUCT_SIZE_ONLY)
		      : -EINVAL;
}

int ktask_limits(struct ktask_limit *limits, unsigned nr)
{
	struct listing listing = { .limits = limits, .capacity = nr };
	int error = check_size_of_limits(limits, nr);
	keep_errno();

	if (error)
		return error;
	block_cancellation();
	pool_machine();
	limits_refresh(kt_now_ns());
	list_all(&listing);
	return (int)listing.nr;
}
