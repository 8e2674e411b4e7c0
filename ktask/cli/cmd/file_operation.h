/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An operation on many files, as `ktask warm` and `sync` do it: the
 * options that they share, the run with its bar, the complaints, the report.
 */
#ifndef KTASK_CLI_FILE_OPERATION_H
#define KTASK_CLI_FILE_OPERATION_H

#include <stdbool.h>

#include <jansson.h>

#include <ktask/ops.h>

#include "cli/ui/command_options.h"

struct files {
	const char *command;
	const char *op; /* of the library */
	const char *doing; /* "warming": of the complaints */
	unsigned flags; /* for the operation */

	/* options */
	bool help, recursive, json;
	unsigned threads; /* 0: the engine decides */

	/* what is worked on */
	struct ktask_file *at;
	size_t nr;
	json_t *failures; /* what a message was given of; made by files_find() */
};

/* The entries of an option table that are the same for all. */
/* clang-format off */
#define FILES_OPTIONS(files)                                              \
	{ "help", no_argument, option_flag, &(files)->help },             \
	{ "json", no_argument, option_flag, &(files)->json },             \
	{ "recursive", no_argument, option_flag, &(files)->recursive },   \
	{ "threads", required_argument, option_count, &(files)->threads }
/* clang-format on */

#define FILES_USAGE                                                      \
	"  --json            print one JSON object\n"                    \
	"  --recursive       read the files in directories, too\n"       \
	"  --threads N       use N threads at most (default: see ktask " \
	"topo)\n"                                                        \
	"  --help            print this\n"

/**
 * files_find - make the list of all files behind @paths
 * @directories: they stay in the list; else they are gone through, or refused
 *
 * Return: 0, or 1 after a message: then there is nothing to work on.  The
 * paths live until the process ends.
 */
int files_find(struct files *files, char **paths, int nr, bool directories);

/** files_add - one more, empty, at the end; NULL after a message */
struct ktask_file *files_add(struct files *files);

/**
 * files_run - do it, and say what went wrong with which file
 *
 * Return: 0; 1 after messages; an interrupt ends the process.
 */
int files_run(struct files *files, struct ktask_result *result);

/** files_report - the figures, as a line or as JSON */
void files_report(const struct files *files, const struct ktask_result *result);

/**
 * files_command - help, or all of the above for the operands of a command
 * @directories: as of files_find()
 *
 * Return: the command's exit status.
 */
int files_command(struct files *files, const char *usage, bool directories,
		  int nr, char **paths);

#endif /* KTASK_CLI_FILE_OPERATION_H */
