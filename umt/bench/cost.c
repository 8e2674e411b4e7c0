/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What UMT by eBPF costs and how fast it tells, in one run with alternating
 * sides:
 *
 *	ping-pong	two threads on one CPU pass a byte through two pipes;
 *			a round trip is two blocks and two wakeups
 *	compute		a loop that never blocks
 *	latency		from just before a thread blocks, the last ready one of
 *			its core, until the leader runs (latency.c)
 *	add		adding and removing a thread
 *
 * The first two are CPU time, so that other work on the machine disturbs them
 * little.
 * The last two are times, so that they tell of the machine's load as well;
 * "chrt -f 10 build/bench/umt-cost latency" leaves that out.
 *
 * Sides: "off" without the program, "empty" with empty programs at the same
 * two places (what the kernel takes for calling any), "others" with it but the threads are
 * not monitored, "monitored".
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "cost.h"

#ifdef UMT_HAVE_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#endif

#define ROUNDS 25
#define ROUNDS_MAX 151
#define TRIPS 15000
#define SPINS 20000000

enum side { OFF, EMPTY, OTHERS, MONITORED, NR_SIDES };

static const char *const names[] = { "off", "empty", "others", "monitored" };
static struct umt *subscriber;
static int there[2], back[2];

/* CPU time of all our threads: what else this machine does stays out. */
static double spent_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void join_subscriber(enum side side)
{
	if (side == MONITORED && umt_thread_add(subscriber))
		fail_with("adding a thread");
}

static void leave_subscriber(enum side side)
{
	if (side == MONITORED && umt_thread_remove(subscriber))
		fail_with("removing a thread");
}

#ifdef UMT_HAVE_BPF
/* Loads "return 0" for a tracepoint; what it returns keeps it attached. */
static int attach_empty(const char *tracepoint)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = BPF_TRACE_RAW_TP);
	int id = libbpf_find_vmlinux_btf_id(tracepoint, BPF_TRACE_RAW_TP);
	int program, link;

	if (id < 0)
		fail_with("no such tracepoint");
	options.attach_btf_id = (__u32)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", code, 2,
				&options);
	link = program < 0 ? program : bpf_raw_tracepoint_open(NULL, program);
	if (link < 0)
		fail_with("attaching an empty program");
	close(program);
	return link;
}
#else
static int attach_empty(const char *tracepoint)
{
	fail_with("built without libbpf");
	return -1;
}
#endif

static int empty[2];

static void begin_side(enum side side)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF };

	if (side == EMPTY) {
		empty[0] = attach_empty("sched_switch");
		empty[1] = attach_empty("sched_wakeup");
	} else if (side != OFF && umt_open(&subscriber, &options))
		fail_with("eBPF is not to be had here: see umt info");
}

static void end_side(enum side side)
{
	if (side == EMPTY) {
		close(empty[0]);
		close(empty[1]);
	} else if (side != OFF)
		umt_close(subscriber);
}

/* ---- ping-pong ---- */

static void *return_bytes(void *arg)
{
	enum side side = *(enum side *)arg;
	char byte;
	int i;

	on_cpu(0);
	join_subscriber(side);
	for (i = 0; i < TRIPS; i++) {
		read_byte(there[0], &byte);
		write_byte(back[1], &byte);
	}
	leave_subscriber(side);
	return NULL;
}

static double ping_pong(enum side side)
{
	pthread_t thread;
	char byte = 0;
	double start;
	int i;

	if (pthread_create(&thread, NULL, return_bytes, &side))
		fail_with("making a thread");
	join_subscriber(side);
	for (i = 0, start = 0; i < TRIPS; i++) {
		if (i == 100)
			start = spent_ns();
		write_byte(there[1], &byte);
		read_byte(back[0], &byte);
	}
	start = (spent_ns() - start) / (TRIPS - 100);
	leave_subscriber(side);
	pthread_join(thread, NULL);
	return start;
}

static double compute_loop(enum side side)
{
	volatile uint64_t sum = 0;
	double start;
	long i;

	join_subscriber(side);
	start = spent_ns();
	for (i = 0; i < SPINS; i++)
		sum = sum * 5 + 1;
	start = spent_ns() - start;
	leave_subscriber(side);
	return start;
}

/* Of the median of so many, with 95 % confidence: by the order of values. */
static double median_from(double *values, size_t nr, double sign)
{
	return take_quantile(values, nr, 0.5 + sign * 0.98 / sqrt((double)nr));
}

static void compare_sides(const char *what, double (*run)(enum side),
			  double unit, const char *unit_name, size_t rounds)
{
	double values[NR_SIDES][ROUNDS_MAX], added[NR_SIDES][ROUNDS_MAX];
	size_t round;
	double off;
	int side;

	for (round = 0; round < rounds; round++)
		for (side = 0; side < NR_SIDES; side++) {
			begin_side((enum side)side);
			values[side][round] = run((enum side)side) / unit;
			end_side((enum side)side);
			added[side][round] =
				values[side][round] - values[OFF][round];
		}
	off = take_quantile(values[OFF], rounds, 0.5) / 100;
	printf("%s (%s, medians of %zu rounds)\n", what, unit_name, rounds);
	for (side = 0; side < NR_SIDES; side++)
		printf("  %-10s %9.2f  least %9.2f  added by rounds %+8.2f "
		       "(%+.2f to %+.2f), %+.3f %% (median from %+.3f to "
		       "%+.3f)\n",
		       names[side], take_quantile(values[side], rounds, 0.5),
		       take_quantile(values[side], rounds, 0),
		       take_quantile(added[side], rounds, 0.5),
		       take_quantile(added[side], rounds, 0.25),
		       take_quantile(added[side], rounds, 0.75),
		       take_quantile(added[side], rounds, 0.5) / off,
		       median_from(added[side], rounds, -1) / off,
		       median_from(added[side], rounds, 1) / off);
}

static void measure_adding(void)
{
	double start;
	int i;

	start = now_ns();
	begin_side(MONITORED);
	printf("first user of a process opens in %.1f ms; ",
	       (now_ns() - start) / 1e6);
	start = now_ns();
	for (i = 0; i < 1000; i++) {
		join_subscriber(MONITORED);
		leave_subscriber(MONITORED);
	}
	printf("a thread is added and removed in %.1f us\n",
	       (now_ns() - start) / 1e6);
	end_side(MONITORED);
}

static void measure_latency(void)
{
	begin_side(MONITORED);
	latency_measure(subscriber);
	end_side(MONITORED);
}

static void round_trips(void)
{
	compare_sides("pipe round trip on one CPU: 2 blocks, 2 wakeups",
		      ping_pong, 1, "ns", ROUNDS);
}

static void compare_computing(void)
{
	compare_sides("a loop that never blocks", compute_loop, 1e6, "ms",
		      ROUNDS_MAX);
}

static const struct part {
	const char *name;
	void (*run)(void);
	int cpu;
} parts[] = {
	{ "ping-pong", round_trips, 0 },
	{ "compute", compare_computing, 0 },
	{ "latency", measure_latency, 1 },
	{ "add", measure_adding, 1 },
};

/* umt-cost [PART] */
int main(int argc, char **argv)
{
	size_t i;

	if (pipe(there) || pipe(back))
		fail_with("making pipes");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (argc > 1 && strcmp(argv[1], parts[i].name))
			continue;
		on_cpu(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? parts[i].cpu : 0);
		parts[i].run();
	}
	return 0;
}
