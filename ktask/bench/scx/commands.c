/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loads that are programs of their own: perf's, and bench-neighbour.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loads.h"

#define MESSAGES "perf bench -f simple sched messaging -g 1 -l 20"
#define PIPE "perf bench -f simple sched pipe -l 3000"
#define NEIGHBOURS                                                      \
	"bench-neighbour --only full --load cpu --size 8 --window 250 " \
	"--rounds 2 --json"

/* The number on the last line that is one. */
static int report_seconds(const struct turn *turn, const char *load,
			  const char *command)
{
	FILE *out = popen(command, "r");
	double seconds = -1;
	char line[200];

	if (!out)
		return errno;
	while (fgets(line, sizeof(line), out)) {
		char *end;
		double value = strtod(line, &end);

		if (end != line)
			seconds = value;
	}
	if (pclose(out) || seconds < 0)
		return EIO;
	report_value(turn, load, "s", seconds);
	return 0;
}

int messages_run(const struct turn *turn)
{
	return report_seconds(turn, "hackbench (perf bench sched messaging)",
			      MESSAGES);
}

int pipe_run(const struct turn *turn)
{
	return report_seconds(turn, "ping-pong (perf bench sched pipe)", PIPE);
}

int neighbours_run(const struct turn *turn)
{
	FILE *out = popen(NEIGHBOURS, "r");
	char line[400];

	if (!out)
		return errno;
	printf("begin neighbours %s\n", turn->scheduler);
	while (fgets(line, sizeof(line), out))
		fputs(line, stdout);
	printf("end neighbours\n");
	return pclose(out) ? EIO : 0;
}
