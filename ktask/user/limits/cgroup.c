/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading control groups, and the process's own view of them.
 *
 * Measured on 2 CPUs (version 1, Linux 6.18): the first refresh takes 52 us, the
 * check each second 16 us without a quota and 9 us more for each quota, a refresh
 * 7 us for each quota.  Between refreshes a job pays two loads and reads the clock.
 * When cpu.stat is read, version 2 adds up the CPU time of all CPUs.  That may take long
 * on a large machine, so REFRESH_PART bounds it.
 *
 * Locking, for this_process:
 *	B: busy, a lock of one word: the id of the process whose thread refreshes.
 *	   No thread waits for it.
 *	A: written under B, read by any thread: kt_load() and kt_store()
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/limits/cgroup.h"
#include "user/pool/user_pool.h"
#include "util/clock.h"
#include "util/large_static.h"
#include "util/scoped.h"

/* Version 1 has numbers near 2^63 for "no limit". */
#define MEMORY_NONE (1ull << 62)
/* With more left than helpers could ever need nobody counts pages of files. */
#define MEMORY_PLENTY (1ull << 30)
#define HELPERS_BESIDE 64
/* Refreshing may take this part of the time.  One that lasted long, because the
 * thread was throttled or stopped, puts off the next by no more than this. */
#define REFRESH_PART 64
#define REFRESH_MOST_NS CGROUP_FIND_NS

/* ---- files of a group ---- */

static void file_path(char path[FILE_PATH], const struct cgroup_dir *dir,
		      unsigned len, const char *name)
{
	snprintf(path, FILE_PATH, "%.*s/%s", (int)len, dir->path, name);
}

static bool read_number(const struct cgroup_dir *dir, unsigned len,
			const char *name, uint64_t *value)
{
	char path[FILE_PATH];

	file_path(path, dir, len, name);
	return file_number(path, value);
}

static int read_text(const struct cgroup_dir *dir, unsigned len,
		     const char *name, char *text, size_t size)
{
	char path[FILE_PATH];

	file_path(path, dir, len, name);
	return file_text(path, text, size);
}

static unsigned whole_len(const struct cgroup_dir *dir)
{
	return (unsigned)strlen(dir->path);
}

/* ---- limits ---- */

/* "50000 100000", or "max 100000" */
static bool read_cpu_max(const struct cgroup_dir *dir, unsigned len,
			 uint64_t *quota, uint64_t *period)
{
	char text[64];
	int got = read_text(dir, len, "cpu.max", text, sizeof(text));
	char *space = strchr(text, ' ');

	if (got <= 0 || !space || text[got - 1] != '\n')
		return false;
	text[got - 1] = '\0';
	*space = '\0';
	return text_number(text, quota) && text_number(space + 1, period);
}

/* Thousandths of a CPU; UINT32_MAX: no limit. */
static uint32_t read_quota(const struct cgroup_dir *dir, unsigned len)
{
	uint64_t quota, period;
	bool limited;

	if (dir->version == 2)
		limited = read_cpu_max(dir, len, &quota, &period);
	else /* -1, which is no number here, is no limit. */
		limited = read_number(dir, len, "cpu.cfs_quota_us", &quota) &&
			  read_number(dir, len, "cpu.cfs_period_us", &period);
	return limited ? kt_quota_milli(quota, period) : UINT32_MAX;
}

/* What is known of a level that was there before. */
static struct kt_quota *known_quota(struct cgroup_level *levels, unsigned nr,
				    unsigned len)
{
	for (unsigned i = 0; i < nr; i++)
		if (levels[i].len == len)
			return &levels[i].quota;
	return NULL;
}

static void find_levels(struct cgroup *cg, bool moved)
{
	const struct cgroup_dir *dir = &cg->dirs[CGROUP_CPU];
	const struct cgroup_dir *usage = &cg->dirs[CGROUP_USAGE];
	struct cgroup_level was[CGROUP_LEVELS];
	unsigned nr_was = moved ? 0 : cg->nr_levels;
	bool usage_seen = usage->version;
	unsigned len, usage_len;

	memcpy(was, cg->levels, sizeof(was));
	cg->nr_levels = 0;
	if (!dir->version)
		return;
	len = whole_len(dir);
	usage_len = usage_seen ? whole_len(usage) : 0;
	do {
		uint32_t milli = read_quota(dir, len);
		struct cgroup_level *level = &cg->levels[cg->nr_levels];
		struct kt_quota *known = known_quota(was, nr_was, len);

		if (milli != UINT32_MAX) {
			cg->nr_levels++;
			level->quota = known ? *known : (struct kt_quota){ 0 };
			level->quota.milli = milli;
			level->len = len;
			level->usage_len = usage_seen ? usage_len : 0;
		}
		usage_seen = usage_seen && cgroup_up(usage, &usage_len);
	} while (cg->nr_levels < CGROUP_LEVELS && cgroup_up(dir, &len));
}

/* Bytes that count against a limit although the kernel could reclaim them. */
typedef uint64_t reclaimable_fn(struct cgroup *cg, unsigned len);

static uint64_t nothing_reclaimable(struct cgroup *cg, unsigned len)
{
	return 0;
}

/* Pages of files, which the kernel drops when it needs memory.  The finder's buffer is
 * free to be used here. */
static uint64_t cached_bytes(struct cgroup *cg, unsigned len)
{
	const struct cgroup_dir *dir = &cg->dirs[CGROUP_MEMORY];
	uint64_t active = 0, inactive = 0;
	char *text = cg->finder.text;

	read_text(dir, len, "memory.stat", text, sizeof(cg->finder.text));
	if (dir->version == 2) {
		text_field(text, "active_file", &active);
		text_field(text, "inactive_file", &inactive);
	} else {
		text_field(text, "total_active_file", &active);
		text_field(text, "total_inactive_file", &inactive);
	}
	return active + inactive;
}

/*
 * The least of limit minus use, from the group upwards
 * @plenty: if so much is left, reclaimable memory need not be counted
 */
static uint64_t least_left(struct cgroup *cg, enum cgroup_kind kind,
			   const char *limit_name, const char *used_name,
			   uint64_t none, uint64_t plenty,
			   reclaimable_fn *reclaimable)
{
	const struct cgroup_dir *dir = &cg->dirs[kind];
	uint64_t least = UINT64_MAX;
	uint64_t limit, used, left;
	unsigned len;

	if (!dir->version)
		return least;
	len = whole_len(dir);
	do {
		if (!read_number(dir, len, limit_name, &limit) ||
		    limit >= none || !read_number(dir, len, used_name, &used))
			continue;
		left = limit > used ? limit - used : 0;
		if (left < plenty)
			left += reclaimable(cg, len);
		left = KT_MIN(left, limit);
		least = KT_MIN(least, left);
	} while (cgroup_up(dir, &len));
	return least;
}

static uint64_t pids_left(struct cgroup *cg)
{
	return least_left(cg, CGROUP_PIDS, "pids.max", "pids.current",
			  UINT64_MAX, 0, nothing_reclaimable);
}

uint64_t cgroup_memory_left(struct cgroup *cg)
{
	bool second = cg->dirs[CGROUP_MEMORY].version == 2;

	return least_left(cg, CGROUP_MEMORY,
			  second ? "memory.max" : "memory.limit_in_bytes",
			  second ? "memory.current" : "memory.usage_in_bytes",
			  MEMORY_NONE, cg->memory_plenty, cached_bytes);
}

/* ---- refreshing ---- */

static void refresh_level(const struct cgroup *cg, struct cgroup_level *level,
			  uint64_t now_ns, const struct cgroup_own *own)
{
	const struct cgroup_dir *dir = &cg->dirs[CGROUP_CPU];
	struct kt_quota_sample sample = {
		.now_ns = now_ns,
		.group_ns = KT_QUOTA_UNKNOWN,
		.own_ns = own->cpu_ns,
		.throttled_ns = KT_QUOTA_UNKNOWN,
		.own_threads = own->threads,
	};
	char text[1024];
	uint64_t value;

	read_text(dir, level->len, "cpu.stat", text, sizeof(text));
	text_field(text, "nr_throttled", &sample.nr_throttled);
	if (text_field(text, "throttled_usec", &value))
		sample.throttled_ns = value * 1000;
	else if (text_field(text, "throttled_time", &value))
		sample.throttled_ns = value;
	if (text_field(text, "usage_usec", &value))
		sample.group_ns = value * 1000;
	else if (level->usage_len &&
		 read_number(&cg->dirs[CGROUP_USAGE], level->usage_len,
			     "cpuacct.usage", &value))
		sample.group_ns = value;
	kt_quota_step(&level->quota, &sample);
}

void cgroup_init(struct cgroup *cg, const char *root)
{
	memset(cg, 0, sizeof(*cg));
	cg->root = root;
	cg->pids_left = UINT64_MAX;
	cg->memory_left = UINT64_MAX;
	cg->memory_plenty = MEMORY_PLENTY;
}

/* What all helpers of the machine need, and as many compensating ones as a job may have.
 * On a large machine the kernel takes milliseconds to add memory.stat up. */
static uint64_t enough_memory(void)
{
	uint64_t helpers = kt_load(&pool_machine()->limit) + HELPERS_BESIDE;

	return KT_MIN(helpers * CGROUP_HELPER_BYTES, MEMORY_PLENTY);
}

void cgroup_refresh(struct cgroup *cg, uint64_t now_ns,
		    const struct cgroup_own *own)
{
	if (now_ns >= cg->find_due_ns) {
		bool moved =
			cgroup_find(&cg->finder, cg->root, &cg->mark, cg->dirs);

		find_levels(cg, moved);
		cg->pids_left = pids_left(cg);
		cg->memory_left = cgroup_memory_left(cg);
		cg->find_due_ns = now_ns + CGROUP_FIND_NS;
	}
	for (unsigned i = 0; i < cg->nr_levels; i++)
		refresh_level(cg, &cg->levels[i], now_ns, own);
	cg->refresh_due_ns =
		cg->nr_levels ? now_ns + CGROUP_REFRESH_NS : cg->find_due_ns;
}

uint64_t cgroup_memory_threads(const struct cgroup *cg)
{
	return cg->memory_left / CGROUP_HELPER_BYTES;
}

unsigned cgroup_most(const struct cgroup *cg)
{
	unsigned most = CGROUP_NO_LIMIT;

	for (unsigned i = 0; i < cg->nr_levels; i++)
		most = KT_MIN(most, kt_quota_most(&cg->levels[i].quota));
	return most;
}

unsigned cgroup_now(const struct cgroup *cg)
{
	unsigned now = CGROUP_NO_LIMIT;

	for (unsigned i = 0; i < cg->nr_levels; i++)
		now = KT_MIN(now, kt_quota_threads(&cg->levels[i].quota));
	return now;
}

const struct cgroup_level *cgroup_least(const struct cgroup *cg, char *name,
					size_t size)
{
	const struct cgroup_dir *dir = &cg->dirs[CGROUP_CPU];
	const struct cgroup_level *least = NULL;

	for (unsigned i = 0; i < cg->nr_levels; i++)
		if (!least || cg->levels[i].quota.milli < least->quota.milli)
			least = &cg->levels[i];
	if (!least)
		return NULL;
	if (least->len == dir->top_len)
		snprintf(name, size, "/");
	else
		snprintf(name, size, "%.*s", (int)(least->len - dir->top_len),
			 dir->path + dir->top_len);
	return least;
}

/* ---- of this process ---- */

static struct {
	struct cgroup cg; /* B */
	uint32_t pid; /* whose view it is; B */
	uint32_t busy; /* 0, or the id of the process whose thread refreshes */
	uint64_t due_ns; /* A */
	uint32_t now, start; /* threads; 0: never refreshed; A */
} this_process LARGE_STATIC;

/*
 * One thread refreshes; the others use what was found before.  In the child of a fork
 * the thread of the parent does not exist, and may have left half of its work.  So the
 * child takes the lock over.  Its CPU time counts from 0.
 */
static bool lock_view(void)
{
	uint32_t self = (uint32_t)getpid();
	uint32_t busy = kt_load(&this_process.busy);

	if (busy == self || !kt_cas(&this_process.busy, &busy, self))
		return false;
	if (this_process.pid != self)
		cgroup_init(&this_process.cg, file_root);
	this_process.cg.memory_plenty = enough_memory();
	this_process.pid = self;
	return true;
}

static unsigned start_threads(const struct cgroup *cg)
{
	uint64_t more = KT_MIN(cg->pids_left, cgroup_memory_threads(cg));

	if (more >= CGROUP_NO_LIMIT)
		return cgroup_most(cg);
	return (unsigned)KT_MIN(cgroup_most(cg), 1 + pool_helpers() + more);
}

static void refresh_view(uint64_t now_ns)
{
	struct cgroup_own own;
	keep_errno();
	uint64_t begin_ns, pause_ns;

	if (!lock_view())
		return;
	begin_ns = kt_now_ns();
	own.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	own.threads = 1 + kt_load(&pool_machine()->used);
	cgroup_refresh(&this_process.cg, now_ns, &own);
	kt_store(&this_process.now, cgroup_now(&this_process.cg));
	kt_store(&this_process.start, start_threads(&this_process.cg));
	pause_ns = KT_MIN((kt_now_ns() - begin_ns) * REFRESH_PART,
			  REFRESH_MOST_NS);
	kt_store(&this_process.due_ns,
		 KT_MAX(this_process.cg.refresh_due_ns, now_ns + pause_ns));
	kt_assert(kt_load(&this_process.busy) == (uint32_t)getpid());
	kt_store_release(&this_process.busy, 0);
}

static void refresh_if_due(uint64_t now_ns)
{
	if (now_ns >= kt_load(&this_process.due_ns))
		refresh_view(now_ns ? now_ns : kt_now_ns());
}

unsigned cgroup_threads(uint64_t now_ns)
{
	refresh_if_due(now_ns);
	return kt_load(&this_process.now) ? kt_load(&this_process.now)
					  : CGROUP_NO_LIMIT;
}

unsigned cgroup_start_threads(uint64_t now_ns)
{
	refresh_if_due(now_ns);
	return kt_load(&this_process.start) ? kt_load(&this_process.start)
					    : CGROUP_NO_LIMIT;
}
