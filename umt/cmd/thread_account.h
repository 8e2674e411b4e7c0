/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From events to times: how long each thread ran, waited for a CPU and was
 * blocked, and how much core time that left unused.
 *
 * Does not own where events come from (watch.c) nor what is printed.
 */
#ifndef UMT_CMD_THREAD_ACCOUNT_H
#define UMT_CMD_THREAD_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <umt.h>

enum state { RUNNING, READY, BLOCKED, GONE, NR_STATES };

struct thread {
	uint32_t tid;
	uint32_t pid;
	char comm[17];
	enum state state;
	int reason; /* while BLOCKED */
	int cpu;
	uint64_t since_ns;
	uint64_t ns[NR_STATES];
	uint64_t reason_ns[UMT_NR_REASONS];
	uint64_t nr_blocks, nr_preempts;
	unsigned older; /* index plus 1 of an earlier one of its bucket, or 0 */
};

struct core {
	int running; /* monitored threads: 0 or 1, unless events were missed */
	uint64_t busy_ns;
	uint64_t idle_ns; /* no monitored thread runs */
	uint64_t idle_while_ns; /* of that, while one is blocked in work */
};

struct account {
	struct thread *threads;
	unsigned nr_threads, capacity;
	/* By the low bits of the thread number; values as in ->older. */
	unsigned *newest;
	struct core *cores;
	int nr_cores; /* that the command may use */
	int nr_cpus;
	uint64_t start_ns, now_ns;
	int count[NR_STATES];
	int in_work; /* blocked, but not for want of something to do */
	uint64_t lost_core_ns;
	uint64_t nr_events;
	/* Called for each stretch of time that a thread spent in one state. */
	void (*stretch)(void *arg, const struct thread *thread, uint64_t end);
	void *arg;
};

/* All of @account but ->stretch and ->arg must be zero. */
int account_begin(struct account *account, int nr_cpus);
void account_end(struct account *account);

/* 0 or -ENOMEM */
int account_event(struct account *account, const struct umt_event *event);

/* Closes all open stretches at the present time. */
void account_close(struct account *account);

/* Forgets threads that are gone.  The indexes of the others may change. */
void account_forget(struct account *account);

/* The thread's name, or its process's, or "". */
const char *account_name(const struct account *account,
			 const struct thread *thread);

const char *state_name(enum state state);

/* Does the thread wait for work of another: I/O, a lock, a page fault? */
bool is_work(int reason);

#endif /* UMT_CMD_THREAD_ACCOUNT_H */
