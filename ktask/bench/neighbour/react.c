/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Neighbours come and go in the middle of a long job: how soon does the job
 * follow?
 *
 * With the right to raise threads again helpers have the lowest priority, and
 * nothing needs to follow: the neighbours get what they would have had, and
 * when they leave the helpers run again.  Without that right helpers are of
 * normal priority, and must leave as soon as the neighbours come.  What a job
 * without helpers does to the neighbours is told for comparison.
 *
 * Behaves badly on a machine that is not otherwise idle, where helpers without
 * the right are not begun at all.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "load.h"
#include "parts.h"
#include "table.h"
#include "work.h"

enum helpers { NORMAL, LOWEST, NONE };

static const char *const titles[] = {
	[NORMAL] = "normal priority",
	[LOWEST] = "lowest priority",
	[NONE] = "none",
};

#define MS 1000000u
/* The neighbours' time, and the job's. */
#define COME_NS (300 * MS)
#define LEAVE_NS (600 * MS)
#define END_NS (900 * MS)
/* Speed is that of so long a time. */
#define SPEED_NS (10 * MS)
#define MAX_MOMENTS 4096

struct moment {
	uint64_t ns; /* since the job began */
	uint64_t units;
	uint64_t steps; /* of the neighbours */
	unsigned threads;
};

/* In memory that the process which ran the job shares with the one that asks. */
struct story {
	unsigned nr;
	uint64_t come_ns, leave_ns; /* when they really did */
	struct moment moments[MAX_MOMENTS];
};

struct telling {
	struct story *story;
	struct load *load;
	uint64_t start_ns;
};

static int note_progress(const struct ktask_progress *progress, void *arg)
{
	struct telling *telling = arg;
	struct story *story = telling->story;
	uint64_t ns = clock_ns() - telling->start_ns;

	if (!story->come_ns && ns >= COME_NS) {
		story->come_ns = ns;
		load_resume(telling->load);
	}
	if (!story->leave_ns && ns >= LEAVE_NS) {
		story->leave_ns = ns;
		load_pause(telling->load);
	}
	if (story->nr < MAX_MOMENTS)
		story->moments[story->nr++] =
			(struct moment){ ns, progress->units_done,
					 load_done(telling->load),
					 progress->threads };
	return ns >= END_NS;
}

static void tell_story(struct story *story, struct load *load, unsigned cpus,
		       enum helpers helpers)
{
	struct telling telling = { .story = story, .load = load };
	DEFINE_KTASK_CTL(ctl, work_do_items, NULL, 1);

	memset(story, 0, sizeof(*story));
	telling.start_ns = clock_ns();
	ktask_ctl_set_max_threads(&ctl, helpers == NONE ? 1 : cpus);
	ktask_ctl_set_progress(&ctl, note_progress, &telling, 1);
	(void)ktask_run(NULL, cpus * work_items_in(2 * END_NS / 1e9), &ctl);
}

/* Give the right to raise threads away, for good. */
static int give_right_away(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];
	struct rlimit none = { 0, 0 };

	if (syscall(SYS_capget, &head, data))
		return errno;
	data[CAP_TO_INDEX(CAP_SYS_NICE)].effective &=
		~CAP_TO_MASK(CAP_SYS_NICE);
	data[CAP_TO_INDEX(CAP_SYS_NICE)].permitted &=
		~CAP_TO_MASK(CAP_SYS_NICE);
	if (setrlimit(RLIMIT_NICE, &none) || syscall(SYS_capset, &head, data))
		return errno;
	return 0;
}

/* In a process of its own. */
static int tell_apart(struct story *story, const struct settings *set,
		      enum helpers helpers)
{
	pid_t pid = fork();
	struct load *load;
	int status;

	if (pid < 0)
		return errno;
	if (!pid) {
		if (helpers == NORMAL && give_right_away())
			_exit(1);
		load = load_start(LOAD_CPU, set->cpus / 2);
		if (!load)
			_exit(1);
		load_pause(load);
		tell_story(story, load, set->cpus, helpers);
		load_stop(load);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return EIO;
	return 0;
}

/* ---- what the story says ---- */

static const struct moment *find_moment(const struct story *story, uint64_t ns)
{
	unsigned i = 0;

	while (i + 1 < story->nr && story->moments[i].ns < ns)
		i++;
	return &story->moments[i];
}

/* Threads that most often worked in that time. */
static unsigned usual_threads(const struct story *story, uint64_t from_ns,
			      uint64_t to_ns)
{
	unsigned times[1025] = { 0 }, usual = 0;

	for (unsigned i = 0; i < story->nr; i++) {
		const struct moment *moment = &story->moments[i];

		if (moment->ns >= from_ns && moment->ns < to_ns &&
		    moment->threads <= 1024)
			times[moment->threads]++;
	}
	for (unsigned n = 0; n <= 1024; n++)
		if (times[n] > times[usual])
			usual = n;
	return usual;
}

/* From @ns on, how long until there are @threads; all the time if never. */
static double ms_until(const struct story *story, uint64_t ns, unsigned threads)
{
	for (unsigned i = 0; i < story->nr; i++)
		if (story->moments[i].ns > ns &&
		    story->moments[i].threads == threads)
			return (double)(story->moments[i].ns - ns) / MS;
	return (double)(END_NS - COME_NS) / MS;
}

static double measure_speed(const struct story *story, uint64_t from_ns,
			    uint64_t to_ns)
{
	const struct moment *from = find_moment(story, from_ns),
			    *to = find_moment(story, to_ns);

	return to->ns > from->ns ? (double)(to->units - from->units) /
					   (double)(to->ns - from->ns)
				 : 0;
}

static double steps_speed(const struct story *story, uint64_t from_ns,
			  uint64_t to_ns)
{
	const struct moment *from = find_moment(story, from_ns),
			    *to = find_moment(story, to_ns);

	return (double)(to->steps - from->steps) / (double)(to->ns - from->ns);
}

/* After they went: until the job has nine tenths of its speed from before. */
static double ms_until_speed(const struct story *story)
{
	double before = measure_speed(story, COME_NS / 2, story->come_ns);

	for (uint64_t ns = story->leave_ns; ns + SPEED_NS < END_NS; ns += MS)
		if (measure_speed(story, ns, ns + SPEED_NS) >= 0.9 * before)
			return (double)(ns - story->leave_ns) / MS;
	return (double)(END_NS - LEAVE_NS) / MS;
}

/* ---- rows ---- */

struct series {
	double *come_ms, *leave_ms, *speed_ms, *neighbours;
	unsigned before, beside, after; /* usual threads in the last round */
};

/* What the neighbours would do on CPUs of their own. */
static int free_speed(const struct settings *set, double *steps_per_ns)
{
	struct load *load = load_start(LOAD_CPU, set->cpus / 2);
	uint64_t start_ns = clock_ns(), steps;

	if (!load)
		return errno;
	steps = load_done(load);
	clock_pause_ns(LEAVE_NS - COME_NS);
	steps = load_done(load) - steps;
	*steps_per_ns = (double)steps / (double)(clock_ns() - start_ns);
	load_stop(load);
	return 0;
}

static int one_round(const struct settings *set, enum helpers helpers,
		     struct story *story, struct series *series, unsigned round)
{
	double free_steps = 0;
	int error = free_speed(set, &free_steps);

	if (!error)
		error = tell_apart(story, set, helpers);
	if (error)
		return error;
	series->before = usual_threads(story, COME_NS / 2, story->come_ns);
	series->beside =
		usual_threads(story, (COME_NS + LEAVE_NS) / 2, story->leave_ns);
	series->after = usual_threads(story, (LEAVE_NS + END_NS) / 2, END_NS);
	series->come_ms[round] =
		ms_until(story, story->come_ns, set->cpus - set->cpus / 2);
	series->leave_ms[round] =
		ms_until(story, story->leave_ns, series->before);
	series->speed_ms[round] = ms_until_speed(story);
	series->neighbours[round] =
		steps_speed(story, story->come_ns, story->leave_ns) /
		free_steps;
	return 0;
}

static void add_row(struct series *series, enum helpers helpers, unsigned nr)
{
	struct stats come = stats_of(series->come_ms, nr);
	struct stats leave = stats_of(series->leave_ms, nr);
	struct stats speed_ms = stats_of(series->speed_ms, nr);
	char threads[40];

	snprintf(threads, sizeof(threads), "%u, %u, %u", series->before,
		 series->beside, series->after);
	/* Sorted by now: the last is the worst. */
	table_add(json_pack(
		"{s:s s:s s:o s:o s:o s:o s:o s:f s:f}", "helpers",
		titles[helpers], "threads", threads, "neighbours",
		table_number(stats_of(series->neighbours, nr).median),
		"come_ms",
		helpers != NORMAL ? json_null() : json_real(come.median),
		"worst_come_ms",
		helpers != NORMAL ? json_null()
				  : json_real(series->come_ms[nr - 1]),
		"leave_ms",
		helpers != NORMAL ? json_null() : json_real(leave.median),
		"worst_leave_ms",
		helpers != NORMAL ? json_null()
				  : json_real(series->leave_ms[nr - 1]),
		"speed_ms", speed_ms.median, "worst_speed_ms",
		series->speed_ms[nr - 1]));
}

static int one_mode(const struct settings *set, enum helpers helpers,
		    struct story *story)
{
	double *results = calloc(4 * set->rounds, sizeof(*results));
	struct series series = { .come_ms = results,
				 .leave_ms = results + set->rounds,
				 .speed_ms = results + 2 * set->rounds,
				 .neighbours = results + 3 * set->rounds };
	int error = results ? 0 : ENOMEM;

	for (unsigned round = 0; round < set->rounds && !error; round++)
		error = one_round(set, helpers, story, &series, round);
	if (!error)
		add_row(&series, helpers, set->rounds);
	free(results);
	return error;
}

int react_run(const struct settings *set)
{
	struct story *story = mmap(NULL, sizeof(*story), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int error = 0;

	if (story == MAP_FAILED)
		return errno;
	table_begin("react",
		    "neighbours on half of the CPUs come and go beside a job "
		    "(threads before, beside, after)");
	for (int helpers = NORMAL; helpers <= NONE && !error; helpers++)
		error = one_mode(set, (enum helpers)helpers, story);
	munmap(story, sizeof(*story));
	return error;
}
