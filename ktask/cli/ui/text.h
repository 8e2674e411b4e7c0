/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * JSON, and text that others have written (names of files, of groups, arguments):
 * as a string of JSON, or for a terminal.
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
 * It may be any bytes; JSON wants UTF-8.  Of what is none each byte becomes '?'.
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

/**
 * text_show - @text with '?' for each byte that is no part of a character, or of
 * one that a terminal would obey
 */
void text_show(char *text);

#endif /* KTASK_CLI_TEXT_H */
