/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sizes and thread lists: see size.h.  Whole numbers only: 1.5G is refused
 * rather than rounded in some way that nobody asked for.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "size.h"

static const char unit_letters[] = "KMGTP";

/* strtoull() alone would take "-1", " 1" and "". */
static int parse_number(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, end, 10);
	return errno ? -ERANGE : 0;
}

int size_parse(const char *text, uint64_t *bytes)
{
	const char *unit;
	uint64_t value;
	char *end;
	int shift = 0;
	int error = parse_number(text, &end, &value);

	if (error)
		return error;
	unit = *end ? strchr(unit_letters, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - unit_letters + 1);
		end++;
		if (!strcasecmp(end, "iB"))
			end += 2;
	}
	if (*end || !value)
		return -EINVAL;
	/* A signed 64-bit file offset must be able to hold it. */
	if (value > (uint64_t)INT64_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

const char *size_why(int error)
{
	if (error == -ERANGE)
		return "too large";
	return "not a size; write a whole number of bytes, or of K, M, G, T or P";
}

const char *size_text(char buf[SIZE_TEXT], uint64_t bytes)
{
	int unit = -1;
	double value = bytes;

	while (value >= 1024 && unit_letters[unit + 1]) {
		value /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buf, SIZE_TEXT, "%u bytes", (unsigned)bytes);
	else if (value == (uint64_t)value || value >= 100)
		snprintf(buf, SIZE_TEXT, "%.0f %ciB", value,
			 unit_letters[unit]);
	else
		snprintf(buf, SIZE_TEXT, "%.1f %ciB", value,
			 unit_letters[unit]);
	return buf;
}

int count_parse(const char *text, unsigned *count)
{
	uint64_t value;
	char *end;

	if (parse_number(text, &end, &value) || *end || !value ||
	    value > MAX_THREADS)
		return -EINVAL;
	*count = value;
	return 0;
}

/* One entry, "4" or "4-8"; *text is moved behind it. */
static int range_parse(const char **text, unsigned char *wanted)
{
	uint64_t first, last;
	char *end;

	if (parse_number(*text, &end, &first))
		return -EINVAL;
	last = first;
	if (*end == '-' && parse_number(end + 1, &end, &last))
		return -EINVAL;
	if (!first || first > last || last > MAX_THREADS)
		return -EINVAL;
	memset(wanted + first, 1, last - first + 1);
	*text = end;
	return 0;
}

int list_parse(const char *text, unsigned *counts)
{
	unsigned char wanted[MAX_THREADS + 1] = { 0 };
	int nr = 0;

	for (;;) {
		if (range_parse(&text, wanted))
			return -EINVAL;
		if (!*text)
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	for (unsigned i = 1; i <= MAX_THREADS; i++)
		if (wanted[i])
			counts[nr++] = i;
	return nr;
}
