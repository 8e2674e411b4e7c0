/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that wait for each other by a pipe: a reader blocks until somebody has written.
 */
#ifndef KTRT_TESTS_PIPE_TASKS_H
#define KTRT_TESTS_PIPE_TASKS_H

#include <errno.h>
#include <unistd.h>

#include "runs.h"

static int pipe_ends[2]; /* of a pipe */
static unsigned long nr_done;

static int count_task(void *arg)
{
	more(nr_done);
	return 0;
}

static int read_one(void *arg)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 1 ? count_task(NULL) : -EIO;
}

#endif /* KTRT_TESTS_PIPE_TASKS_H */
