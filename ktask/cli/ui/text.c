/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* JSON, and text of others: see text.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "text.h"

/* The longest character of UTF-8. */
#define CHARACTER_MAX 4

/* jansson writes all that it accepts.  The first byte determines the length of a sequence,
 * so a shorter one is never the beginning of another. */
static bool is_character(const char *at, size_t len)
{
	json_t *json = json_stringn(at, len);

	json_decref(json);
	return json;
}

/* Bytes of the character at @at; 0: there is none. */
static size_t character_len(const char *at)
{
	size_t len, left = strnlen(at, CHARACTER_MAX);

	for (len = 1; len <= left; len++)
		if (is_character(at, len))
			return len;
	return 0;
}

static void repair_text(char *text)
{
	size_t len;

	for (; *text; text += len) {
		len = *text & 0x80 ? character_len(text) : 1;
		if (!len)
			*text = '?';
		len += !len;
	}
}

json_t *text_json(const char *text)
{
	json_t *json = json_string(text);
	char *copy = json ? NULL : strdup(text);

	if (!copy)
		return json;
	repair_text(copy);
	json = json_string(copy);
	free(copy);
	return json;
}

/* The second set of them is U+0080 to U+009F. */
static bool is_control(const char *at, size_t len)
{
	const unsigned char *byte = (const unsigned char *)at;

	return len == 1 ? *byte < ' ' || *byte == 127
			: byte[0] == 0xc2 && byte[1] < 0xa0;
}

void text_show(char *text)
{
	size_t len;

	repair_text(text);
	for (; *text; text += len) {
		len = *text & 0x80 ? character_len(text) : 1;
		if (is_control(text, len))
			memset(text, '?', len);
	}
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
