/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One run of a shell command that `ktask bench compare` measures.  Its standard input is
 * empty.  Its standard output is discarded, or read for the seconds that the command
 * measured itself.  Its standard error is that of this process.
 *
 * Behaves badly with commands that leave processes behind: their CPU time is not counted,
 * and as long as they hold the pipe this waits for more output.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/message.h"
#include "util/clock.h"

extern char **environ;

/* The end of what a command printed. */
struct tail {
	char text[4096];
	size_t len;
};

/* @output: what becomes its standard output; -1: /dev/null */
static pid_t start_command(const char *command, int output)
{
	char shell[] = "sh", option[] = "-c", *text = strdup(command);
	char *argv[] = { shell, option, text, NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;
	int error;

	if (!text)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	if (output >= 0)
		posix_spawn_file_actions_adddup2(&actions, output,
						 STDOUT_FILENO);
	else
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO,
						 "/dev/null", O_WRONLY, 0);
	error = posix_spawn(&child, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	free(text);
	return error ? -error : child;
}

static void pass_on_interrupt(pid_t child)
{
	if (interrupt_seen())
		kill(child, SIGTERM);
}

/* To its end; keeps the last bytes. */
static void read_tail(int fd, pid_t child, struct tail *tail)
{
	char part[1024];
	ssize_t got;

	while ((got = read(fd, part, sizeof(part))) != 0) {
		size_t capacity = sizeof(tail->text) - 1 - tail->len;

		if (got < 0) {
			if (errno != EINTR)
				return;
			pass_on_interrupt(child);
			continue;
		}
		if (capacity < (size_t)got) {
			tail->len -= (size_t)got - capacity;
			memmove(tail->text, tail->text + (size_t)got - capacity,
				tail->len);
		}
		memcpy(tail->text + tail->len, part, (size_t)got);
		tail->len += (size_t)got;
	}
}

/* The number that is alone on the last line; 0: there is none above 0. */
static double seconds_of_tail(struct tail *tail)
{
	char *line, *end;
	double seconds;

	while (tail->len && tail->text[tail->len - 1] == '\n')
		tail->len--;
	tail->text[tail->len] = '\0';
	line = strrchr(tail->text, '\n');
	seconds = strtod(line ? line + 1 : tail->text, &end);
	return !*end && isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static int await_end(pid_t child, struct rusage *used)
{
	int status;

	while (wait4(child, &status, 0, used) < 0) {
		if (errno != EINTR)
			return 0;
		pass_on_interrupt(child);
	}
	return status;
}

static double cpu_seconds(const struct rusage *used)
{
	return timeval_seconds(used->ru_utime) +
	       timeval_seconds(used->ru_stime);
}

static int explain_status(const char *name, int status)
{
	if (WIFSIGNALED(status))
		return say_fail("bench: %s: ended by signal %d", name,
				WTERMSIG(status));
	return say_fail("bench: %s: exit status %d", name, WEXITSTATUS(status));
}

/* @ends: a pipe that the command writes to; -1 where it does not. */
static int run_with(const int ends[2], const struct bench_row *row,
		    struct bench_sample *sample)
{
	double begin = clock_seconds(CLOCK_MONOTONIC);
	pid_t child = start_command(row->command, ends[1]);
	struct rusage used = { 0 };
	struct tail tail = { .len = 0 };
	int status;

	if (ends[1] >= 0)
		close(ends[1]);
	if (child < 0)
		return say_error(-child, "bench: starting %s", row->name);
	if (ends[0] >= 0)
		read_tail(ends[0], child, &tail);
	status = await_end(child, &used);
	*sample = (struct bench_sample){
		.seconds = clock_seconds(CLOCK_MONOTONIC) - begin,
		.cpu_seconds = cpu_seconds(&used)
	};
	if (interrupt_seen())
		return 1;
	if (status)
		return explain_status(row->name, status);
	if (ends[0] >= 0)
		sample->seconds = seconds_of_tail(&tail);
	if (sample->seconds > 0)
		return 0;
	return say_fail("bench: %s: printed no seconds as its last line",
			row->name);
}

int bench_command_run(const struct bench *bench, const struct bench_row *row,
		      struct bench_sample *sample)
{
	int status, ends[2] = { -1, -1 };

	if (bench->own_time && pipe2(ends, O_CLOEXEC))
		return say_error(errno, "bench: making a pipe");
	status = run_with(ends, row, sample);
	if (ends[0] >= 0)
		close(ends[0]);
	return status;
}
