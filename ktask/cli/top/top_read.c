/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Takes a snapshot of the jobs of the machine: see top.h.
 *
 * The library knows the jobs; which node a helper is on is read from /proc,
 * where helper threads are called "ktask".  Those that wait for a CPU before they
 * may take a permit look the same, as do those of another job of the process: of each
 * job no more are counted than it has.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ktask/ops.h>

#include "top.h"
#include "cli/ui/text.h"
#include "common/proc_stat.h"
#include "util/file.h"

/* ---- nodes ---- */

static void read_nodes(struct top *top, hwloc_topology_t topology)
{
	hwloc_obj_t node = NULL;

	while (top->nr_nodes < TOP_NODES &&
	       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
						  node)))
		top->node_ids[top->nr_nodes++] = node->os_index;
}

/* Index of the node that has @cpu, or -1. */
static int node_of(hwloc_topology_t topology, unsigned cpu)
{
	hwloc_obj_t node = NULL;
	int index = 0;

	while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
						  node))) {
		if (hwloc_bitmap_isset(node->cpuset, cpu))
			return index < TOP_NODES ? index : -1;
		index++;
	}
	return -1;
}

/* The CPU of a helper that runs now; -1: it does not, or is no helper. */
static int helper_cpu(const char *path)
{
	const char *state, *cpu;
	char text[1024];

	if (file_text(path, text, sizeof(text)) <= 0 ||
	    !strstr(text, "(ktask) "))
		return -1;
	state = proc_stat_field(text, PROC_STAT_STATE);
	cpu = proc_stat_field(text, PROC_STAT_CPU);
	return cpu && (*state == 'R' || *state == 'D') ? atoi(cpu) : -1;
}

static void read_helpers(struct top_job *job, hwloc_topology_t topology)
{
	unsigned left = job->info.helpers;
	struct dirent *entry;
	char path[300];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", job->info.pid);
	dir = opendir(path);
	while (dir && left && (entry = readdir(dir))) {
		int cpu, node;

		/* The first thread is the program's; ours is called so too. */
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    atoi(entry->d_name) == job->info.pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat",
			 job->info.pid, entry->d_name);
		cpu = helper_cpu(path);
		node = cpu < 0 ? -1 : node_of(topology, (unsigned)cpu);
		if (node < 0)
			continue;
		job->nodes[node]++;
		left--;
	}
	if (dir)
		closedir(dir);
}

unsigned top_node(const struct top *top, unsigned index)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < top->nr_jobs; i++)
		sum += top->jobs[i].nodes[index];
	return sum;
}

/* ---- jobs ---- */

/* Pids are those of the job's own namespace: another process may have it. */
static bool is_seen(const struct ktask_job_info *info)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", info->pid);
	return !stat(path, &st) && st.st_uid == info->uid;
}

static void name_user(struct top_job *job)
{
	const struct passwd *user = getpwuid(job->info.uid);

	if (user)
		snprintf(job->user, sizeof(job->user), "%s", user->pw_name);
	else
		snprintf(job->user, sizeof(job->user), "%u", job->info.uid);
}

/* Another user's process may have put anything there. */
static void make_printable(char *name, size_t size)
{
	name[size - 1] = '\0';
	for (size_t i = 0; name[i]; i++)
		if (name[i] < ' ' || name[i] > '~')
			name[i] = '?';
	if (!name[0])
		strcpy(name, "?");
}

/* The same job in the snapshot before: the same process, with the same work. */
static const struct top_job *find_before(const struct top *before,
					 const struct ktask_job_info *info)
{
	for (unsigned i = 0; before && i < before->nr_jobs; i++) {
		const struct ktask_job_info *then = &before->jobs[i].info;

		if (then->pid == info->pid && then->uid == info->uid &&
		    then->units_total == info->units_total &&
		    then->units_done <= info->units_done &&
		    then->elapsed_ns < info->elapsed_ns &&
		    !strcmp(then->name, info->name))
			return &before->jobs[i];
	}
	return NULL;
}

static double rate_of(const struct ktask_job_info *info,
		      const struct top_job *then)
{
	uint64_t units = info->units_done, ns = info->elapsed_ns;

	if (then) {
		units -= then->info.units_done;
		ns -= then->info.elapsed_ns;
	}
	return ns ? units * 1e9 / ns : 0;
}

static void complete_job(struct top_job *job, hwloc_topology_t topology,
			 const struct top *before)
{
	make_printable(job->info.name, sizeof(job->info.name));
	name_user(job);
	job->bytes = ktask_op_find(job->info.name) != NULL;
	job->seen = is_seen(&job->info);
	job->rate = rate_of(&job->info, find_before(before, &job->info));
	if (job->seen)
		read_helpers(job, topology);
}

static int by_pid(const void *a, const void *b)
{
	const struct top_job *x = a, *y = b;

	if (x->info.pid != y->info.pid)
		return x->info.pid < y->info.pid ? -1 : 1;
	/* The older first. */
	return x->info.elapsed_ns < y->info.elapsed_ns ? 1 : -1;
}

/* As many as have an entry there. */
#define KERNEL_JOBS 256

/* There may be more jobs when they are asked for than when they are counted;
 * those are left for the next snapshot. */
static int read_jobs(struct top *top)
{
	unsigned there = (unsigned)ktask_jobs(NULL, 0, NULL);
	unsigned capacity = there + 16 + KERNEL_JOBS, nr, i;
	struct ktask_job_info *infos = calloc(capacity, sizeof(*infos));

	top->jobs = calloc(capacity, sizeof(*top->jobs));
	if (!infos || !top->jobs) {
		free(infos);
		return -ENOMEM;
	}
	infos[0] = (struct ktask_job_info)KTASK_JOB_INFO_INIT;
	top->permits = (struct ktask_permits_info)KTASK_PERMITS_INFO_INIT;
	nr = (unsigned)ktask_jobs(infos, capacity, &top->permits);
	nr = nr < capacity ? nr : capacity;
	nr += top_kernel_jobs(infos + nr, capacity - nr);
	top->nr_jobs = nr;
	for (i = 0; i < top->nr_jobs; i++)
		top->jobs[i].info = infos[i];
	free(infos);
	return 0;
}

int top_read(struct top *top, hwloc_topology_t topology,
	     const struct top *before)
{
	memset(top, 0, sizeof(*top));
	read_nodes(top, topology);
	if (read_jobs(top))
		return -ENOMEM;
	for (unsigned i = 0; i < top->nr_jobs; i++)
		complete_job(&top->jobs[i], topology, before);
	qsort(top->jobs, top->nr_jobs, sizeof(*top->jobs), by_pid);
	return 0;
}

void top_free(struct top *top)
{
	free(top->jobs);
	top->jobs = NULL;
	top->nr_jobs = 0;
}

/* ---- what is missing ---- */

static unsigned nr_unseen(const struct top *top)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < top->nr_jobs; i++)
		nr += !top->jobs[i].seen;
	return nr;
}

const char *top_not_seen(const struct top *top, unsigned index, char buf[128])
{
	unsigned unseen = nr_unseen(top);

	snprintf(buf, 128,
		 "jobs of one thread, in a chunk of more than 50 ms, "
		 "or with a /dev/shm of their own");
	if (!index--)
		return buf;
	snprintf(
		buf, 128,
		"processes of %u job%s here (another PID namespace, or hidden)",
		unseen, plural_suffix(unseen));
	if (unseen && !index--)
		return buf;
	snprintf(buf, 128,
		 "permits of others: the shared table cannot be "
		 "joined, caps hold for each process alone");
	if (!top->permits.shared && !index--)
		return buf;
	snprintf(buf, 128,
		 "jobs whose tables somebody has hidden behind "
		 "others: /dev/shm has too many names");
	if (top->permits.cut && !index--)
		return buf;
	return NULL;
}
