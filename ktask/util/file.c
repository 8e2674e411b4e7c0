/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading small text files.  O_NONBLOCK: a FIFO under a file's name must not hold
 * a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "file.h"

#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

const char *file_root = "";

static ssize_t read_some(int fd, char *to, size_t size)
{
	ssize_t got;

	do
		got = read(fd, to, size);
	while (got < 0 && errno == EINTR);
	return got;
}

int file_text(const char *path, char *text, size_t size)
{
	int fd = open(path, READ_FLAGS);
	ssize_t got = 1;
	size_t len = 0;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	while (len < size - 1 && got > 0) {
		got = read_some(fd, text + len, size - 1 - len);
		if (got > 0)
			len += (size_t)got;
	}
	got = got < 0 ? -errno : 0;
	close(fd);
	text[len] = '\0';
	return got ? (int)got : (int)len;
}

int system_text(char *text, size_t size, const char *format, ...)
{
	char path[FILE_PATH];
	size_t len = strlen(file_root);
	va_list args;

	memcpy(path, file_root, len);
	va_start(args, format);
	vsnprintf(path + len, sizeof(path) - len, format, args);
	va_end(args);
	return file_text(path, text, size);
}

uint64_t text_mark(const char *text, size_t len, uint64_t mark)
{
	while (len--)
		mark = (mark ^ (unsigned char)*text++) * 0x100000001b3u;
	return mark;
}

uint64_t file_mark(const char *path, uint64_t mark)
{
	int fd = open(path, READ_FLAGS);
	char piece[256];
	ssize_t got;

	if (fd < 0)
		return mark;
	while ((got = read_some(fd, piece, sizeof(piece))) > 0)
		mark = text_mark(piece, (size_t)got, mark);
	close(fd);
	return mark;
}

bool text_number(const char *text, uint64_t *value)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)*text - '0';

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*value = number;
	return true;
}

bool file_number(const char *path, uint64_t *value)
{
	char text[32];
	int len = file_text(path, text, sizeof(text));

	if (len < 2 || text[len - 1] != '\n' || strlen(text) != (size_t)len)
		return false;
	text[len - 1] = '\0';
	return text_number(text, value);
}

bool text_field(const char *text, const char *key, uint64_t *value)
{
	size_t key_len = strlen(key);
	char number[24];

	while (text && *text) {
		const char *end = strchr(text, '\n');

		if (!end)
			return false;
		if (!strncmp(text, key, key_len) && text[key_len] == ' ') {
			size_t len = (size_t)(end - text) - key_len - 1;

			if (len >= sizeof(number))
				return false;
			memcpy(number, text + key_len + 1, len);
			number[len] = '\0';
			return text_number(number, value);
		}
		text = end + 1;
	}
	return false;
}

bool file_may_have(uint64_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= bytes;
}

bool line_value(const char *line, const char *key, uint64_t *value)
{
	size_t len = strlen(key);
	unsigned long long number;
	char *end;

	if (strncmp(line, key, len) || line[len] != ':')
		return false;
	number = strtoull(line + len + 1, &end, 10);
	if (end == line + len + 1)
		return false;
	*value = number;
	return true;
}

bool file_value(const char *path, const char *key, uint64_t *value)
{
	struct file_lines lines;
	bool found = false;
	char *line;

	if (!file_lines_open(&lines, path))
		return false;
	while (!found && (line = file_lines_next(&lines)))
		found = line_value(line, key, value);
	file_lines_end(&lines);
	return found;
}

void file_lines_begin(struct file_lines *lines, int fd, size_t max)
{
	lines->fd = fd;
	lines->left = max;
	lines->from = 0;
	lines->to = 0;
	lines->cuts = false;
	lines->in_rest = false;
}

bool file_lines_open(struct file_lines *lines, const char *path)
{
	int fd = open(path, READ_FLAGS);

	if (fd >= 0)
		file_lines_begin(lines, fd, SIZE_MAX);
	return fd >= 0;
}

void file_lines_end(struct file_lines *lines)
{
	close(lines->fd);
}

/* Move what is not used yet to the front, and read on.  Return: false at the end. */
static bool fill_buffer(struct file_lines *lines)
{
	size_t kept = lines->to - lines->from;
	size_t free_bytes = sizeof(lines->buf) - kept;
	ssize_t got;

	if (free_bytes > lines->left)
		free_bytes = lines->left;
	memmove(lines->buf, lines->buf + lines->from, kept);
	lines->from = 0;
	lines->to = kept;
	if (!free_bytes)
		return false;
	got = read_some(lines->fd, lines->buf + kept, free_bytes);
	if (got <= 0)
		return false;
	lines->to += (size_t)got;
	lines->left -= (size_t)got;
	return true;
}

char *file_lines_next(struct file_lines *lines)
{
	for (;;) {
		char *line = lines->buf + lines->from;
		size_t len = lines->to - lines->from;
		char *end = memchr(line, '\n', len);
		bool in_rest = lines->in_rest;

		if (end) {
			*end = '\0';
			len = (size_t)(end - line);
			lines->from += len + 1;
			lines->in_rest = false;
			if (!in_rest && strlen(line) == len)
				return line;
			continue;
		}
		if (len == sizeof(lines->buf)) {
			lines->from = lines->to;
			lines->in_rest = true;
			if (lines->cuts && !in_rest) {
				line[len - 1] = '\0';
				return line;
			}
		}
		if (!fill_buffer(lines))
			return NULL;
	}
}
