/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask run: start a program with the shim preloaded.
 *
 * Sets the environment that the shim and the library read, and becomes the
 * program: its exit status is the program's own.  What is taken over is decided
 * by the shim (preload/).
 *
 * Without effect on static programs, and on programs that gain privileges:
 * the dynamic loader of those ignores a preload given by path.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ui/interrupt.h"
#include "cmd.h"
#include "run.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "util/program.h"
#include "util/run_record.h"
#include "util/word_list.h"

static const char usage_text[] =
	"usage: ktask run [options] [--] COMMAND [ARGUMENT...]\n\n"
	"Start COMMAND with its big memory calls done by several threads: mmap\n"
	"that populates or locks, madvise that populates or discards, mlock,\n"
	"mlockall, munmap, fallocate of huge pages, registering with a device, and\n"
	"giving all memory back at the end.\n\n"
	"  --threads N       use N threads at most (default: see ktask topo)\n"
	"  --min SIZE        leave calls on less than SIZE alone (32M by default)\n"
	"  --ops LIST        take over only these:\n"
	"                    mmap,madvise,mlock,munmap,fallocate,register,exit\n"
	"  --prefault[=wait] have memory that COMMAND maps made present ahead of it,\n"
	"                    whether it will use it or not; or before it goes on\n"
	"                    Left alone: memory whose faults it handles (userfaultfd),\n"
	"                    and new memory while what it has not touched fills half of\n"
	"                    the machine. Wrong for programs that ask what is present\n"
	"                    (mincore)\n"
	"  --ahead=WHAT      memory that COMMAND touches in order is made present before\n"
	"                    it gets there: on (the default without --ops), small\n"
	"                    (never with huge pages that it did not ask for), off\n"
	"  --dry-run         take nothing over; say on standard error what would\n"
	"                    be, call by call\n"
	"  --report[=FILE]   when a process ends, tell what was taken over, and what\n"
	"                    was not and why: on standard error, or in FILE\n"
	"  --help            print this\n\n"
	"Nothing is gained by programs that are linked statically or make system calls\n"
	"without the C library (Go), by set-user-ID programs, by those whose calls and\n"
	"mappings are all smaller than --min, and by those that touch memory at random:\n"
	"see --prefault.\n";

struct settings {
	bool dry;
	const char *prefault; /* NULL: not given; a word for the shim */
	const char *ahead; /* the same */
	unsigned threads; /* 0: not given */
	uint64_t min_bytes; /* 0: not given */
	const char *ops; /* NULL: not given */
	struct option_file report; /* without a path: standard error */
	enum filter_verdict filter; /* that was set before */
	bool told_outside; /* the shim in this process reports to the same place */
};

static bool op_ok(const char *name, size_t len)
{
	static const char *const names[] = { "mmap",   "madvise",   "mlock",
					     "munmap", "fallocate", "register",
					     "exit" };

	return word_index(name, len, names, sizeof(names) / sizeof(names[0])) >=
	       0;
}

static const char *take_ops(const char *list, void *to)
{
	*(const char **)to = list;
	for (;; list++) {
		size_t len = strcspn(list, ",");

		if (!op_ok(list, len))
			return "not a list of mmap, madvise, mlock, munmap, fallocate, register and exit";
		list += len;
		if (!*list)
			return NULL;
	}
}

static const char *take_prefault(const char *text, void *to)
{
	if (text && strcmp(text, "wait"))
		return "the only value is 'wait'";
	*(const char **)to = text ? "prefault-wait," : "prefault,";
	return NULL;
}

static const char *take_ahead(const char *text, void *to)
{
	static const char *const words[][2] = {
		{ "on", "ahead," },
		{ "small", "ahead-small," },
		{ "off", "ahead-off," },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i][0]))
			continue;
		*(const char **)to = words[i][1];
		return NULL;
	}
	return "not one of on, small and off";
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "ahead", required_argument, take_ahead, &set->ahead },
		{ "dry-run", no_argument, option_flag, &set->dry },
		{ "min", required_argument, option_size, &set->min_bytes },
		{ "ops", required_argument, take_ops, &set->ops },
		{ "prefault", optional_argument, take_prefault,
		  &set->prefault },
		{ "report", optional_argument, option_file, &set->report },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	/* The first word that is no option is COMMAND; its options are its. */
	int status = options_parse("run", usage_text, specs, false, argc, argv);

	if (!status && optind == argc)
		return say_usage("run", "a command is missing");
	/* Elsewhere that is standard output. */
	if (!status && set->report.path && !strcmp(set->report.path, "-"))
		return say_usage("run",
				 "--report=-: standard output is left to the "
				 "command; './-' is a file of that name");
	return status;
}

/* Before what is preloaded already, so that the shim sees the calls first. */
static int prepend_preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *value;
	int error;

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

static int set_preload(void)
{
	char *library = library_find();
	int status = library ? prepend_preload(library) : 1;

	free(library);
	return status;
}

static int set_number(const char *name, uint64_t number)
{
	char text[24];

	if (!number)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, number);
	return setenv(name, text, 1);
}

/* The calls of @list, each with a comma, behind what is in @words. */
static void add_calls(char *words, size_t size, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ","), used = strlen(words);

		if (op_ok(list, len))
			snprintf(words + used, size - used, "%.*s,", (int)len,
				 list);
		list = word_list_next(list, len);
	}
}

/* Without an option of its own, an inner run has the setting of the outer one. */
static const char *prefault_word(const struct settings *set, const char *outer)
{
	if (set->prefault)
		return set->prefault;
	if (word_list_has(outer, "prefault-wait"))
		return "prefault-wait,";
	return word_list_has(outer, "prefault") ? "prefault," : "";
}

static const char *ahead_word(const struct settings *set, const char *outer)
{
	static const char *const words[] = { "ahead-off", "ahead-small",
					     "ahead" };
	static const char *const kept[] = { "ahead-off,", "ahead-small,",
					    "ahead," };

	if (set->ahead)
		return set->ahead;
	/* A list of calls means only these. */
	if (set->ops)
		return "";
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (word_list_has(outer, words[i]))
			return kept[i];
	return outer ? "" : "ahead,";
}

/*
 * Set which calls are taken over, and how.  No option undoes --dry-run of an outer
 * `ktask run`.  The shim cannot read a filter that was set before: see run.h.  The verdict
 * of an outer `ktask run` on the filter need not hold here.
 */
static int set_ops(const struct settings *set)
{
	const char *outer = getenv("KTASK_RUN_OPS");
	char words[256] = "";

	/* None at all is a choice as well. */
	if (!set->ops && !set->prefault && !set->ahead && outer && !*outer)
		return 0;
	if (set->dry || word_list_has(outer, "dry"))
		strcat(words, "dry,");
	strcat(words, prefault_word(set, outer));
	strcat(words, ahead_word(set, outer));
	if (set->filter == FILTER_HARMLESS)
		strcat(words, "filter-ok,");
	add_calls(words, sizeof(words), set->ops ? set->ops : outer);
	if (!*words)
		return unsetenv("KTASK_RUN_OPS");
	words[strlen(words) - 1] = '\0';
	return setenv("KTASK_RUN_OPS", words, 1);
}

/* Under another `ktask run` the shim sees our call of exec as any other. */
static int set_report(struct settings *set)
{
	const char *outer = run_report_target();
	char *before = outer ? strdup(outer) : NULL;
	int status = run_report_set(&set->report);

	set->told_outside = !status && before && library_is_loaded() &&
			    !strcmp(before, run_report_target());
	free(before);
	return status;
}

static int set_environment(struct settings *set)
{
	int status;

	if (set_number("KTASK_MAX_THREADS", set->threads) ||
	    set_number("KTASK_RUN_MIN", set->min_bytes) || set_ops(set))
		return say_error(errno, "run: setting the environment");
	status = set_preload();
	return status ? status : set_report(set);
}

/* The shim reports on all programs but these.  Return: it is written. */
static bool report_obstacle(const struct settings *set, const char *command)
{
	const char *why = program_why_not(command);
	bool told = why && set->told_outside;

	if (!why && set->filter == FILTER_HARMFUL)
		why = "it runs behind a system call filter (seccomp) that does "
		      "not let the library work";
	if (why && !told)
		run_report_nothing(command, why);
	return why;
}

/* An outer run watches what reports to the same place. */
static bool needs_watcher(const struct settings *set)
{
	return run_report_target() && set->filter != FILTER_HARMFUL &&
	       !(set->told_outside && getenv(RUN_RECORDS_VARIABLE));
}

static int start_command(const struct settings *set, char **command)
{
	bool told = report_obstacle(set, command[0]);
	int error;

	if (needs_watcher(set))
		run_watch_begin(command[0], told);
	children_as_before();
	execvp(command[0], command);
	error = errno;
	run_watch_cancel();
	say_error(error, "run: starting %s", command[0]);
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

int cmd_run(int argc, char **argv)
{
	struct settings set = { 0 };
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	set.filter = filter_judge();
	status = set_environment(&set);
	return status ? status : start_command(&set, argv + optind);
}
