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

static int answer;

/* Stands for a device, a library with callbacks, ... */
static void *elsewhere(void *task)
{
	usleep(10000);
	answer = 42;
	ktrt_events_done(task, 1);
	return NULL;
}

static int ask(void *arg)
{
	pthread_t thread;

	if (ktrt_events_add(1))
		return -1;
	if (pthread_create(&thread, NULL, elsewhere, ktrt_self())) {
		ktrt_events_done(ktrt_self(), 1);
		return -1;
	}
	pthread_detach(thread);
	return 0;
}

static int use(void *arg)
{
	printf("the answer is %d\n", answer);
	return answer != 42;
}

int main(void)
{
	struct ktrt_dep dep = { &answer, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	if (ktrt_start(NULL))
		return 1;
	attr.deps = &dep;
	attr.nr_deps = 1;
	if (ktrt_spawn_attr(ask, NULL, &attr))
		return 1;
	dep.mode = KTRT_IN;
	if (ktrt_spawn_attr(use, NULL, &attr))
		return 1;
	return ktrt_stop() != 0;
}
