/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A progress bar: one line on standard error, rewritten in place.  Draws
 * nothing unless standard error is a terminal that can move its cursor.
 */
#ifndef KTASK_CLI_BAR_H
#define KTASK_CLI_BAR_H

#include <stdbool.h>
#include <stdint.h>

#define BAR_REDRAW_MS 200

struct bar {
	const char *label;
	bool on;
	bool drawn;
};

void bar_init(struct bar *bar, const char *label);

/** bar_draw - @fraction from 0 to 1, and a note behind the bar */
void bar_draw(struct bar *bar, double fraction, const char *note);

/** bar_clear - remove the bar, so that other output can follow */
void bar_clear(struct bar *bar);

/** bar_time - "0:07", "1:02:03"; returns @buf */
const char *bar_time(char buf[16], uint64_t time_ns);

#endif /* KTASK_CLI_BAR_H */
