/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Control groups: the capacity of this process's groups, in threads.
 *
 * Owns how and when quota, use, throttling, pids and memory are read, up the tree.
 * core/quota.h has the arithmetic, and user/limits/cgroup_find.h finds the directories.
 * CPU sets are not here, because the affinity mask contains them.
 *
 * A group without these files has no limit, and neither has a machine without control
 * groups.  The process may be moved at any time, so its location is read again every
 * second.
 *
 * Behaves badly if several jobs of one process run at once: each gets all the capacity
 * that there is, until the group is throttled.
 */
#ifndef KTASK_USER_CGROUP_H
#define KTASK_USER_CGROUP_H

#include "core/quota.h"
#include "user/limits/cgroup_find.h"

#define CGROUP_NO_LIMIT 65536u
/* Groups with a quota, one above the other; more are not read. */
#define CGROUP_LEVELS 8

/* A helper's stacks, and page tables that its chunks make: with less left for
 * each, the group's other processes would pay. */
#define CGROUP_HELPER_BYTES (1 << 20)

#define CGROUP_FIND_NS 1000000000
#define CGROUP_REFRESH_NS 50000000

struct cgroup_level {
	unsigned len; /* of the CPU directory's path */
	unsigned
		usage_len; /* the same group's in the usage directory; 0: none */
	struct kt_quota quota;
};

struct cgroup {
	const char *root; /* before every path; not copied */
	uint64_t find_due_ns, refresh_due_ns;
	uint64_t mark;
	struct cgroup_dir dirs[CGROUP_KINDS];
	struct cgroup_level levels[CGROUP_LEVELS];
	unsigned nr_levels;
	uint64_t pids_left; /* threads that may be made; UINT64_MAX: any */
	uint64_t memory_left; /* cgroup_memory_left(), when last found */
	uint64_t
		memory_plenty; /* with so much left pages of files are not counted */
	struct cgroup_finder finder;
};

void cgroup_init(struct cgroup *cg, const char *root);

/* What this process itself uses. */
struct cgroup_own {
	uint64_t cpu_ns; /* CPU time so far */
	unsigned threads; /* in jobs now */
};

/* cgroup_refresh - read what is due by @now_ns */
void cgroup_refresh(struct cgroup *cg, uint64_t now_ns,
		    const struct cgroup_own *own);

/* cgroup_most - threads that the least quota allows, whoever uses it */
unsigned cgroup_most(const struct cgroup *cg);

/* cgroup_now - threads that the groups have capacity for now */
unsigned cgroup_now(const struct cgroup *cg);

/*
 * cgroup_memory_left - bytes that the memory limits of the groups leave
 *
 * If little is left, pages of files count as free, because the kernel can drop them.
 *
 * Return: UINT64_MAX if there is no limit.
 */
uint64_t cgroup_memory_left(struct cgroup *cg);

/* cgroup_memory_threads - threads that may still be made for it */
uint64_t cgroup_memory_threads(const struct cgroup *cg);

/*
 * cgroup_least - the level that allows the fewest threads now, or NULL
 * @name: set to its path below the mount, @size bytes
 */
const struct cgroup_level *cgroup_least(const struct cgroup *cg, char *name,
					size_t size);

/*
 * Of this process, for all of its threads.  @now_ns 0: from the last refresh,
 * however long ago.
 */

/* cgroup_threads - cgroup_now(), from at most CGROUP_REFRESH_NS ago */
unsigned cgroup_threads(uint64_t now_ns);

/* cgroup_start_threads - what a job that starts now may ever have: quota and
 * pids, not what others use */
unsigned cgroup_start_threads(uint64_t now_ns);

#endif /* KTASK_USER_CGROUP_H */
