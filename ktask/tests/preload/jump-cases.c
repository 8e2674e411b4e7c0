/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A handler that leaves mlock() by siglongjmp() again and again: no descriptor of the
 * shim may stay open.  Prints "ok" or what went wrong. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "probe.h"

static sigjmp_buf back;

static void jump_back(int sig)
{
	siglongjmp(back, sig);
}

/* Descriptors of this process that list mappings. */
static int count_open_lists(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int nr = 0;

	must_hold(directory != NULL, "opendir");
	while ((entry = readdir(directory))) {
		char target[64] = "";

		if (readlinkat(dirfd(directory), entry->d_name, target,
			       sizeof(target) - 1) > 0)
			nr += strstr(target, "/maps") != NULL;
	}
	closedir(directory);
	return nr;
}

/* The pages are present, so most of the time goes into what surrounds the plain call. */
static const char *jump_from_mlock(void)
{
	const size_t len = SIZE_BYTES / 4;
	struct sigaction action = { .sa_handler = jump_back };
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	volatile int round = 0;

	must_hold(addr != MAP_FAILED, "mmap");
	sigaction(SIGALRM, &action, NULL);
	while (round < 400) {
		struct itimerval soon = { .it_value = { 0, 100 + round } };

		round++;
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &soon, NULL);
			while (!mlock(addr, len) && !munlock(addr, len))
				;
			return "a call failed";
		}
	}
	return count_open_lists() ? "a descriptor was left open" : NULL;
}

int main(void)
{
	const char *wrong = jump_from_mlock();

	puts(wrong ? wrong : "ok");
	return wrong != NULL;
}
