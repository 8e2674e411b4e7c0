/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What binfmt_misc starts: see binfmt_misc.h.  Each entry is a file:
 *
 *	enabled
 *	interpreter /usr/bin/qemu-arm
 *	flags: OCF
 *	offset 0
 *	magic 7f454c4601010100
 *	mask ffffffffffffff00
 *
 * or, instead of the last three lines, "extension .py".
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binfmt_misc.h"

#define ENTRIES "/proc/sys/fs/binfmt_misc"
#define KEY_BYTES 16

/* A file, and what was read of it last. */
struct text {
	int fd;
	ssize_t len, at;
	char piece[128];
};

/* One that was read as far as its magic bytes and a mask. */
struct entry {
	bool enabled, matches, needs_no_path;
	size_t offset, nr;
	/* where the file and the magic bytes differ */
	uint8_t differences[BINFMT_HEAD_BYTES];
};

/* Return: -1 at the end. */
static int next_char(struct text *text)
{
	if (text->at == text->len) {
		text->at = 0;
		text->len = read(text->fd, text->piece, sizeof(text->piece));
		if (text->len <= 0) {
			text->len = 0;
			return -1;
		}
	}
	return (unsigned char)text->piece[text->at++];
}

/* The next characters up to @end or the end of the line, as far as they fit.
 * Return: how many there were; -1: nothing is left. */
static ssize_t next_word(struct text *text, char end, char *word, size_t size)
{
	size_t len = 0;
	int c = next_char(text);

	if (c < 0)
		return -1;
	for (; c >= 0 && c != end && c != '\n'; c = next_char(text))
		if (++len < size)
			word[len - 1] = (char)c;
	word[len < size ? len : size - 1] = '\0';
	return (ssize_t)len;
}

static int hex_digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* Return: -1 at the end of the line. */
static int next_byte(struct text *text)
{
	int high = hex_digit(next_char(text));

	return high < 0 ? -1 : high << 4 | hex_digit(next_char(text));
}

static void compare_magic(struct text *text, const char *head,
			  struct entry *entry)
{
	int byte;

	while ((byte = next_byte(text)) >= 0) {
		size_t at = entry->offset + entry->nr;

		entry->matches = at < BINFMT_HEAD_BYTES;
		if (!entry->matches)
			return;
		entry->differences[entry->nr++] =
			(uint8_t)byte ^ (uint8_t)head[at];
	}
}

static void apply_mask(struct text *text, struct entry *entry)
{
	for (size_t i = 0; i < entry->nr; i++)
		entry->differences[i] &= (uint8_t)next_byte(text);
}

static size_t next_number(struct text *text)
{
	char digits[KEY_BYTES];
	size_t number = 0;

	next_word(text, '\n', digits, sizeof(digits));
	for (const char *digit = digits; isdigit((unsigned char)*digit);
	     digit++)
		number = 10 * number + (size_t)(*digit - '0');
	return number;
}

/* ".py", with the point; the kernel takes the last one in the path. */
static bool has_extension(struct text *text, const char *path)
{
	const char *own = strrchr(path, '.');
	char extension[BINFMT_HEAD_BYTES];

	next_word(text, '\n', extension, sizeof(extension));
	return own && !strcmp(own, extension);
}

static void read_line(struct text *text, const char *key, const char *head,
		      const char *path, struct entry *entry)
{
	char flags[KEY_BYTES];

	if (!strcmp(key, "enabled")) {
		entry->enabled = true;
	} else if (!strcmp(key, "flags:")) {
		next_word(text, '\n', flags, sizeof(flags));
		entry->needs_no_path = strchr(flags, 'F');
	} else if (!strcmp(key, "offset")) {
		entry->offset = next_number(text);
	} else if (!strcmp(key, "magic")) {
		compare_magic(text, head, entry);
	} else if (!strcmp(key, "mask")) {
		apply_mask(text, entry);
	} else if (!strcmp(key, "extension")) {
		entry->matches = has_extension(text, path);
	}
}

static bool is_entry_of(int fd, const char *head, const char *path,
			char *interpreter, size_t size)
{
	struct entry entry = { 0 };
	struct text text = { .fd = fd };
	char key[KEY_BYTES];

	while (next_word(&text, ' ', key, sizeof(key)) >= 0) {
		if (strcmp(key, "interpreter"))
			read_line(&text, key, head, path, &entry);
		else if (next_word(&text, '\n', interpreter, size) >=
			 (ssize_t)size)
			*interpreter = '\0';
	}
	for (size_t i = 0; i < entry.nr; i++)
		entry.matches &= !entry.differences[i];
	if (entry.needs_no_path)
		*interpreter = '\0';
	return entry.enabled && entry.matches;
}

static bool is_enabled(int directory)
{
	int fd = openat(directory, "status", O_RDONLY | O_CLOEXEC);
	char first = 0;
	bool enabled = fd >= 0 && read(fd, &first, 1) == 1 && first == 'e';

	if (fd >= 0)
		close(fd);
	return enabled;
}

static bool try_entry(int directory, const char *name, const char *head,
		      const char *path, char *interpreter, size_t size)
{
	bool matches;
	int fd;

	if (*name == '.' || !strcmp(name, "register") ||
	    !strcmp(name, "status"))
		return false;
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	matches = is_entry_of(fd, head, path, interpreter, size);
	close(fd);
	return matches;
}

/* As directory_names.h does, but with less stack. */
static bool try_entries(int directory, const char *head, const char *path,
			char *interpreter, size_t size)
{
	union {
		struct dirent64 first;
		char bytes[sizeof(struct dirent64)];
	} names;
	long len;

	while ((len = syscall(SYS_getdents64, directory, &names,
			      sizeof(names))) > 0) {
		const struct dirent64 *name;

		for (long at = 0; at < len; at += name->d_reclen) {
			name = (const void *)(names.bytes + at);
			if (try_entry(directory, name->d_name, head, path,
				      interpreter, size))
				return true;
		}
	}
	return false;
}

bool binfmt_misc_matches(const char *head, const char *path, char *interpreter,
			 size_t size)
{
	int directory = open(ENTRIES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool matches;

	if (directory < 0)
		return false;
	matches = is_enabled(directory) &&
		  try_entries(directory, head, path, interpreter, size);
	close(directory);
	return matches;
}
