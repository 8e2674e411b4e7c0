/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What programs of several cases share whose memory is made ahead: allocating it, and
 * choosing the case.
 */
#ifndef TESTS_PRELOAD_AHEAD_CASES_H
#define TESTS_PRELOAD_AHEAD_CASES_H

#include <dirent.h>
#include <malloc.h>

#include "touches.h"

#define LEN (256 * MIB)

struct ahead_case {
	const char *name;
	void (*run)(const char *how);
};

static inline char *allocate_block(const char *how, size_t len)
{
	void *block = NULL;

	if (!strcmp(how, "malloc"))
		block = malloc(len);
	else if (!strcmp(how, "calloc"))
		block = calloc(len / 8, 8);
	else if (!strcmp(how, "realloc"))
		block = realloc(malloc(100), len);
	else if (!strcmp(how, "aligned_alloc"))
		block = aligned_alloc(4096, len);
	else if (!strcmp(how, "posix_memalign"))
		must_hold(!posix_memalign(&block, 4096, len), how);
	else if (!strcmp(how, "aligned")) /* to what a touch may make */
		must_hold(!posix_memalign(&block, BLOCK, len), how);
	else if (!strcmp(how, "valloc"))
		block = valloc(len);
	else if (!strcmp(how, "pvalloc"))
		block = pvalloc(len);
	else
		block = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must_hold(block && block != MAP_FAILED, how);
	return block;
}

/* Whole pages of a block of LEN. */
static inline char *allocate_pages(const char *how)
{
	return page_start(allocate_block(how, LEN + PAGE_BYTES));
}

static inline unsigned nr_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned nr = 0;

	must_hold(tasks != NULL, "/proc/self/task");
	while (readdir(tasks))
		nr++;
	closedir(tasks);
	return nr - 2;
}

/* A thread of ours by its name: the value of a line of its status; -1: none has that. */
static inline long status_value(const char *thread, const char *line)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	long value = -1;

	must_hold(tasks != NULL, "/proc/self/task");
	while (value < 0 && (task = readdir(tasks))) {
		char path[300], text[128], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 task->d_name);
		file = fopen(path, "r");
		while (file && fgets(text, sizeof(text), file)) {
			if (sscanf(text, "Name: %31s", name) == 1 &&
			    strcmp(name, thread))
				break;
			if (!strncmp(text, line, strlen(line)))
				value = strtol(text + strlen(line), NULL, 10);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return value;
}

static inline long watcher_sleeps(void)
{
	long nr = status_value("ktask-ahead", "voluntary_ctxt_switches:");

	return nr < 0 ? 0 : nr;
}

/* The case that the first argument names, with the second one, and "ok". */
static inline int run_case(const struct ahead_case *cases, size_t nr, int argc,
			   char **argv)
{
	for (size_t i = 0; i < nr; i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(argc > 2 ? argv[2] : "malloc");
		puts("ok");
		return 0;
	}
	return 2;
}

#endif /* TESTS_PRELOAD_AHEAD_CASES_H */
