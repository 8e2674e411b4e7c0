/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How fast a leader hears of a block, and how fast it could: from just before
 * a thread blocks, the last ready one of core 0, until the leader runs.
 *
 *	block		the thread does nothing but block; eBPF tells
 *	eventfd, futex	it tells of itself before, the fastest that there is: the
 *			floor of any way to wake a thread on this machine
 *	ring		it runs a program that does nothing but write to a BPF
 *			ring, from which an interrupt to the own core wakes
 *	switch		such a program runs when it is switched out: the floor of
 *			any way to be told of a block by eBPF
 *
 * each with the leader
 *	elsewhere	bound to another core, which sleeps
 *	there		bound to the core that goes idle
 *	anywhere	bound to none, all other cores at work: what a leader is for
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifdef UMT_HAVE_BPF
#include <bpf/bpf.h>
#endif

#include "cost.h"

#define LATENCIES 2000
#define REST_NS 200000

enum way { BLOCK, BLOCK_EPOLL, RING, SWITCH, EVENTFD, FUTEX, NR_WAYS };
enum placement { ELSEWHERE, THERE, ANYWHERE, NR_PLACEMENTS };

static const char *const ways[] = { "block, poll", "block, epoll", "ring",
				    "switch",	   "eventfd",	   "futex" };
static const char *const placements[] = { "elsewhere", "there", "anywhere" };

static struct umt *leaders;
static enum way way;
static double blocked_ns;
static int resume[2], tell, epoll_fd;
static uint32_t word;
static bool done;

/* ---- a ring that is written by a program ---- */

static int ring_fd = -1, program_fd = -1;
static volatile unsigned long *ring_read, *ring_written;

#ifdef UMT_HAVE_BPF
#define INSN(c, d, s, o, i)                                              \
	{                                                                \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), \
		.imm = (i)                                               \
	}

/* Writes a word to the ring and ends; behind whatever decides that. */
#define WRITE_RING                                                          \
	INSN(BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, 0),                      \
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0,    \
		     ring_fd),                                              \
		INSN(0, 0, 0, 0, 0),                                        \
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),             \
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8),             \
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 8),              \
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0,                  \
		     BPF_RB_FORCE_WAKEUP),                                  \
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output), \
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),              \
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load_program(const struct bpf_insn *code, size_t nr)
{
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "ring", "GPL", code,
			     nr, NULL);
}

static int load_writer(void)
{
	const struct bpf_insn code[] = { WRITE_RING };

	return load_program(code, sizeof(code) / sizeof(code[0]));
}

/* Of sched_switch(preempt, ...), where the calling thread is switched out. */
static int watch_switches(void)
{
	const struct bpf_insn code[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 6, 1, 0, 0),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 6, 0, 3, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0,
		     BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, gettid()),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		WRITE_RING,
	};
	int program = load_program(code, sizeof(code) / sizeof(code[0]));
	int link = program < 0
			   ? -1
			   : bpf_raw_tracepoint_open("sched_switch", program);

	if (link < 0)
		fail_with("watching switches");
	close(program);
	return link;
}

static void make_ring(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	ring_fd =
		bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, 4096, NULL);
	program_fd = ring_fd < 0 ? -1 : load_writer();
	if (program_fd < 0)
		fail_with("making a ring");
	ring_read = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED,
			 ring_fd, 0);
	ring_written =
		mmap(NULL, page, PROT_READ, MAP_SHARED, ring_fd, (off_t)page);
	if (ring_read == MAP_FAILED || ring_written == MAP_FAILED)
		fail_with("mapping a ring");
}

static void write_ring(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (bpf_prog_test_run_opts(program_fd, &opts))
		fail_with("running a program");
}
#else
static void make_ring(void)
{
	fail_with("built without libbpf");
}

static void write_ring(void)
{
}

static int watch_switches(void)
{
	return -1;
}
#endif

/* ---- who blocks, and the leader ---- */

static long call_futex(int op, uint32_t value)
{
	return syscall(SYS_futex, &word, op, value, NULL, NULL, 0);
}

static void tell_leader(void)
{
	uint64_t one = 1;

	if (way == EVENTFD && write(tell, &one, sizeof(one)) < 0)
		fail_with("writing an eventfd");
	if (way == RING)
		write_ring();
	if (way == FUTEX) {
		__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
		call_futex(FUTEX_WAKE_PRIVATE, 1);
	}
}

static void *block_often(void *unused)
{
	int link, i;
	double at;
	char byte;

	on_cpu(0);
	if (umt_thread_add(leaders))
		fail_with("adding a thread");
	link = way == SWITCH ? watch_switches() : -1;
	for (i = 0; i < LATENCIES; i++) {
		at = now_ns();
		__atomic_store(&blocked_ns, &at, __ATOMIC_RELEASE);
		tell_leader();
		read_byte(resume[0], &byte);
	}
	if (link >= 0)
		close(link);
	umt_thread_remove(leaders);
	return NULL;
}

static void *spin_on_cpu(void *cpu)
{
	on_cpu((int)(intptr_t)cpu);
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void await_telling(void)
{
	struct pollfd polled = { .events = POLLIN };
	struct epoll_event event;

	if (way == BLOCK_EPOLL) {
		epoll_wait(epoll_fd, &event, 1, 1000);
		return;
	}
	if (way == FUTEX) {
		while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
			call_futex(FUTEX_WAIT_PRIVATE, 0);
		return;
	}
	polled.fd = way == EVENTFD		   ? tell
		    : way == RING || way == SWITCH ? ring_fd
						   : umt_fd(leaders);
	poll(&polled, 1, 1000);
}

static void forget_telling(void)
{
	struct umt_event event;
	uint64_t count;

	if (way == EVENTFD && read(tell, &count, sizeof(count)) < 0)
		fail_with("reading an eventfd");
	__atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(ring_read,
			 __atomic_load_n(ring_written, __ATOMIC_ACQUIRE),
			 __ATOMIC_SEQ_CST);
	while (umt_next(leaders, &event) == 1)
		;
}

static void hear_all(double *values)
{
	struct timespec rest = { 0, REST_NS };
	double at, woken;
	char byte = 0;
	int i;

	for (i = 0; i < LATENCIES; i++) {
		await_telling();
		woken = now_ns();
		__atomic_load(&blocked_ns, &at, __ATOMIC_ACQUIRE);
		values[i] = (woken - at) / 1e3;
		forget_telling();
		nanosleep(&rest, NULL);
		write_byte(resume[1], &byte);
	}
}

static void bind_leader(enum placement placement)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	if (placement == ANYWHERE)
		sched_setaffinity(0, sizeof(all), &all);
	else
		on_cpu(placement == ELSEWHERE);
}

static void measure_placement(enum placement placement)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu;
	static double values[LATENCIES];
	pthread_t thread, busy[CPU_SETSIZE];

	done = false;
	word = 0;
	bind_leader(placement);
	for (cpu = 1; placement == ANYWHERE && cpu < nr_cpus; cpu++)
		if (pthread_create(&busy[cpu], NULL, spin_on_cpu, (void *)cpu))
			fail_with("making a thread");
	umt_want(leaders, way <= BLOCK_EPOLL);
	if (pthread_create(&thread, NULL, block_often, NULL))
		fail_with("making a thread");
	hear_all(values);
	pthread_join(thread, NULL);
	umt_want(leaders, 0);
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (cpu = 1; placement == ANYWHERE && cpu < nr_cpus; cpu++)
		pthread_join(busy[cpu], NULL);
	printf("  %-10s %-13s p50 %7.1f  p90 %7.1f  p99 %7.1f  most %9.1f\n",
	       placements[placement], ways[way],
	       take_quantile(values, LATENCIES, 0.5),
	       take_quantile(values, LATENCIES, 0.9),
	       take_quantile(values, LATENCIES, 0.99),
	       take_quantile(values, LATENCIES, 1));
}

void latency_measure(struct umt *subscriber)
{
	struct epoll_event event = { .events = EPOLLIN };
	int placement;

	leaders = subscriber;
	make_ring();
	tell = eventfd(0, EFD_NONBLOCK);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (pipe(resume) || tell < 0 || epoll_fd < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, umt_fd(subscriber), &event))
		fail_with("making descriptors");
	printf("from a block until the leader runs, and by who tells (us, %d "
	       "times each)\n",
	       LATENCIES);
	for (placement = 0; placement < NR_PLACEMENTS; placement++)
		for (way = 0; way < NR_WAYS; way++)
			measure_placement((enum placement)placement);
	close(tell);
	close(epoll_fd);
}
