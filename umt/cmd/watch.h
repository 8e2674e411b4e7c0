/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs a command, or follows a process, with all its threads and the processes
 * that it starts monitored, and hands each event to an account.
 */
#ifndef UMT_CMD_WATCH_H
#define UMT_CMD_WATCH_H

#include <sys/types.h>

#include "thread_account.h"

struct watch {
	struct account account;
	uint64_t lost; /* events for which there was no room */
	int status; /* exit status of the watched command */
	int pidfd; /* watch_process() */
	/* Called every @every_ms, when not 0. */
	void (*tick)(struct watch *watch);
	unsigned every_ms;
	void *arg;
};

/**
 * watch_command - until it has ended; @argv as for execvp(3)
 *
 * Return: 0, or the exit status of a message that was printed
 */
int watch_command(struct watch *watch, char **argv);

/**
 * watch_process - the process @pid until it has ended
 *
 * Return: as watch_command()
 */
int watch_process(struct watch *watch, pid_t pid);

#endif /* UMT_CMD_WATCH_H */
