/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading small text files.  O_NONBLOCK: a FIFO under a file's name must not hold
 * a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/deps.h"
#include "user/machine/file.h"

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
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

static uint64_t mark_bytes(const char *bytes, size_t len, uint64_t mark)
{
	while (len--)
		mark = (mark ^ (unsigned char)*bytes++) * 0x100000001b3u;
	return mark;
}

uint64_t text_mark(const char *text, uint64_t mark)
{
	return mark_bytes(text, strlen(text), mark);
}

uint64_t file_mark(const char *path, uint64_t mark)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char piece[256];
	ssize_t got;

	if (fd < 0)
		return mark;
	while ((got = read_some(fd, piece, sizeof(piece))) > 0)
		mark = mark_bytes(piece, (size_t)got, mark);
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

void file_lines_begin(struct file_lines *lines, int fd, size_t max)
{
	lines->fd = fd;
	lines->left = max;
	lines->from = 0;
	lines->to = 0;
}

void file_lines_end(struct file_lines *lines)
{
	close(lines->fd);
}

/* Move what is not used yet to the front, and read on.  Return: false at the end. */
static bool fill_buffer(struct file_lines *lines)
{
	size_t kept = lines->to - lines->from;
	size_t free_bytes = KT_MIN(sizeof(lines->buf) - kept, lines->left);
	ssize_t got;

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
	bool too_long = false;

	for (;;) {
		char *line = lines->buf + lines->from;
		size_t len = lines->to - lines->from;
		char *end = memchr(line, '\n', len);

		if (end) {
			*end = '\0';
			len = (size_t)(end - line);
			lines->from += len + 1;
			if (!too_long && strlen(line) == len)
				return line;
			too_long = false;
			continue;
		}
		if (len == sizeof(lines->buf)) {
			too_long = true;
			lines->from = lines->to;
		}
		if (!fill_buffer(lines))
			return NULL;
	}
}
