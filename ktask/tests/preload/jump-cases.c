/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A handler that leaves a call by siglongjmp() again and again: no descriptor of the shim may
 * stay open, and the thread can be cancelled as before.  The first argument names the call.
 * Prints "ok" or what went wrong; 77: the call is not allowed. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
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
			nr += strstr(target, "/maps") ||
			      strstr(target, "/pagemap");
	}
	closedir(directory);
	return nr;
}

static char *map_pages(size_t len, int flags)
{
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	must_hold(addr != MAP_FAILED, "mmap");
	return addr;
}

#define LEN (SIZE_BYTES / 4)

static char *present;

/* The pages are present, so most of the time goes into what surrounds the plain call. */
static bool lock_pages(void)
{
	return !mlock(present, LEN) && !munlock(present, LEN);
}

static bool lock_all(void)
{
	return !mlockall(MCL_CURRENT) && !munlockall();
}

/* A handler that runs between the two calls leaves a mapping behind. */
static bool unmap_pages(void)
{
	return !munmap(map_pages(LEN, MAP_NORESERVE), LEN);
}

static const char *jump_from(bool (*call)(void))
{
	struct sigaction action = { .sa_handler = jump_back };
	volatile int round = 0;
	int cancel_state;

	sigaction(SIGALRM, &action, NULL);
	while (round < 400) {
		struct itimerval soon = { .it_value = { 0, 100 + round } };

		round++;
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &soon, NULL);
			while (call())
				;
			return "a call failed";
		}
	}
	if (pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state) ||
	    cancel_state != PTHREAD_CANCEL_ENABLE)
		return "the thread cannot be cancelled any more";
	return count_open_lists() ? "a descriptor was left open" : NULL;
}

static const struct {
	const char *name;
	bool (*call)(void);
} all_calls[] = {
	{ "mlock", lock_pages },
	{ "mlockall", lock_all },
	{ "munmap", unmap_pages },
};

int main(int argc, char **argv)
{
	const char *wrong = "no such call";

	present = map_pages(LEN, MAP_POPULATE);
	for (size_t i = 0; i < sizeof(all_calls) / sizeof(*all_calls); i++) {
		if (argc < 2 || strcmp(argv[1], all_calls[i].name))
			continue;
		if (!all_calls[i].call())
			return 77;
		wrong = jump_from(all_calls[i].call);
	}
	puts(wrong ? wrong : "ok");
	return wrong != NULL;
}
