/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files that exec refuses, for report-cases.c.
 */
#ifndef NO_PROGRAMS_H
#define NO_PROGRAMS_H

#include <fcntl.h>
#include <unistd.h>

#include "probe.h"

/* Files that are no programs, each with what exec says of it. */
static const struct {
	char text[64];
	size_t bytes;
	int error;
} no_programs[] = {
	{ "", 0, ENOEXEC },
	{ "exit 0\n", 7, ENOEXEC },
	{ "#! \nexit 0\n", 11, ENOEXEC },
	{ "#!/nonexistent\n", 15, ENOENT },
	{ "\177ELF\2\1\1", 7, ENOEXEC },
	{ "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0\76\0", 64, ENOEXEC },
#if defined(__x86_64__) || defined(__aarch64__)
	/* of a mainframe; elsewhere the shim does not know what can be run */
	{ "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\26\0", 64, ENOEXEC },
#endif
	/* no text */
	{ "exit 0\n\0\n", 9, ENOEXEC },
	{ "\312\376\272\276\0\0\0\64", 8, ENOEXEC },
};

/* More than the kernel reads. */
static char long_line[BUFSIZ] = "#!/bin/sh";

static void write_program(const char *path, const char *text, size_t bytes)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);

	must_hold(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes &&
			  !close(fd),
		  "a file that is no program");
}

static void try_no_program(const char *path, int error)
{
	char *args[] = { "none", NULL };
	int fd = open(path, O_RDONLY);

	must_hold(execve(path, args, environ) == -1 && errno == error,
		  "execve");
	must_hold(execv(path, args) == -1 && errno == error, "execv");
	must_hold(execl(path, "none", (char *)NULL) == -1 && errno == error,
		  "execl");
	must_hold(fexecve(fd, args, environ) == -1 && errno == error,
		  "fexecve");
	must_hold(execveat(AT_FDCWD, path, args, environ, 0) == -1 &&
			  errno == error,
		  "execveat");
	/* To a shell goes what has no format. */
	must_hold(error == ENOEXEC ||
			  (execvp(path, args) == -1 && errno == error),
		  "execvp");
	close(fd);
}

/* The interpreter's name is cut off, where another program's name ends. */
static void try_long_line(const char *path)
{
	size_t len = strlen(long_line);

	memmove(long_line + 256 - (len - 2), long_line + 2, len - 2);
	memset(long_line + 2, ' ', 256 - len);
	strcpy(long_line + 256, "-of-another-name\n");
	write_program(path, long_line, strlen(long_line));
	try_no_program(path, ENOEXEC);
}

static void try_no_programs(const char *path)
{
	try_long_line(path);
	for (size_t i = 0; i < sizeof(no_programs) / sizeof(*no_programs);
	     i++) {
		write_program(path, no_programs[i].text, no_programs[i].bytes);
		try_no_program(path, no_programs[i].error);
	}
}

#endif /* NO_PROGRAMS_H */
