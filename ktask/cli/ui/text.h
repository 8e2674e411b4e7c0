/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * JSON, and text that others have written (names of files, of groups, arguments) as a
 * string of it.  For a terminal: util/shown_text.h.
 */
#ifndef KTASK_CLI_TEXT_H
#define KTASK_CLI_TEXT_H

#include <jansson.h>

/** plural_suffix - "s" unless there is one */
static inline const char *plural_suffix(unsigned long nr)
{
	return nr == 1 ? "" : "s";
}

/**
 * text_json - @text as a string
 *
 * @text may be any bytes.  JSON needs UTF-8, so each byte that is not becomes '?'.
 *
 * Return: a new reference; NULL without memory only.
 */
json_t *text_json(const char *text);

/**
 * json_write - @object to @path, NULL: to standard output
 * @object: a reference that is taken over; NULL: there was no memory for it
 *
 * Return: 0, or 1 after a message.
 */
int json_write(json_t *object, const char *path);

#endif /* KTASK_CLI_TEXT_H */
