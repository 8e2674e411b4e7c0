/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report of `ktask run`: see run.h.  The shim writes its lines in
 * preload/exit/report.c; those here look the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "cli/ui/message.h"
#include "cli/ui/target.h"

#define VARIABLE "KTASK_RUN_REPORT"

/* As the shim opens it; @create: O_CREAT, or 0. */
static int open_report(const char *path, int create)
{
	return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | create,
		    0666);
}

static bool is_pipe(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISFIFO(st.st_mode);
}

/*
 * Creates no file: the program may become another user before it writes its
 * lines, and could not write to a file of ours.
 */
static int try_report(const char *path)
{
	int fd = open_report(path, 0), error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	if (error == ENOENT)
		error = -target_verify(path);
	/* ENXIO of a pipe: nobody reads it yet. */
	if (error && !(error == ENXIO && is_pipe(path)))
		return say_error(error, "opening the report %s", path);
	return 0;
}

/* The program may change its directory before it ends: make the path whole. */
static char *whole_path(const char *path)
{
	char directory[PATH_MAX], *whole;

	if (path[0] == '/')
		return strdup(path);
	if (!getcwd(directory, sizeof(directory)) ||
	    asprintf(&whole, "%s/%s", directory, path) < 0)
		return NULL;
	return whole;
}

int run_report_set(const struct option_file *report)
{
	char *path;
	int status;

	if (!report->given)
		return 0;
	if (!report->path)
		return setenv(VARIABLE, "1", 1)
			       ? say_error(errno,
					   "run: setting the environment")
			       : 0;
	path = whole_path(report->path);
	if (!path)
		return say_error(errno, "opening the report %s", report->path);
	status = try_report(path);
	if (!status && setenv(VARIABLE, path, 1))
		status = say_error(errno, "run: setting the environment");
	free(path);
	return status;
}

const char *run_report_target(void)
{
	const char *target = getenv(VARIABLE);

	return target && *target && strcmp(target, "0") ? target : NULL;
}

bool run_report_is_stderr(void)
{
	const char *target = run_report_target();

	return target && !strcmp(target, "1");
}

int run_report_line(struct report_line *line, const char *name, int pid)
{
	const char *target = run_report_target();
	int fd, error;

	if (!target)
		return 0;
	fd = run_report_is_stderr() ? dup(STDERR_FILENO)
				    : open_report(target, O_CREAT);
	if (fd < 0)
		return -errno;
	error = report_write(fd, line, name, pid);
	close(fd);
	return error;
}

void run_report_nothing(const char *program, const char *why)
{
	struct report_line line = { 0 };
	int error;

	report_append(&line, "ktask: run: nothing can be taken over: %s", why);
	error = run_report_line(&line, basename(program), (int)getpid());
	if (error && !run_report_is_stderr())
		run_report_failed(error);
}

void run_report_failed(int error)
{
	struct report_line line = { 0 };

	/* A pipe that nobody reads gets nothing. */
	if (error == -EPIPE || error == -ENXIO || error == -EAGAIN)
		return;
	report_append_failure(&line, run_report_target(), -error);
	report_write(STDERR_FILENO, &line, "ktask", (int)getpid());
}

void run_report_missed(uint32_t nr)
{
	struct report_line line = { 0 };

	report_append(&line,
		      "ktask: run: %u processes more than can be watched at "
		      "once: of those that a signal ended nothing is told",
		      nr);
	run_report_line(&line, "ktask", (int)getpid());
}
