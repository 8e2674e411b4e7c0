/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The text of the autotune cache:
 *
 *	ktask-autotune 1
 *	machine AMD EPYC; 2 CPUs; 1 nodes; Linux 6.18.44; ktask 0.1.0
 *	populate threads 2 of 2 chunk_us 1000 seen 2 measured 1 rate 7600000000
 *	sum 52a1b0c9d8e7f604
 *
 * "seen" and "measured" come from earlier versions, in which jobs wrote lines too.  Lines
 * with "measured 0" are those of jobs, and are left out.
 *
 * The file is used as a whole or not at all: it must end with the right sum, and each line
 * must have exactly this form.  The sum detects accidents only: whoever may write the file
 * can write a right sum.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/deps.h"
#include "util/file.h"
#include "user/history/autotune.h"

#define HEADER "ktask-autotune 1\nmachine "
#define SEEN_MAX 3
#define SUM "sum "
#define SUM_LINE (sizeof(SUM) - 1 + 16 + 1)

bool autotune_name_ok(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len;

	if (!name)
		return false;
	len = strnlen(name, AUTOTUNE_NAME);
	return len && len < AUTOTUNE_NAME && strspn(name, allowed) == len;
}

bool autotune_entry_ok(const struct autotune_entry *entry)
{
	return autotune_name_ok(entry->name) && entry->threads &&
	       entry->threads <= entry->max_threads &&
	       entry->max_threads <= AUTOTUNE_THREADS_MAX &&
	       entry->chunk_us <= AUTOTUNE_CHUNK_US_MAX;
}

/* The word at *text, which a space or the line's end follows; NULL: none. */
static char *next_word(char **text)
{
	char *word = *text;
	char *space;

	if (!word || !*word)
		return NULL;
	space = strchr(word, ' ');
	if (space)
		*space++ = '\0';
	*text = space;
	return word;
}

static bool take_number(char **text, const char *key, uint64_t max,
			uint64_t *value)
{
	const char *word = next_word(text);
	const char *number = word ? next_word(text) : NULL;

	return number && !strcmp(word, key) && text_number(number, value) &&
	       *value <= max;
}

static bool parse_line(char *line, struct autotune_entry *entry, bool *measured)
{
	uint64_t threads, of, chunk_us, seen, asked, rate;
	const char *name = next_word(&line);

	if (!autotune_name_ok(name) ||
	    !take_number(&line, "threads", AUTOTUNE_THREADS_MAX, &threads) ||
	    !take_number(&line, "of", AUTOTUNE_THREADS_MAX, &of) ||
	    !take_number(&line, "chunk_us", AUTOTUNE_CHUNK_US_MAX, &chunk_us) ||
	    !take_number(&line, "seen", SEEN_MAX, &seen) || !seen ||
	    !take_number(&line, "measured", 1, &asked) ||
	    !take_number(&line, "rate", UINT64_MAX, &rate) || line)
		return false;
	*entry = (struct autotune_entry){ .threads = (unsigned)threads,
					  .max_threads = (unsigned)of,
					  .chunk_us = (unsigned)chunk_us,
					  .single_rate = rate };
	strcpy(entry->name, name);
	*measured = asked;
	return autotune_entry_ok(entry);
}

static bool is_named(const struct autotune_cache *cache, const char *name)
{
	for (unsigned i = 0; i < cache->nr; i++)
		if (!strcmp(cache->entries[i].name, name))
			return true;
	return false;
}

/* Lines between the header and the sum; each has its end. */
static bool parse_lines(const char *text, const char *end,
			struct autotune_cache *cache)
{
	char line[AUTOTUNE_NAME + 160];

	while (text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));
		struct autotune_entry entry;
		bool measured;
		size_t len;

		if (!next || cache->nr == AUTOTUNE_MAX)
			return false;
		len = (size_t)(next - text);
		if (len >= sizeof(line) || memchr(text, '\0', len))
			return false;
		memcpy(line, text, len);
		line[len] = '\0';
		if (!parse_line(line, &entry, &measured) ||
		    is_named(cache, entry.name))
			return false;
		if (measured)
			cache->entries[cache->nr++] = entry;
		text = next + 1;
	}
	return true;
}

/* Does the text end in the sum of what is before?  Return: its length less
 * the sum's line, or 0. */
static size_t checked_len(const char *text, size_t len)
{
	char sum[SUM_LINE + 1];

	if (len < SUM_LINE || len > AUTOTUNE_BYTES)
		return 0;
	len -= SUM_LINE;
	snprintf(sum, sizeof(sum), SUM "%016" PRIx64 "\n",
		 text_mark(text, len, FILE_MARK));
	return memcmp(text + len, sum, SUM_LINE) ? 0 : len;
}

/* Return: length of the text's beginning if it is right, or 0. */
static size_t header_len(const char *text, size_t len, const char *machine)
{
	size_t header = sizeof(HEADER) - 1;
	size_t name = strlen(machine);

	if (len < header + name + 1 || memcmp(text, HEADER, header) ||
	    memcmp(text + header, machine, name) || text[header + name] != '\n')
		return 0;
	return header + name + 1;
}

bool autotune_parse(const char *text, size_t len, const char *machine,
		    struct autotune_cache *cache)
{
	size_t header;

	cache->nr = 0;
	len = checked_len(text, len);
	header = header_len(text, len, machine);
	if (header && parse_lines(text + header, text + len, cache))
		return true;
	cache->nr = 0;
	return false;
}

static size_t format_entry(const struct autotune_entry *entry, char *text,
			   size_t size)
{
	int len = snprintf(
		text, size,
		"%s threads %u of %u chunk_us %u seen 2 measured 1 rate %" PRIu64
		"\n",
		entry->name, entry->threads, entry->max_threads,
		entry->chunk_us, entry->single_rate);

	return KT_MIN((size_t)len, size);
}

size_t autotune_format(const struct autotune_cache *cache, const char *machine,
		       char *text, size_t size)
{
	size_t len = KT_MIN(
		(size_t)snprintf(text, size, HEADER "%s\n", machine), size);

	for (unsigned i = 0; i < cache->nr; i++)
		len += format_entry(&cache->entries[i], text + len, size - len);
	if (size - len <= SUM_LINE)
		return 0;
	snprintf(text + len, size - len, SUM "%016" PRIx64 "\n",
		 text_mark(text, len, FILE_MARK));
	return len + SUM_LINE;
}

static void drop_entry(struct autotune_cache *cache, unsigned index)
{
	cache->nr--;
	memmove(&cache->entries[index], &cache->entries[index + 1],
		(cache->nr - index) * sizeof(cache->entries[0]));
}

void autotune_put(struct autotune_cache *cache,
		  const struct autotune_entry *entry)
{
	for (unsigned i = 0; i < cache->nr; i++)
		if (!strcmp(cache->entries[i].name, entry->name)) {
			drop_entry(cache, i);
			break;
		}
	if (cache->nr == AUTOTUNE_MAX)
		drop_entry(cache, 0);
	cache->entries[cache->nr++] = *entry;
}
