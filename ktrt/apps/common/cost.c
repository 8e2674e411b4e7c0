/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include <ktask/runtime.h>

#include "comm.h"
#include "cost.h"

#define TAG_COST 32000
#define TAG_SUM 32001

static void read_cost(struct cost *cost)
{
	struct rusage usage;
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	cost->seconds = (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
	getrusage(RUSAGE_SELF, &usage);
	cost->cpu_seconds =
		(double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) *
			1e-6;
	cost->switches = (uint64_t)usage.ru_nvcsw;
	cost->preemptions = (uint64_t)usage.ru_nivcsw;
}

void cost_begin(struct cost *cost)
{
	*cost = (struct cost){ .workers = 1, .backend = "none" };
	read_cost(cost);
}

static void ask_runtime(struct cost *cost)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	if (ktrt_info_get(&info))
		return;
	cost->workers = info.workers;
	cost->tasks = info.tasks;
	cost->replaced = info.replaced;
	cost->surrenders = info.surrenders;
	cost->samples = info.samples;
	cost->overloaded = info.overloaded;
	cost->backend = info.backend;
}

static void add_cost(struct cost *cost, const struct cost *other)
{
	if (other->seconds > cost->seconds)
		cost->seconds = other->seconds;
	cost->cpu_seconds += other->cpu_seconds;
	cost->workers += other->workers;
	cost->tasks += other->tasks;
	cost->replaced += other->replaced;
	cost->surrenders += other->surrenders;
	cost->samples += other->samples;
	cost->overloaded += other->overloaded;
	cost->switches += other->switches;
	cost->preemptions += other->preemptions;
	cost->bytes_written += other->bytes_written;
	cost->bytes_read += other->bytes_read;
}

void cost_end(struct cost *cost, uint64_t bytes_written, uint64_t bytes_read)
{
	struct cost end = { .workers = cost->workers, .backend = "none" };

	read_cost(&end);
	ask_runtime(&end);
	end.seconds -= cost->seconds;
	end.cpu_seconds -= cost->cpu_seconds;
	end.switches -= cost->switches;
	end.preemptions -= cost->preemptions;
	end.bytes_written = bytes_written;
	end.bytes_read = bytes_read;
	*cost = end;
	if (comm_rank()) {
		comm_send(cost, sizeof(*cost), 0, TAG_COST);
		return;
	}
	for (int rank = 1; rank < comm_ranks(); rank++) {
		comm_recv(&end, sizeof(end), rank, TAG_COST);
		add_cost(cost, &end);
	}
}

uint64_t cost_sum(uint64_t own, unsigned parts)
{
	uint64_t sum[2] = { own, parts };

	if (comm_rank())
		comm_send(sum, sizeof(sum), 0, TAG_SUM);
	for (int rank = 1; !comm_rank() && rank < comm_ranks(); rank++) {
		unsigned turn;

		comm_recv(sum, sizeof(sum), rank, TAG_SUM);
		turn = sum[1] % 64;
		own = (turn ? own << turn | own >> (64 - turn) : own) ^ sum[0];
	}
	return own;
}

static double percent_of(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void tell_json(const struct cost *cost, const char *what, double cells,
		      uint64_t sum)
{
	char text[17];
	json_t *object;

	snprintf(text, sizeof(text), "%016" PRIx64, sum);
	object = json_pack(
		"{s:s, s:i, s:I, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I,"
		" s:I, s:I, s:I, s:f, s:s}",
		"what", what, "ranks", comm_ranks(), "workers",
		(json_int_t)cost->workers, "umt", cost->backend, "seconds",
		cost->seconds, "cells_per_second", cells / cost->seconds,
		"cpu_seconds", cost->cpu_seconds, "cpu_percent",
		percent_of(cost->cpu_seconds,
			   cost->seconds * (double)cost->workers),
		"bytes_written", (json_int_t)cost->bytes_written, "bytes_read",
		(json_int_t)cost->bytes_read, "switches",
		(json_int_t)cost->switches, "preemptions",
		(json_int_t)cost->preemptions, "tasks", (json_int_t)cost->tasks,
		"replaced", (json_int_t)cost->replaced, "surrenders",
		(json_int_t)cost->surrenders, "overloaded_percent",
		percent_of((double)cost->overloaded, (double)cost->samples),
		"sum", text);
	if (object)
		json_dumpf(object, stdout,
			   JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(object);
}

void cost_tell(const struct cost *cost, bool json, const char *what,
	       double cells, uint64_t sum)
{
	const double mib = 1024 * 1024;

	if (json) {
		tell_json(cost, what, cells, sum);
		return;
	}
	printf("%s, %d rank%s of %" PRIu64 " core%s in all, UMT: %s\n", what,
	       comm_ranks(), comm_ranks() == 1 ? "" : "s", cost->workers,
	       cost->workers == 1 ? "" : "s", cost->backend);
	printf("%.3f s, %.1f million cells/s, CPU %.1f %%\n", cost->seconds,
	       cells / cost->seconds * 1e-6,
	       percent_of(cost->cpu_seconds,
			  cost->seconds * (double)cost->workers));
	printf("disk: %.1f MiB written, %.1f MiB read, %.1f MiB/s\n",
	       (double)cost->bytes_written / mib,
	       (double)cost->bytes_read / mib,
	       (double)(cost->bytes_written + cost->bytes_read) / mib /
		       cost->seconds);
	printf("%" PRIu64 " tasks, %" PRIu64 " switches, %" PRIu64
	       " preemptions, %" PRIu64 " blocked workers replaced, more than "
	       "one worker ready on a core %.2f %% of the looks\n",
	       cost->tasks, cost->switches, cost->preemptions, cost->replaced,
	       percent_of((double)cost->overloaded, (double)cost->samples));
	printf("checksum %016" PRIx64 "\n", sum);
}
