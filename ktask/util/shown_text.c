/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See shown_text.h. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shown_text.h"

/* By the first byte; 0: no character begins with it. */
static size_t sequence_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2)
		return 0;
	if (first < 0xe0)
		return 2;
	if (first < 0xf0)
		return 3;
	return first < 0xf5 ? 4 : 0;
}

/* Is it too long, half of a pair, or behind the last character? */
static bool is_beyond(unsigned char first, unsigned char second)
{
	return (first == 0xe0 && second < 0xa0) ||
	       (first == 0xed && second > 0x9f) ||
	       (first == 0xf0 && second < 0x90) ||
	       (first == 0xf4 && second > 0x8f);
}

/* Bytes of the character at @text; 0: there is none. */
static size_t character_len(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t len = sequence_len(at[0]);

	for (size_t i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return len > 2 && is_beyond(at[0], at[1]) ? 0 : len;
}

void text_repair(char *text)
{
	size_t len;

	for (; *text; text += len) {
		len = character_len(text);
		if (!len)
			*text = '?';
		len += !len;
	}
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

	text_repair(text);
	for (; *text; text += len) {
		len = character_len(text);
		if (is_control(text, len))
			memset(text, '?', len);
	}
}
