/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * No runtime, but the floor of one that is woken: a thread that sleeps on a
 * futex, on the CPU of whoever wakes it, and the two calls by which that one
 * wakes it and then sleeps until it is done.  Only the case "wake".
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/tasks/cases.h"

static uint32_t asked, answered, stopped;
static pthread_t thread;

static void await_change(uint32_t *word, uint32_t seen)
{
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL,
			0);
}

static void advance_word(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *serve_requests(void *arg)
{
	for (uint32_t seen = 0;; seen++) {
		await_change(&asked, seen);
		if (__atomic_load_n(&stopped, __ATOMIC_SEQ_CST))
			return NULL;
		task_stamp();
		advance_word(&answered);
	}
}

/* The thread inherits the CPU. */
static void start_server(int threads)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (pthread_create(&thread, NULL, serve_requests, NULL))
		abort();
}

static void stop_server(void)
{
	__atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
	advance_word(&asked);
	pthread_join(thread, NULL);
}

static void wake_server(void)
{
	uint32_t seen = __atomic_load_n(&answered, __ATOMIC_SEQ_CST);

	advance_word(&asked);
	await_change(&answered, seen);
}

const struct runtime_cases cases = { .start = start_server,
				     .stop = stop_server,
				     .wake = wake_server,
				     .wake_task = wake_server };
