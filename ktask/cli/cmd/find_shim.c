/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finding the preload library: see run.h.
 *
 * The search path is relative to this program.  Where /proc is not mounted, the
 * kernel still passes the path by which the program was started.
 */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "run.h"
#include "cli/ui/message.h"

#define SHIM "libktask-preload.so"

/* Return: 0 or an errno. */
static int find_program(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	const char *started = (const char *)getauxval(AT_EXECFN);
	int error = len < 0 ? errno : 0;
	char *whole;

	path[len < 0 ? 0 : len] = '\0';
	if (!error)
		return 0;
	whole = started ? realpath(started, NULL) : NULL;
	if (!whole)
		return error;
	snprintf(path, size, "%s", whole);
	free(whole);
	return 0;
}

static bool is_beside(const char *program, char *path, size_t size)
{
	static const char *const search_path[] = { "%.*s/" SHIM,
						   "%.*s/../lib/ktask/" SHIM };
	const char *slash = strrchr(program, '/');

	for (size_t i = 0;
	     slash && i < sizeof(search_path) / sizeof(search_path[0]); i++) {
		snprintf(path, size, search_path[i], (int)(slash - program),
			 program);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

static bool is_installed(char *path, size_t size)
{
#ifdef KTASK_LIBDIR
	snprintf(path, size, "%s/%s", KTASK_LIBDIR, SHIM);
	return !access(path, R_OK);
#else
	return false;
#endif
}

char *library_find(void)
{
	char program[PATH_MAX], path[PATH_MAX + 32], *found;
	int error = find_program(program, sizeof(program));

	if ((!error && is_beside(program, path, sizeof(path))) ||
	    is_installed(path, sizeof(path))) {
		found = strdup(path);
		if (!found)
			say_error(ENOMEM, "run: finding %s", SHIM);
		return found;
	}
	if (error)
		say_error(error, "run: finding %s: reading /proc/self/exe",
			  SHIM);
	else
		say_fail("run: finding %s: neither beside this program nor in "
			 "the library directory",
			 SHIM);
	return NULL;
}

static int is_shim(struct dl_phdr_info *object, size_t size, void *unused)
{
	const char *slash = strrchr(object->dlpi_name, '/');

	return slash && !strcmp(slash + 1, SHIM);
}

bool library_is_loaded(void)
{
	return dl_iterate_phdr(is_shim, NULL);
}
