/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What UMT by eBPF costs and how fast it tells, in one run with alternating
 * sides:
 *
 *	ping-pong	two threads on one CPU pass a byte through two pipes;
 *			a round trip is two blocks and two wakeups
 *	compute		a loop that never blocks
 *	latency		from just before a thread blocks, the last ready one of
 *			its core, until the leader returns from poll()
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
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <umt.h>

#if __has_include(<bpf/bpf.h>)
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#endif

#define ROUNDS 25
#define TRIPS 15000
#define SPINS 20000000
#define LATENCIES 3000

enum side { OFF, EMPTY, OTHERS, MONITORED, NR_SIDES };

static const char *const names[] = { "off", "empty", "others", "monitored" };
static struct umt *user;
static int there[2], back[2];

static double clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of all our threads: what else this machine does stays out. */
static double spent_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double quantile(double *values, size_t nr, double q)
{
	qsort(values, nr, sizeof(*values), by_value);
	return values[(size_t)(q * (double)(nr - 1))];
}

static void die(const char *what)
{
	fprintf(stderr, "bench-umt-cost: %s\n", what);
	exit(1);
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void pass(int fd, char *byte)
{
	if (write(fd, byte, 1) != 1)
		die("writing a pipe");
}

static void take(int fd, char *byte)
{
	if (read(fd, byte, 1) != 1)
		die("reading a pipe");
}

static void join(enum side side)
{
	if (side == MONITORED && umt_thread_add(user))
		die("adding a thread");
}

static void leave(enum side side)
{
	if (side == MONITORED && umt_thread_remove(user))
		die("removing a thread");
}

#if __has_include(<bpf/bpf.h>)
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
		die("no such tracepoint");
	options.attach_btf_id = (__u32)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "empty", "GPL", code, 2,
				&options);
	link = program < 0 ? program : bpf_raw_tracepoint_open(NULL, program);
	if (link < 0)
		die("attaching an empty program");
	close(program);
	return link;
}
#else
static int attach_empty(const char *tracepoint)
{
	die("built without libbpf");
	return -1;
}
#endif

static int empty[2];

static void begin(enum side side)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF };

	if (side == EMPTY) {
		empty[0] = attach_empty("sched_switch");
		empty[1] = attach_empty("sched_wakeup");
	} else if (side != OFF && umt_open(&user, &options))
		die("eBPF is not to be had here: see umt info");
}

static void end(enum side side)
{
	if (side == EMPTY) {
		close(empty[0]);
		close(empty[1]);
	} else if (side != OFF)
		umt_close(user);
}

/* ---- ping-pong ---- */

static void *ponger(void *arg)
{
	enum side side = *(enum side *)arg;
	char byte;
	int i;

	on_cpu(0);
	join(side);
	for (i = 0; i < TRIPS; i++) {
		take(there[0], &byte);
		pass(back[1], &byte);
	}
	leave(side);
	return NULL;
}

static double ping_pong(enum side side)
{
	pthread_t thread;
	char byte = 0;
	double start;
	int i;

	if (pthread_create(&thread, NULL, ponger, &side))
		die("making a thread");
	join(side);
	for (i = 0, start = 0; i < TRIPS; i++) {
		if (i == 100)
			start = spent_ns();
		pass(there[1], &byte);
		take(back[0], &byte);
	}
	start = (spent_ns() - start) / (TRIPS - 100);
	leave(side);
	pthread_join(thread, NULL);
	return start;
}

static double compute(enum side side)
{
	volatile uint64_t sum = 0;
	double start;
	long i;

	join(side);
	start = spent_ns();
	for (i = 0; i < SPINS; i++)
		sum = sum * 5 + 1;
	start = spent_ns() - start;
	leave(side);
	return start;
}

static void compare(const char *what, double (*run)(enum side), double unit,
		    const char *unit_name)
{
	double values[NR_SIDES][ROUNDS], added[NR_SIDES][ROUNDS];
	int round, side;

	for (round = 0; round < ROUNDS; round++)
		for (side = 0; side < NR_SIDES; side++) {
			begin((enum side)side);
			values[side][round] = run((enum side)side) / unit;
			end((enum side)side);
			added[side][round] =
				values[side][round] - values[OFF][round];
		}
	printf("%s (%s, medians of %d rounds)\n", what, unit_name, ROUNDS);
	for (side = 0; side < NR_SIDES; side++)
		printf("  %-10s %9.2f  least %9.2f  added by rounds %+8.2f "
		       "(%+.2f to %+.2f)\n",
		       names[side], quantile(values[side], ROUNDS, 0.5),
		       quantile(values[side], ROUNDS, 0),
		       quantile(added[side], ROUNDS, 0.5),
		       quantile(added[side], ROUNDS, 0.25),
		       quantile(added[side], ROUNDS, 0.75));
}

/* ---- from block to leader ---- */

static double blocked_ns;
static int go[2];

/* Tells of itself through a descriptor, or by nothing but blocking. */
static int tell = -1;

static void *blocks(void *unused)
{
	uint64_t one = 1;
	double at;
	char byte;
	int i;

	on_cpu(0);
	if (umt_thread_add(user))
		die("adding a thread");
	for (i = 0; i < LATENCIES; i++) {
		at = now_ns();
		__atomic_store(&blocked_ns, &at, __ATOMIC_RELEASE);
		if (tell >= 0 && write(tell, &one, sizeof(one)) < 0)
			die("writing an eventfd");
		take(go[0], &byte);
	}
	umt_thread_remove(user);
	return NULL;
}

static void hear(void)
{
	struct umt_event event;
	uint64_t word;

	if (tell >= 0 && read(tell, &word, sizeof(word)) < 0)
		die("reading an eventfd");
	while (umt_next(user, &event) == 1)
		;
}

static void measure_latency(const char *what)
{
	static double values[LATENCIES];
	struct pollfd leader = { .events = POLLIN };
	struct timespec rest = { 0, 200000 };
	pthread_t thread;
	double at, woken;
	char byte = 0;
	int i;

	leader.fd = tell >= 0 ? tell : umt_fd(user);
	if (pthread_create(&thread, NULL, blocks, NULL))
		die("making a thread");
	for (i = 0; i < LATENCIES; i++) {
		poll(&leader, 1, 1000);
		woken = now_ns();
		__atomic_load(&blocked_ns, &at, __ATOMIC_ACQUIRE);
		values[i] = (woken - at) / 1e3;
		hear();
		nanosleep(&rest, NULL);
		pass(go[1], &byte);
	}
	pthread_join(thread, NULL);
	printf("%s (us, %d times): p50 %.1f, p90 %.1f, p99 %.1f, most %.1f\n",
	       what, LATENCIES, quantile(values, LATENCIES, 0.5),
	       quantile(values, LATENCIES, 0.9),
	       quantile(values, LATENCIES, 0.99),
	       quantile(values, LATENCIES, 1));
}

static void latency(void)
{
	begin(MONITORED);
	if (pipe(go))
		die("making a pipe");
	umt_want(user, 1);
	measure_latency("block to leader woken");
	umt_want(user, 0);
	tell = eventfd(0, EFD_NONBLOCK);
	measure_latency("the same by an eventfd that is written before");
	close(tell);
	tell = -1;
	end(MONITORED);
}

static void adding(void)
{
	double start;
	int i;

	start = now_ns();
	begin(MONITORED);
	printf("first user of a process opens in %.1f ms; ",
	       (now_ns() - start) / 1e6);
	start = now_ns();
	for (i = 0; i < 1000; i++) {
		join(MONITORED);
		leave(MONITORED);
	}
	printf("a thread is added and removed in %.1f us\n",
	       (now_ns() - start) / 1e6);
	end(MONITORED);
}

static void round_trips(void)
{
	compare("pipe round trip on one CPU: 2 blocks, 2 wakeups", ping_pong, 1,
		"ns");
}

static void computing(void)
{
	compare("a loop that never blocks", compute, 1e6, "ms");
}

static const struct part {
	const char *name;
	void (*run)(void);
	int cpu;
} parts[] = {
	{ "ping-pong", round_trips, 0 },
	{ "compute", computing, 0 },
	{ "latency", latency, 1 },
	{ "add", adding, 1 },
};

/* umt-cost [PART] */
int main(int argc, char **argv)
{
	size_t i;

	if (pipe(there) || pipe(back))
		die("making pipes");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (argc > 1 && strcmp(argv[1], parts[i].name))
			continue;
		on_cpu(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? parts[i].cpu : 0);
		parts[i].run();
	}
	return 0;
}
