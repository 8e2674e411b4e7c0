/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that tell the kernel how their memory is to be made, locked or limited, when
 * some of it was made ahead.  Each does what it would do without that, and ends with "ok",
 * or tells what it found.
 */

#include "ahead_cases.h"

/* ---- many mappings ---- */

static char *map_apart(size_t len)
{
	char *base = guarded_space(len);

	must_hold(mmap(base, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base,
		  "mmap");
	return base;
}

/* Until the watcher has seen what was touched. */
static void wait_for_watcher(void)
{
	static long waited;
	long before = watcher_sleeps();

	while (watcher_sleeps() == before) {
		must_hold(waited < WAIT_MS,
			  "nothing was made ahead: the watcher got no CPU");
		sleep_ms(5);
		waited += 5;
	}
}

/* "NUMBER HOW": of each a page is touched, or of "whole" ones all, and then of another one
 * as much as is made ahead; of "idle" ones nothing. */
static void maps_many(const char *how)
{
	char which[16], *base;
	size_t touched;
	int nr;

	must_hold(sscanf(how, "%d %15s", &nr, which) == 2, how);
	touched = !strcmp(which, "whole") ? BLOCK : PAGE_BYTES;
	for (int i = 0; i < nr; i++) {
		base = map_apart(BLOCK);
		if (!strcmp(which, "idle"))
			continue;
		fill_pages(base, 0, touched);
		if (touched == BLOCK && i > 32)
			wait_for_watcher();
	}
	base = map_apart(LEN);
	if (strcmp(which, "idle"))
		must_hold(touch_until_helped(base, LEN),
			  "nothing was made ahead");
}

static const struct ahead_case all_cases[] = {
	{ "many", maps_many },
};

int main(int argc, char **argv)
{
	return run_case(all_cases, sizeof(all_cases) / sizeof(all_cases[0]),
			argc, argv);
}
