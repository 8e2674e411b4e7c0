/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* JSON: see text.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "text.h"
#include "util/shown_text.h"

json_t *text_json(const char *text)
{
	json_t *json = json_string(text);
	char *copy = json ? NULL : strdup(text);

	if (!copy)
		return json;
	text_repair(copy);
	json = json_string(copy);
	free(copy);
	return json;
}

/* Waits for the other end of a FIFO, unless a signal has asked or asks this process to
 * end. */
static FILE *open_output(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd;
	FILE *file;

	interrupt_release();
	fd = open(path, interrupt_seen() ? flags | O_NONBLOCK : flags, 0666);
	if (fd < 0)
		return NULL;
	fcntl(fd, F_SETFL, 0);
	file = fdopen(fd, "w");
	if (!file)
		close(fd);
	return file;
}

int json_write(json_t *object, const char *path)
{
	size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
	FILE *file = stdout;
	int failed;

	if (!object)
		return say_error(ENOMEM, "allocating the JSON object");
	if (path)
		file = open_output(path);
	if (!file) {
		json_decref(object);
		return say_error(errno, "writing %s", path);
	}
	failed = json_dumpf(object, file, flags);
	json_decref(object);
	if (!path) {
		putchar('\n');
		return 0;
	}
	fputc('\n', file);
	if (fclose(file) || failed)
		return say_error(errno, "writing %s", path);
	return 0;
}
