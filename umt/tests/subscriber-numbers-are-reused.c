/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread whose last event the kernel did not tell keeps no number of a subscriber in use
 * for good: here one that was attached when it had ended already, and one that ends while
 * all have paused.
 */
#include "support/subscribers.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "lib/bpf_program.h"
#include "lib/subscriber.h"

#define TRIES 6
#define TRY_NS 30000000000ull

/*
 * A process of one thread that is over, but not yet waited for.  Its last
 * switch comes a moment later; should it come later still it is told, which is
 * no harm.
 */
static pid_t a_zombie(void)
{
	siginfo_t info;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	usleep(20000);
	return pid;
}

/*
 * The end of what is left of it may be missed as well, once in some hundred
 * times where it comes while a certain task of the machine's has the CPU
 * (umt.bpf.c).  Nobody makes up for that, so another has its turn.
 */
static bool stops_lingering(const struct umt *subscriber)
{
	uint64_t until = ktest_now_ns() + TRY_NS;

	while (program_subscriber_lingers(subscriber->index) &&
	       ktest_now_ns() < until)
		nap_us(1000);
	return !program_subscriber_lingers(subscriber->index);
}

static bool comes_back(struct umt *subscriber)
{
	pid_t pid = a_zombie();

	assert_int_equal(bpf_attach(subscriber, pid), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return stops_lingering(subscriber);
}

static void the_last_event_was_missed(void **state)
{
	struct umt *stays, *subscriber;
	unsigned int index;
	int tries = 1;

	/* A program of our own, that only we use. */
	setenv("UMT_SOCKET", "", 1);
	stays = subscriber_of(UMT_BPF, 0);
	subscriber = subscriber_of(UMT_BPF, 0);
	while (!comes_back(subscriber)) {
		umt_close(subscriber);
		assert_true(tries++ < TRIES);
		subscriber = subscriber_of(UMT_BPF, 0);
	}
	index = subscriber->index;
	assert_int_equal(ready_of(subscriber), 0);
	umt_close(subscriber);
	/* Or one of those before has come back since. */
	subscriber = subscriber_of(UMT_BPF, 0);
	assert_true(subscriber->index <= index);
	umt_close(subscriber);
	umt_close(stays);
}

static sem_t added, may_end;
static int add_error;

static void *end_when_told(void *subscriber)
{
	add_error = umt_thread_add(subscriber);
	sem_post(&added);
	sem_wait(&may_end);
	return NULL;
}

static bool ends_in_pause(struct umt *subscriber)
{
	pthread_t thread;
	bool ended;

	assert_int_equal(
		pthread_create(&thread, NULL, end_when_told, subscriber), 0);
	sem_wait(&added);
	assert_int_equal(add_error, 0);
	assert_int_equal(umt_pause(subscriber), 0);
	sem_post(&may_end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ended = stops_lingering(subscriber);
	assert_int_equal(umt_resume(subscriber), 0);
	return ended;
}

static void the_thread_ends_in_a_pause(void **state)
{
	struct umt *subscriber;
	int tries = 1;

	setenv("UMT_SOCKET", "", 1);
	subscriber = subscriber_of(UMT_BPF, 0);
	sem_init(&added, 0, 0);
	sem_init(&may_end, 0, 0);
	while (!ends_in_pause(subscriber)) {
		umt_close(subscriber);
		assert_true(tries++ < TRIES);
		subscriber = subscriber_of(UMT_BPF, 0);
	}
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(the_last_event_was_missed), KTEST(the_thread_ends_in_a_pause))
