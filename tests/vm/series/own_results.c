/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a test says of itself: see own_results.h.  Needs nothing of a guest.
 */
#define _GNU_SOURCE
#include <string.h>

#include "own_results.h"

#define SAID_MAX 10000
#define SKIPPED 4
#define SKIPPED_LTP 32

static bool begins_with(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

static void count_line_of_ltp(const char *line, struct run *run)
{
	if (strstr(line, "TFAIL") || strstr(line, "TBROK"))
		run->badly++;
	else if (strstr(line, "TCONF"))
		run->skipped++;
	else if (strstr(line, "TPASS"))
		run->well++;
}

/* Harnesses that lie in each other put "# " before a line. */
static const char *skip_prefixes(const char *line)
{
	while (begins_with(line, "# "))
		line += 2;
	return line;
}

static bool is_of_kselftest(const char *line)
{
	line = skip_prefixes(line);
	return begins_with(line, "ok ") || begins_with(line, "not ok ");
}

static void count_line_of_kselftest(const char *line, struct run *run)
{
	line = skip_prefixes(line);
	if (begins_with(line, "not ok "))
		run->badly++;
	else if (strcasestr(line, "# SKIP"))
		run->skipped++;
	else
		run->well++;
}

static bool is_among(const char *line, char *const lines[], unsigned nr)
{
	while (nr--)
		if (!strcmp(line, lines[nr]))
			return true;
	return false;
}

/*
 * Those of kselftest, which have numbers, once each: a child that ends by exit() writes
 * again what its parent had not written yet, and how many children of cgroup/test_kmem
 * come to that differs.  LTP says the same of each turn of a loop, and each counts.
 */
void count_results(char *text, struct run *run)
{
	static char *said[SAID_MAX];
	char *save = NULL;
	unsigned nr = 0;

	for (char *line = strtok_r(text, "\n", &save); line && nr < SAID_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!is_of_kselftest(line)) {
			count_line_of_ltp(line, run);
		} else if (!is_among(line, said, nr)) {
			said[nr++] = line;
			count_line_of_kselftest(line, run);
		}
	}
}

/* 4 is a warning of LTP's, one bit of several. */
bool is_skip_status(const char *program, int status)
{
	return status == (begins_with(program, "ltp/") ? SKIPPED_LTP : SKIPPED);
}
