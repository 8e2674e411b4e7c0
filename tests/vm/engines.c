/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that are in the guest, and the test that is one: libktask beside the
 * module (tests/vm/engines).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

int run_program(const char *path, const char *argument)
{
	char line[400];
	int ends[2];
	FILE *said;
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execl(path, path, argument, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	said = fdopen(ends[0], "r");
	while (said && fgets(line, sizeof(line), said)) {
		line[strcspn(line, "\n")] = '\0';
		note_line("%s", line);
	}
	if (said)
		fclose(said);
	return status_of(pid);
}

static void both_engines_do_the_same(void)
{
	int status;

	if (access("/engines", X_OK)) {
		say_verdict(true, __func__, "tests/vm/engines is not built");
		return;
	}
	status = run_program("/engines", NULL);
	say_verdict(status == 0, __func__, status ? "status %d" : NULL, status);
}

void test_engines(void)
{
	both_engines_do_the_same();
}
