/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel keeps that it should not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

long kernel_kib(void)
{
	static const char *const names[] = { "Slab:", "VmallocUsed:",
					     "KernelStack:", "Percpu:" };
	char text[8192], *found;
	long sum = 0;

	read_file("/proc/meminfo", text, sizeof(text));
	for (int i = 0; i < 4; i++) {
		found = strstr(text, names[i]);
		if (found)
			sum += strtol(found + strlen(names[i]), NULL, 10);
	}
	return sum;
}

/* Where the kernel looks for what nobody refers to any more: what was lost must
 * have been so for five seconds. */
static void nothing_was_leaked(void)
{
	const char *kmemleak = "/sys/kernel/debug/kmemleak";
	char text[4096];

	if (access(kmemleak, F_OK))
		return;
	for (int i = 0; i < 2; i++) {
		sleep_ms(6000);
		CHECK(!write_file(kmemleak, "scan"));
	}
	read_file(kmemleak, text, sizeof(text));
	if (text[0]) {
		fputs(text, stderr);
		say_verdict(false, __func__, "see the log");
	} else {
		say_verdict(true, __func__, NULL);
	}
}

void test_leaks(void)
{
	nothing_was_leaked();
}
