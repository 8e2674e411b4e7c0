/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program without threads and large blocks, whose memory is an array in the program
 * itself.  It checks its contents, and what was made in vain, and ends with "ok", or tells
 * what it found.
 */
#include "touches.h"

#define LEN (256 * MIB)

static char array[LEN + 4096];

int main(void)
{
	char *base = page_start(array);
	size_t at = touch_until_helped(base, LEN), extra;

	must_hold(at, "nothing was made ahead");
	for (; at < LEN / 2; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(1);
	}
	sleep_ms(500);
	extra = count_present(base + at, LEN - at);
	if (extra > (LEN / 16 + BLOCK + LEN / 2 * 3 / 100) / PAGE_BYTES)
		printf("%zu pages too many\n", extra);
	check_pages(base, 0, at);
	puts("ok");
	return 0;
}
