/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Words with commas between them, as in settings and in files of the kernel.
 */
#ifndef KTASK_UTIL_WORD_LIST_H
#define KTASK_UTIL_WORD_LIST_H

#include <stdbool.h>
#include <string.h>

/* word_is - are these @len bytes @word? */
static inline bool word_is(const char *text, size_t len, const char *word)
{
	while (len && *word && *text == *word) {
		text++;
		word++;
		len--;
	}
	return !len && !*word;
}

/* word_length - of the first word */
static inline size_t word_length(const char *list)
{
	size_t len = 0;

	while (list[len] && list[len] != ',')
		len++;
	return len;
}

/* word_list_next - what is behind the word of @len bytes at @list: "" at the end */
static inline const char *word_list_next(const char *list, size_t len)
{
	return list + len + (list[len] == ',');
}

/* word_list_has - is @word in @list, which may be NULL? */
static inline bool word_list_has(const char *list, const char *word)
{
	size_t len;

	for (; list && *list; list = word_list_next(list, len)) {
		len = word_length(list);
		if (word_is(list, len, word))
			return true;
	}
	return false;
}

/* word_index - which of @nr words these bytes are; -1: none */
static inline int word_index(const char *text, size_t len,
			     const char *const *words, int nr)
{
	for (int i = 0; i < nr; i++)
		if (word_is(text, len, words[i]))
			return i;
	return -1;
}

#endif /* KTASK_UTIL_WORD_LIST_H */
