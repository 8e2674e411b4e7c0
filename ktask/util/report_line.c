/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See report_line.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report_line.h"
#include "shown_text.h"

void report_append(struct report_line *line, const char *format, ...)
{
	size_t capacity = sizeof(line->text) - line->len;
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(line->text + line->len, capacity, format, list);
	va_end(list);
	if (len > 0)
		line->len +=
			(size_t)len < capacity ? (size_t)len : capacity - 1;
}

void report_append_size(struct report_line *line, uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	unsigned long long tenths;
	int unit = 0;

	if (bytes < 1024) {
		report_append(line, "%llu bytes", (unsigned long long)bytes);
		return;
	}
	tenths = bytes / 1024 * 10 + bytes % 1024 * 10 / 1024;
	for (; tenths >= 10240 && units[unit + 1]; unit++)
		tenths /= 1024;
	report_append(line, "%llu.%llu %ciB", tenths / 10, tenths % 10,
		      units[unit]);
}

void report_append_sum(struct report_line *line, uint64_t calls, uint64_t bytes)
{
	report_append(line, "%llu %s on ", (unsigned long long)calls,
		      calls == 1 ? "call" : "calls");
	report_append_size(line, bytes);
}

void report_append_left(struct report_line *line,
			const struct report_totals *totals)
{
	if (!totals->left_calls)
		return;
	report_append(line, "; left ");
	report_append_sum(line, totals->left_calls, totals->left_bytes);
	report_append(line, " to the kernel");
}

/* What strerror() says may be translated, which allocates. */
void report_append_error(struct report_line *line, int error)
{
#if __GLIBC_PREREQ(2, 32)
	const char *text = strerrordesc_np(error);

	if (text) {
		report_append(line, "%s", text);
		return;
	}
#endif
	report_append(line, "error %d", error);
}

void report_append_failure(struct report_line *line, const char *target,
			   int error)
{
	report_append(line, "ktask: run: writing the report %.120s: ", target);
	report_append_error(line, error);
}

/* A signal that the program holds back already is its own. */
static void keep_own_signals(sigset_t *ours)
{
	sigset_t theirs;

	sigpending(&theirs);
	if (sigismember(&theirs, SIGXFSZ))
		sigdelset(ours, SIGXFSZ);
	if (sigismember(&theirs, SIGPIPE))
		sigdelset(ours, SIGPIPE);
}

static int write_text(int fd, const char *text, size_t len)
{
	static const struct timespec now;
	sigset_t ours, old;
	ssize_t put;
	int error;

	sigemptyset(&ours);
	sigaddset(&ours, SIGXFSZ);
	sigaddset(&ours, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &ours, &old);
	keep_own_signals(&ours);
	do
		put = write(fd, text, len);
	while (put < 0 && errno == EINTR);
	error = put < 0 ? errno : 0;
	if (error == EFBIG || error == EPIPE)
		sigtimedwait(&ours, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -error;
}

int report_write(int fd, struct report_line *line, const char *name, int pid)
{
	/* The end of it tells whose line it is: that must fit. */
	if (line->len > REPORT_LINE_BYTES - 96)
		line->len = REPORT_LINE_BYTES - 96;
	report_append(line, " (%.64s, %d)", name, pid);
	text_show(line->text);
	report_append(line, "\n");
	return write_text(fd, line->text, line->len);
}
