/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See served_processes.h.
 *
 * A process is found by its growth.  All of /proc is read again and again, which takes 1 %
 * of one CPU; reading the mappings of served processes takes another 1 %.  Where no CPU is
 * idle both take it from the programs, and nothing could be made: then a quarter of it.  An
 * event for each page fault would cost every process of the machine 6 to 24 ns a fault.
 *
 * A process is served while it has large mappings.  What is known of a mapping is kept, so
 * the bound on waste holds as long as the mapping is not cut.
 *
 * A process with a CPU quota is not served: the daemon's helpers would clear pages while the
 * kernel lets the process wait, at the expense of others.  Whether it has one is read
 * with its mappings, so one that is set later ends the serving.
 *
 * Behaves badly with a process that touches all of its memory before it is found.  That
 * takes 50 ms, or longer if there are thousands of processes.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/memory_claims.h"
#include "daemon/process_choice.h"
#include "daemon/remote_mapping.h"
#include "daemon/remote_window.h"
#include "daemon/served_processes.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/shown_text.h"

#define SERVED_MAX 256
#define MAPPINGS_MAX 32
/* As read from /proc/PID/comm, with its end. */
#define NAME_BYTES 32
/* The most processes in the list, and pages by which a process must have grown: 1 MiB. */
#define LISTED_MAX 32768
#define GROWN_PAGES 256
/* Of so many lists one has those without memory: threads of the kernel, of which a small
 * machine has more than processes, and what has ended. */
#define EMPTY_LISTS 16
/* The time between two readings of all processes, and of the mappings of one; at least
 * COST_TIMES the CPU time of reading. */
#define LIST_NS 50000000
#define MAPS_NS 10000000
#define MAPS_IDLE_NS 200000000
#define COST_TIMES 100
/* While no CPU is idle, when nothing could be made. */
#define BUSY_COST_TIMES 400
/* If there are too many processes, those that have not grown for so long are dropped. */
#define IDLE_NS 10000000000u

bool served_is_verbose;

/* Pages: /proc/PID/statm. */
struct sizes {
	unsigned long all, resident, shared;
};

struct served {
	struct remote_process process;
	char name[NAME_BYTES];
	uint64_t maps_due_ns;
	struct sizes sizes; /* when its mappings were read */
	uint64_t grown_ns; /* when they were seen to change */
	uint64_t made_pages; /* in mappings that are gone */
	struct remote_mapping *mappings[MAPPINGS_MAX];
	bool kept[MAPPINGS_MAX]; /* seen when they were read the last time */
};

/* What was seen of a process that is not served. */
struct listed {
	pid_t pid;
	unsigned long resident;
	bool empty; /* it had no memory */
	bool told; /* that it has a CPU quota */
};

static struct served *all_served[SERVED_MAX];
static unsigned nr_served;
static struct listed all_listed[LISTED_MAX];
static unsigned nr_listed, nr_lists;
static uint64_t list_due_ns;

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Of this thread.  What something costs is its CPU time: a daemon that loses its CPU in
 * between would wait for a hundred times as long as it was without one. */
static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static bool read_sizes(pid_t pid, struct sizes *sizes)
{
	char text[128];

	return system_text(text, sizeof(text), "/proc/%d/statm", pid) > 0 &&
	       sscanf(text, "%lu %lu %lu", &sizes->all, &sizes->resident,
		      &sizes->shared) == 3;
}

/* Return: when to do again what began at @now and cost so much, at the earliest after
 * @least_ns. */
static uint64_t due_after(uint64_t now, uint64_t cost_ns, uint64_t least_ns)
{
	uint64_t rest = cost_ns * (remote_window_may_begin() ? COST_TIMES
							     : BUSY_COST_TIMES);

	return now + (rest > least_ns ? rest : least_ns);
}

/* ---- how much memory there is ---- */

/* Present pages of the process are subtracted: otherwise mappings that are not scanned
 * would count as untouched for ever. */
static uint64_t find_untouched(const struct served *served)
{
	uint64_t sum = 0, all = 0, there = 0;
	bool scanned = true;

	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		const struct remote_mapping *mapping = served->mappings[i];
		uint64_t untouched;

		if (!mapping)
			continue;
		untouched = remote_mapping_untouched(mapping);
		sum += untouched;
		all += mapping->end - mapping->start;
		scanned &= !untouched || remote_mapping_is_scanned(mapping);
	}
	if (scanned)
		return sum;
	if (served->sizes.resident > served->sizes.shared)
		there = (served->sizes.resident - served->sizes.shared) *
			REMOTE_PAGE;
	all = all > there ? all - there : 0;
	return sum < all ? sum : all;
}

/* Do its control groups have room for all processes in them? */
static bool groups_suffice(const struct remote_process *process)
{
	uint64_t left = remote_left_in_groups(process);
	uint64_t sum = CLAIM_RESERVE_BYTES;

	/* Whoever is in none that has a limit shares nothing but the machine. */
	if (left == UINT64_MAX)
		return true;
	for (unsigned i = 0; i < nr_served; i++)
		if (all_served[i]->process.group == process->group)
			sum += find_untouched(all_served[i]);
	return left >= sum;
}

/* Where nothing is known, no memory is made ahead. */
static uint64_t find_available_memory(void)
{
	uint64_t bytes = memory_available_on_machine();

	return bytes == UINT64_MAX ? 0 : bytes;
}

bool served_memory_suffices(const struct remote_process *process)
{
	struct memory_claims claims = { .available = find_available_memory() };

	for (unsigned i = 0; i < nr_served; i++) {
		uint64_t untouched = find_untouched(all_served[i]);

		if (&all_served[i]->process == process)
			claims.own = untouched;
		else
			claims_add_other(&claims, untouched);
	}
	return claims_are_met(&claims) && groups_suffice(process);
}

/* ---- mappings of one process ---- */

static void drop_mapping(struct served *served, size_t i)
{
	struct remote_mapping *mapping = served->mappings[i];

	served->mappings[i] = NULL;
	remote_window_end(mapping, true);
	served->made_pages += mapping->made_pages;
	remote_mapping_free(mapping);
}

static void add_mapping(struct served *served, uintptr_t start, uintptr_t end)
{
	size_t i = 0;

	while (i < MAPPINGS_MAX && served->mappings[i])
		i++;
	if (i == MAPPINGS_MAX || end - start < REMOTE_LEAST_BYTES)
		return;
	served->mappings[i] =
		remote_mapping_new(&served->process, start, end, now_ns());
	served->kept[i] = true;
}

/* The lowest known mapping that lies in the area from @from on. */
static struct remote_mapping *find_known(struct served *served, uintptr_t from,
					 uintptr_t end)
{
	struct remote_mapping *found = NULL;

	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		struct remote_mapping *mapping = served->mappings[i];

		if (!mapping || mapping->start < from || mapping->end > end ||
		    (found && found->start < mapping->start))
			continue;
		found = mapping;
	}
	return found;
}

/* Keep known mappings inside the area, and add the gaps between them. */
static void note_area(void *arg, uintptr_t start, uintptr_t end)
{
	struct served *served = arg;
	struct remote_mapping *known;

	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i] &&
		    served->mappings[i]->start >= start &&
		    served->mappings[i]->end <= end)
			served->kept[i] = true;
	while ((known = find_known(served, start, end))) {
		add_mapping(served, start, known->start);
		start = known->end;
	}
	add_mapping(served, start, end);
}

/* Return: false if the process is gone or cares for itself. */
static bool read_mappings(struct served *served)
{
	memset(served->kept, 0, sizeof(served->kept));
	if (!remote_find_areas(&served->process, note_area, served))
		return false;
	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i] && !served->kept[i])
			drop_mapping(served, i);
	return true;
}

static bool has_mappings(const struct served *served)
{
	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i])
			return true;
	return false;
}

/* Return: false as read_mappings(), or if another process may have its place: it is
 * found again when it grows. */
static bool read_if_due(struct served *served, uint64_t now)
{
	struct sizes sizes;
	uint64_t began_ns;
	bool grew, same;

	if (now < served->maps_due_ns)
		return true;
	began_ns = cpu_ns();
	/* After an exec there is another address space under the same number. */
	if (!remote_is_there(&served->process) ||
	    !read_sizes(served->process.pid, &sizes) ||
	    remote_has_cpu_quota(served->process.pid))
		return false;
	remote_note_group(&served->process);
	grew = sizes.resident != served->sizes.resident;
	same = !grew && sizes.all == served->sizes.all;
	if (grew)
		served->grown_ns = now;
	served->sizes = sizes;
	if ((!same && !read_mappings(served)) ||
	    (!grew && !has_mappings(served)))
		return false;
	served->maps_due_ns = due_after(now, cpu_ns() - began_ns,
					grew ? MAPS_NS : MAPS_IDLE_NS);
	return true;
}

/* ---- processes ---- */

static void say_made(const struct served *served)
{
	uint64_t pages = served->made_pages;

	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i])
			pages += served->mappings[i]->made_pages;
	if (!pages)
		return;
	fprintf(stderr, "ktaskd: %s (%d): %llu MiB made ahead\n", served->name,
		served->process.pid,
		(unsigned long long)(pages * REMOTE_PAGE >> 20));
}

static void end_serving(unsigned index)
{
	struct served *served = all_served[index];

	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i])
			drop_mapping(served, i);
	if (served_is_verbose)
		say_made(served);
	remote_close(&served->process);
	free(served);
	all_served[index] = all_served[--nr_served];
}

static bool is_served(pid_t pid)
{
	for (unsigned i = 0; i < nr_served; i++)
		if (all_served[i]->process.pid == pid)
			return true;
	return false;
}

static bool has_memory_of(const struct remote_process *process)
{
	for (unsigned i = 0; i < nr_served; i++)
		if (remote_same_memory(&all_served[i]->process, process))
			return true;
	return false;
}

/* Whatever the process calls itself, it is one line. */
static void read_name(pid_t pid, char name[NAME_BYTES])
{
	size_t length;

	system_text(name, NAME_BYTES, "/proc/%d/comm", pid);
	length = strlen(name);
	if (length && name[length - 1] == '\n')
		name[length - 1] = '\0';
	text_show(name);
}

/* Nothing that was made ahead of it is left: it may begin anew. */
static bool has_no_waste(const struct served *served)
{
	for (size_t i = 0; i < MAPPINGS_MAX; i++)
		if (served->mappings[i] &&
		    touch_tracker_pending(&served->mappings[i]->tracker))
			return false;
	return true;
}

/* Return: whether one more can be served; a process that is served no more is found again
 * when it grows. */
static bool find_capacity(void)
{
	uint64_t now = now_ns();
	unsigned oldest = nr_served;

	if (nr_served < SERVED_MAX)
		return true;
	for (unsigned i = 0; i < nr_served; i++)
		if (now - all_served[i]->grown_ns >= IDLE_NS &&
		    has_no_waste(all_served[i]) &&
		    (oldest == nr_served ||
		     all_served[i]->grown_ns < all_served[oldest]->grown_ns))
			oldest = i;
	if (oldest == nr_served)
		return false;
	end_serving(oldest);
	return true;
}

static void begin_serving(pid_t pid)
{
	struct served *served = calloc(1, sizeof(*served));

	if (!served || !remote_open(&served->process, pid)) {
		free(served);
		return;
	}
	/* Between the choice and now another may have taken the number. */
	if (has_memory_of(&served->process) || !choice_has(pid) ||
	    !remote_is_there(&served->process) || !find_capacity()) {
		remote_close(&served->process);
		free(served);
		return;
	}
	read_name(pid, served->name);
	served->grown_ns = now_ns();
	all_served[nr_served++] = served;
}

/* ---- finding them ---- */

static int compare_pids(const void *a, const void *b)
{
	const struct listed *first = a, *second = b;

	return (first->pid > second->pid) - (first->pid < second->pid);
}

/* What was seen of it when it was listed before. */
static struct listed listed_before(pid_t pid, unsigned nr)
{
	struct listed key = { .pid = pid };
	const struct listed *found =
		bsearch(&key, all_listed, nr, sizeof(key), compare_pids);

	return found ? *found : key;
}

static void say_quota(pid_t pid)
{
	char name[NAME_BYTES];

	read_name(pid, name);
	fprintf(stderr,
		"ktaskd: %s (%d): not served, its control group has a CPU quota\n",
		name, pid);
}

static void consider_process(struct listed *listed)
{
	unsigned long before = listed->resident;
	pid_t pid = listed->pid;
	struct sizes sizes;

	if (listed->empty && ((unsigned)pid + nr_lists) % EMPTY_LISTS)
		return;
	if (!read_sizes(pid, &sizes))
		return;
	listed->empty = !sizes.all;
	listed->resident = sizes.resident;
	if (sizes.resident < before + GROWN_PAGES ||
	    sizes.all < REMOTE_LEAST_BYTES / REMOTE_PAGE || pid == getpid() ||
	    is_served(pid) || !choice_has(pid))
		return;
	if (!remote_has_cpu_quota(pid)) {
		begin_serving(pid);
		return;
	}
	if (served_is_verbose && !listed->told)
		say_quota(pid);
	listed->told = true;
}

static void list_processes(void)
{
	static struct listed next[LISTED_MAX];
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned nr = 0;

	nr_lists++;
	while (dir && nr < LISTED_MAX && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		next[nr] = listed_before(pid, nr_listed);
		consider_process(&next[nr++]);
	}
	if (dir)
		closedir(dir);
	/* /proc is in this order, except for ids that were assigned meanwhile. */
	qsort(next, nr, sizeof(*next), compare_pids);
	memcpy(all_listed, next, nr * sizeof(*next));
	nr_listed = nr;
}

static void list_if_due(uint64_t now)
{
	uint64_t began_ns;

	if (now < list_due_ns)
		return;
	began_ns = cpu_ns();
	list_processes();
	list_due_ns = due_after(now, cpu_ns() - began_ns, LIST_NS);
}

/* ---- all of it ---- */

static uint64_t serve_mappings(struct served *served, uint64_t due)
{
	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		uint64_t next;

		if (!served->mappings[i])
			continue;
		next = remote_mapping_serve(served->mappings[i], now_ns());
		due = next < due ? next : due;
	}
	return due;
}

uint64_t served_processes_serve(uint64_t now)
{
	uint64_t due;

	list_if_due(now);
	due = list_due_ns;
	for (unsigned i = nr_served; i-- > 0;) {
		struct served *served = all_served[i];

		if (!read_if_due(served, now)) {
			end_serving(i);
			continue;
		}
		if (served->maps_due_ns < due)
			due = served->maps_due_ns;
		due = serve_mappings(served, due);
	}
	return due;
}

void served_processes_end(void)
{
	while (nr_served)
		end_serving(nr_served - 1);
}
