/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask run: start a program with the shim preloaded.
 *
 * Sets the environment that the shim and the library read, and becomes the
 * program: its exit status is the program's own.  What the shim takes over is
 * its affair (preload/); here is only found where it lies.
 *
 * Without effect on static programs, and on programs that gain privileges:
 * the dynamic loader of those ignores a preload given by path.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "children.h"
#include "cmd.h"
#include "filter.h"
#include "options.h"
#include "say.h"
#include "size.h"

#define SHIM "libktask-preload.so"
#define STORES "libktask-stores.so"

/* As env(1) has them. */
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

static const char usage[] =
	"usage: ktask run [options] [--] COMMAND [ARGUMENT...]\n\n"
	"Start COMMAND with its big memory calls done by several threads: "
	"mmap\n"
	"that populates or locks, madvise that populates or discards, mlock,\n"
	"mlockall, munmap, fallocate of huge pages, and giving all memory back "
	"at\nthe end.\n\n"
	"  --threads N       use N threads at most (default: see ktask topo)\n"
	"  --min SIZE        leave calls on less than SIZE alone\n"
	"  --ops LIST        take over only these:\n"
	"                    mmap,madvise,mlock,munmap,fallocate,exit,mbind\n"
	"  --prefault[=wait] have memory that COMMAND maps made present ahead "
	"of "
	"it,\n"
	"                    whether it will use it or not; or before it goes "
	"on\n"
	"  --stores          take over large memset and memcpy as well\n"
	"  --dry-run         take nothing over; say on standard error what "
	"would\n"
	"                    be, call by call\n"
	"  --report[=FILE]   when COMMAND exits, tell what was taken over: on\n"
	"                    standard error, or in FILE\n"
	"  --help            print this\n";

struct settings {
	bool help, dry, stores;
	const char *prefault; /* NULL: not given; a word for the shim */
	unsigned threads; /* 0: not given */
	uint64_t min_bytes; /* 0: not given */
	const char *ops; /* NULL: not given */
	struct option_file report; /* without a path: standard error */
};

static bool op_ok(const char *name, size_t len)
{
	static const char *const names[] = { "mmap",   "madvise",   "mlock",
					     "munmap", "fallocate", "exit",
					     "mbind" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !strncmp(names[i], name, len))
			return true;
	return false;
}

static const char *take_ops(const char *list, void *to)
{
	*(const char **)to = list;
	for (;; list++) {
		size_t len = strcspn(list, ",");

		if (!op_ok(list, len))
			return "not a list of mmap, madvise, mlock, munmap, "
			       "fallocate, exit and mbind";
		list += len;
		if (!*list)
			return NULL;
	}
}

static const char *take_prefault(const char *text, void *to)
{
	if (text && strcmp(text, "wait"))
		return "only wait is known";
	*(const char **)to = text ? "prefault-wait," : "prefault,";
	return NULL;
}

static int parse(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "dry-run", no_argument, option_flag, &set->dry },
		{ "help", no_argument, option_flag, &set->help },
		{ "min", required_argument, option_size, &set->min_bytes },
		{ "ops", required_argument, take_ops, &set->ops },
		{ "prefault", optional_argument, take_prefault,
		  &set->prefault },
		{ "report", optional_argument, option_file, &set->report },
		{ "stores", no_argument, option_flag, &set->stores },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	/* The first word that is no option is COMMAND; its options are its. */
	int status = options_parse("run", specs, false, argc, argv);

	if (status)
		return status;
	if (!set->help && optind == argc)
		return say_usage("run", "a command is missing");
	return 0;
}

/* In a build folder the shim lies beside the command, installed in LIBDIR. */
static bool find_library(const char *name, char *path, size_t size)
{
	static const char *const places[] = { "%.*s/%s", "%.*s/../lib/%s",
					      "%.*s/../lib/ktask/%s" };
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	size_t i;

	exe[len < 0 ? 0 : len] = '\0';
	slash = strrchr(exe, '/');
	for (i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, size, places[i], (int)(slash - exe), exe, name);
		if (!access(path, R_OK))
			return true;
	}
#ifdef KTASK_LIBDIR
	snprintf(path, size, "%s/%s", KTASK_LIBDIR, name);
	return !access(path, R_OK);
#else
	return false;
#endif
}

/* Before what is preloaded already, so that the shim sees the calls first. */
static int add_preload(const char *name)
{
	const char *others = getenv("LD_PRELOAD");
	char library[PATH_MAX + sizeof(SHIM)];
	char *value;
	int error;

	if (!find_library(name, library, sizeof(library)))
		return say_fail("run: finding %s: neither beside this program "
				"nor in the library folder",
				name);
	if (strpbrk(library, ": "))
		return say_fail("run: preloading %s: the loader takes no path "
				"with a colon or a space",
				library);
	if (asprintf(&value, "%s%s%s", library, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return say_error(ENOMEM, "run: setting the environment");
	error = setenv("LD_PRELOAD", value, 1) ? errno : 0;
	free(value);
	return error ? say_error(error, "run: setting the environment") : 0;
}

static int set_preload(const struct settings *set)
{
	int status = set->stores ? add_preload(STORES) : 0;

	return status ? status : add_preload(SHIM);
}

static int set_number(const char *name, uint64_t number)
{
	char text[24];

	if (!number)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, number);
	return setenv(name, text, 1);
}

/* The program may change its folder before it exits: make the path whole. */
static int set_report(const struct settings *set)
{
	char folder[PATH_MAX], *path;
	int status;

	if (!set->report.given)
		return 0;
	if (!set->report.path)
		return setenv("KTASK_RUN_REPORT", "1", 1);
	if (set->report.path[0] == '/')
		return setenv("KTASK_RUN_REPORT", set->report.path, 1);
	if (!getcwd(folder, sizeof(folder)) ||
	    asprintf(&path, "%s/%s", folder, set->report.path) < 0)
		return -1;
	status = setenv("KTASK_RUN_REPORT", path, 1);
	free(path);
	return status;
}

/* The calls of @list, each with a comma, behind what is in @words. */
static void add_calls(char *words, size_t size, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ","), used = strlen(words);

		if (op_ok(list, len))
			snprintf(words + used, size - used, "%.*s,", (int)len,
				 list);
		list += len + (list[len] == ',');
	}
}

/*
 * Which calls, and how.  The shim cannot read a filter that was set before: see
 * filter.h.  What an outer `ktask run` said of that need not hold here.
 */
static int set_ops(const struct settings *set)
{
	const char *outer = getenv("KTASK_RUN_OPS");
	char words[256] = "";

	/* None at all is a choice as well. */
	if (!set->ops && !set->prefault && !set->stores && outer && !*outer)
		return 0;
	if (set->dry)
		strcat(words, "dry,");
	if (set->prefault)
		strcat(words, set->prefault);
	if (set->stores)
		strcat(words, "stores,");
	if (filter_is_harmless())
		strcat(words, "filter-ok,");
	add_calls(words, sizeof(words), set->ops ? set->ops : outer);
	if (!*words)
		return unsetenv("KTASK_RUN_OPS");
	words[strlen(words) - 1] = '\0';
	return setenv("KTASK_RUN_OPS", words, 1);
}

static int set_environment(const struct settings *set)
{
	if (set_number("KTASK_MAX_THREADS", set->threads) ||
	    set_number("KTASK_RUN_MIN", set->min_bytes) || set_ops(set) ||
	    set_report(set))
		return say_error(errno, "run: setting the environment");
	return set_preload(set);
}

int cmd_run(int argc, char **argv)
{
	struct settings set = { 0 };
	int error, status;

	status = parse(&set, argc, argv);
	if (status)
		return status;
	if (set.help) {
		fputs(usage, stdout);
		return 0;
	}
	status = set_environment(&set);
	if (status)
		return status;
	children_as_before();
	execvp(argv[optind], argv + optind);
	error = errno;
	say_error(error, "run: starting %s", argv[optind]);
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
