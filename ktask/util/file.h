/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Small text files that somebody else wrote: the kernel, or the administrator.
 *
 * Reads them without trust: bounded, never blocking, and no descriptor is left open.
 * Allocates nothing: a handler may have interrupted the allocator.
 * A number followed by anything else, a line without its end and a line that is too long
 * count as missing.
 */
#ifndef KTASK_UTIL_FILE_H
#define KTASK_UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_LINE 4096
#define FILE_PATH 1200

/* file_root - put before every path of the system; "" except in tests */
extern const char *file_root;

/*
 * file_text - read the beginning of a file, as a string
 *
 * Return: its length, at most @size - 1; -errno if it cannot be read.
 */
int file_text(const char *path, char *text, size_t size);

/*
 * system_text - the same of a file of the system, below file_root
 * @format: its path, as for printf(3)
 */
int system_text(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define FILE_MARK 0xcbf29ce484222325u

/*
 * file_mark - a hash of the whole file (FNV-1a); a missing file leaves @mark as it is
 * @mark: FILE_MARK, or the mark of another file, to hash both
 */
uint64_t file_mark(const char *path, uint64_t mark);

/* text_mark - the same of @len bytes in memory */
uint64_t text_mark(const char *text, size_t len, uint64_t mark);

/* file_may_have - may a file of ours have so many bytes?  A write beyond the limit
 * does not fail but ends the program (SIGXFSZ). */
bool file_may_have(uint64_t bytes);

/* file_number - of a file that holds one number and the end of its line */
bool file_number(const char *path, uint64_t *value);

/* text_number - decimal digits and nothing else; false also if too large */
bool text_number(const char *text, uint64_t *value);

/*
 * text_field - find the line "@key number" in a text, and read the number
 *
 * Return: false if there is no such line.
 */
bool text_field(const char *text, const char *key, uint64_t *value);

/* line_value - of a line "@key: number", with any blanks and anything behind it */
bool line_value(const char *line, const char *key, uint64_t *value);

/* file_value - of the first such line of a file; false if there is none */
bool file_value(const char *path, const char *key, uint64_t *value);

/* A file read by lines, of at most FILE_LINE bytes each. */
struct file_lines {
	bool cuts; /* may be set: cut long lines; otherwise they are skipped */
	int fd;
	size_t left; /* bytes that may still be read */
	size_t from, to; /* what of buf is not yet used */
	bool in_rest; /* of a line that is too long */
	char buf[FILE_LINE];
};

/* file_lines_open - the lines of a file; false if it cannot be read */
bool file_lines_open(struct file_lines *lines, const char *path);

/* file_lines_begin - read from @fd, at most @max bytes; takes the descriptor */
void file_lines_begin(struct file_lines *lines, int fd, size_t max);

/* file_lines_next - the next line, without its end; NULL behind the last */
char *file_lines_next(struct file_lines *lines);

void file_lines_end(struct file_lines *lines);

#endif /* KTASK_UTIL_FILE_H */
