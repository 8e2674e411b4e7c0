/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task that completes later: it starts something, returns, and whoever
 * finishes that tells the runtime.  The tasks that need the result wait; no
 * worker does.
 *
 *	cc -o events events.c $(pkg-config --cflags --libs ktrt)
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <ktask/runtime.h>

static int the_answer;

/* Stands for a device, a library with callbacks, ... */
static void *answer_elsewhere(void *task)
{
	usleep(10000);
	the_answer = 42;
	ktrt_events_done(task, 1);
	return NULL;
}

static int ask_question(void *arg)
{
	pthread_t thread;

	if (ktrt_events_add(1))
		return -1;
	if (pthread_create(&thread, NULL, answer_elsewhere, ktrt_self())) {
		ktrt_events_done(ktrt_self(), 1);
		return -1;
	}
	pthread_detach(thread);
	return 0;
}

static int use_answer(void *arg)
{
	printf("the answer is %d\n", the_answer);
	return the_answer != 42;
}

int main(void)
{
	struct ktrt_dep dep = { &the_answer, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	if (ktrt_start(NULL))
		return 1;
	attr.deps = &dep;
	attr.nr_deps = 1;
	if (ktrt_spawn_attr(ask_question, NULL, &attr))
		return 1;
	dep.mode = KTRT_IN;
	if (ktrt_spawn_attr(use_answer, NULL, &attr))
		return 1;
	return ktrt_stop() != 0;
}
