/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The progress bar: see bar.h.  The label is cut rather than the note when
 * the terminal is narrow; under 40 columns only the note is left.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bar.h"
#include "screen.h"

#define MAX_COLUMNS 200

static const char erase_line[] = "\r\033[K";

static int terminal_columns(void)
{
	unsigned rows, columns;

	screen_size(STDERR_FILENO, &rows, &columns);
	if (columns < 20)
		return 80;
	return columns < MAX_COLUMNS ? (int)columns : MAX_COLUMNS;
}

void bar_init(struct bar *bar, const char *label)
{
	bar->label = label;
	bar->drawn = false;
	bar->on = screen_possible(STDERR_FILENO);
}

void bar_draw(struct bar *bar, double fraction, const char *note)
{
	char cells[MAX_COLUMNS + 1];
	int columns, width, filled, label;

	if (!bar->on)
		return;
	if (fraction > 1)
		fraction = 1;
	bar->drawn = true;
	/* " [", "] ", "100 % ", and a column that stays free. */
	columns = terminal_columns() - (int)strlen(note) - 11;
	label = (int)strlen(bar->label);
	if (label > columns / 2)
		label = columns / 2;
	width = columns - label;
	if (width < 5) {
		fprintf(stderr, "%s%s", erase_line, note);
		return;
	}
	if (width > 40)
		width = 40;
	filled = (int)(fraction * width);
	memset(cells, ' ', width);
	memset(cells, '=', filled);
	if (filled < width)
		cells[filled] = '>';
	cells[width] = '\0';
	fprintf(stderr, "%s%.*s [%s] %3.0f %% %s", erase_line, label,
		bar->label, cells, 100 * fraction, note);
}

void bar_clear(struct bar *bar)
{
	if (bar->drawn)
		fputs(erase_line, stderr);
	bar->drawn = false;
}

const char *bar_time(char buf[16], uint64_t time_ns)
{
	unsigned long seconds = (time_ns + 500000000) / 1000000000;

	if (seconds < 3600)
		snprintf(buf, 16, "%lu:%02lu", seconds / 60, seconds % 60);
	else
		snprintf(buf, 16, "%lu:%02lu:%02lu", seconds / 3600 % 10000,
			 seconds / 60 % 60, seconds % 60);
	return buf;
}
