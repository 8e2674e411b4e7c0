/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that touch memory in order on a bad day: with little memory.
 * Each checks its own contents and ends with "ok", or tells what it found.
 */
#include <signal.h>
#include <sys/wait.h>

#include "touches.h"

static char *map_pages(size_t len)
{
	char *base = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(base != MAP_FAILED, "mmap");
	return base;
}

/* In order, with time for the watcher to begin a window after each block. */
static void fill_slowly(char *base, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += BLOCK) {
		fill_pages(base, at, to - at < BLOCK ? to : at + BLOCK);
		sleep_ms(5);
	}
}

/* ---- little memory ---- */

/* Touched of a mapping that is larger, so that what is made ahead may be too much. */
#define FILLED (96 * MIB)
#define MAPPED (128 * MIB)

/* @how: "waits" for what is made ahead, or goes on without. */
static char *fill_most(const char *how)
{
	char *base = map_pages(MAPPED);
	size_t at = 0;

	if (!strcmp(how, "waits"))
		at = touch_until_helped(base, FILLED);
	fill_slowly(base, at, FILLED);
	return base;
}

static void fills(const char *how)
{
	check_pages(fill_most(how), 0, FILLED);
}

/* A mapping after the other, which was not filled to its end. */
static void fills_two(const char *how)
{
	char *first = fill_most(how), *second = map_pages(MAPPED / 2);

	fill_slowly(second, 0, MAPPED / 2);
	check_pages(first, 0, FILLED);
	check_pages(second, 0, MAPPED / 2);
}

/* The child copies what was touched, and goes on by itself. */
static void fills_and_forks(const char *how)
{
	char *base = map_pages(MAPPED);
	size_t at = 0;
	int status;
	pid_t child;

	if (!strcmp(how, "waits"))
		at = touch_until_helped(base, FILLED / 2);
	fill_slowly(base, at, FILLED / 2);
	child = fork();
	must(child >= 0, "fork");
	if (!child) {
		fill_slowly(base, 0, FILLED);
		check_pages(base, 0, FILLED);
		_exit(7);
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFSIGNALED(status))
		kill(getpid(), WTERMSIG(status));
	must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
	fill_slowly(base, FILLED / 2, FILLED);
	check_pages(base, 0, FILLED);
}

static const struct {
	const char *name;
	void (*run)(const char *how);
} cases[] = {
	{ "fills", fills },
	{ "fills-two", fills_two },
	{ "fills-and-forks", fills_and_forks },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(argc > 2 ? argv[2] : "");
		puts("ok");
		return 0;
	}
	return 2;
}
