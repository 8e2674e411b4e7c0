/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A line of the report of `ktask run`, as the shim and the command write it.
 * May be used where a process ends and by a child of vfork(2): nothing is
 * allocated, and only integers are printed.
 */
#ifndef KTASK_UTIL_REPORT_LINE_H
#define KTASK_UTIL_REPORT_LINE_H

#include <stddef.h>
#include <stdint.h>

#define REPORT_LINE_BYTES 512

/** struct report_line - its text; begins with zeros */
struct report_line {
	size_t len;
	char text[REPORT_LINE_BYTES];
};

/** struct report_totals - calls of all kinds of a process */
struct report_totals {
	uint64_t calls, bytes; /* that were taken over */
	uint64_t left_calls, left_bytes; /* large ones that were not */
};

/* Text that does not fit is cut. */
void report_append(struct report_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* "96.0 MiB" */
void report_append_size(struct report_line *line, uint64_t bytes);
/* "3 calls on 96.0 MiB" */
void report_append_sum(struct report_line *line, uint64_t calls,
		       uint64_t bytes);
/* "; left 3 calls on 96.0 MiB to the kernel", if there were any */
void report_append_left(struct report_line *line,
			const struct report_totals *totals);

/* What an errno means. */
void report_append_error(struct report_line *line, int error);
/* What is said where the report cannot be written. */
void report_append_failure(struct report_line *line, const char *target,
			   int error);

/**
 * report_write - end a line with the name and number of its process, and write it
 *
 * Names of programs and files in it write nothing on a terminal but themselves, and make
 * no other line: see text_show().
 *
 * Writing to a file that may not grow, or to a pipe without a reader, raises a signal.  The
 * program does not get it.
 *
 * Return: 0 or -errno.
 */
int report_write(int fd, struct report_line *line, const char *name, int pid);

#endif /* KTASK_UTIL_REPORT_LINE_H */
