/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Text of others: see text.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* The longest character of UTF-8. */
#define CHARACTER_MAX 4

/* What jansson takes, it writes.  The sequences that it takes are told by their
 * first byte: a shorter one is never the beginning of another. */
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
