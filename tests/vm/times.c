/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long the tests of a guest took: the longest of them, told at its end, so that
 * what waits for nothing is found.  No verdict depends on it.
 */
#include <stdio.h>
#include <time.h>

#include "guest.h"

#define SHOWN 12

static struct {
	char name[80];
	double seconds;
} longest[SHOWN];

static double last_test_seconds;

double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void time_test(const char *name)
{
	double now = seconds_now(), seconds = now - last_test_seconds;
	int i = SHOWN - 1;

	last_test_seconds = now;
	if (seconds <= longest[i].seconds)
		return;
	for (; i > 0 && longest[i - 1].seconds < seconds; i--)
		longest[i] = longest[i - 1];
	snprintf(longest[i].name, sizeof(longest[i].name), "%s", name);
	longest[i].seconds = seconds;
}

void note_longest(void)
{
	for (int i = 0; i < SHOWN && longest[i].seconds > 0; i++)
		note_line("%6.1f s  %s", longest[i].seconds, longest[i].name);
	note_line("%6.1f s since this kernel began", seconds_now());
}
