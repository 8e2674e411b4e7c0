/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An operation on many files: see files.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bar.h"
#include "files.h"
#include "interrupt.h"
#include "progress.h"
#include "say.h"
#include "text.h"
#include "walk.h"

struct ktask_file *files_add(struct files *files)
{
	struct ktask_file *at;

	/* Doubled at each power of two. */
	if (!(files->nr & (files->nr - 1))) {
		size_t room = files->nr ? 2 * files->nr : 1;

		at = realloc(files->at, room * sizeof(*at));
		if (!at) {
			say_error(ENOMEM, "%s: listing files", files->command);
			return NULL;
		}
		files->at = at;
	}
	at = &files->at[files->nr++];
	*at = (struct ktask_file){ .fd = -1,
				   .dst_fd = -1,
				   .len = KTASK_TO_END };
	return at;
}

/* In a folder other things than files are passed over; named, they are told. */
static bool is_wanted(struct files *files, const struct walk_entry *entry,
		      bool folders)
{
	if (entry->type == WALK_FILE)
		return true;
	if (entry->type == WALK_FOLDER && (folders || files->recursive))
		return folders;
	if (strlen(entry->path) > entry->root_len)
		return false;
	files->failed = true;
	say_fail("%s %s: %s", files->doing, entry->path,
		 entry->type == WALK_FOLDER
			 ? "is a folder (--recursive goes through it)"
			 : "not a regular file");
	return false;
}

int files_find(struct files *files, char **paths, int nr, bool folders)
{
	struct walk walk = { .recursive = files->recursive,
			     .command = files->command };

	for (int i = 0; i < nr; i++)
		if (walk_add(&walk, paths[i]))
			return 1;
	files->failed = walk.failed;
	for (size_t i = 0; i < walk.nr; i++) {
		struct ktask_file *file;

		if (!is_wanted(files, &walk.entries[i], folders))
			continue;
		file = files_add(files);
		if (!file)
			return 1;
		file->path = walk.entries[i].path;
		file->nofollow = walk_found(&walk.entries[i]);
	}
	return 0;
}

static void complain(const struct files *files, const struct ktask_file *file)
{
	if (file->fail_offset > file->offset)
		say_error(-file->error, "%s %s at offset %" PRIu64,
			  files->doing, file->path, file->fail_offset);
	else
		say_error(-file->error, "%s %s", files->doing, file->path);
}

int files_run(struct files *files, struct ktask_result *result)
{
	struct ktask_op_args args = { .files = files->at,
				      .nr_files = files->nr,
				      .flags = files->flags };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct bar bar;
	int error;

	bar_init(&bar, files->doing);
	opts.max_threads = files->threads;
	opts.progress_func = progress_bar;
	opts.progress_arg = &bar;
	opts.progress_ms = BAR_REDRAW_MS;
	opts.result = result;
	interrupt_catch();
	error = ktask_op_run(ktask_op_find(files->op), &args, &opts);
	bar_clear(&bar);
	if (interrupt_seen())
		return say_fail("%s: interrupted", files->doing);
	for (size_t i = 0; i < files->nr; i++) {
		if (!files->at[i].error)
			continue;
		files->failed = true;
		complain(files, &files->at[i]);
	}
	/* What no file says, the job as a whole does. */
	if (error && !files->failed)
		return say_error(-error, "%s", files->doing);
	return files->failed;
}

static json_t *errors_json(const struct files *files)
{
	json_t *list = json_array();

	for (size_t i = 0; i < files->nr; i++) {
		const struct ktask_file *file = &files->at[i];

		if (file->error)
			json_array_append_new(
				list,
				json_pack("{s:o, s:I, s:s}", "path",
					  text_json(file->path), "offset",
					  (json_int_t)file->fail_offset,
					  "error", strerror(-file->error)));
	}
	return list;
}

static size_t nr_done(const struct files *files)
{
	size_t nr = 0;

	for (size_t i = 0; i < files->nr; i++)
		nr += !files->at[i].error;
	return nr;
}

void files_report(const struct files *files, const struct ktask_result *result)
{
	char text[PROGRESS_TEXT];
	size_t nr = nr_done(files);
	json_t *object;

	if (!files->json) {
		printf("%zu file%s: %s\n", nr, nr == 1 ? "" : "s",
		       progress_result(text, result, result->units));
		return;
	}
	object = json_pack("{s:I, s:I, s:f, s:f, s:i, s:o}", "files",
			   (json_int_t)nr, "bytes", (json_int_t)result->units,
			   "seconds", result->wall_ns / 1e9, "cpu_seconds",
			   result->cpu_ns / 1e9, "threads",
			   (int)result->threads, "errors", errors_json(files));
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

int files_command(struct files *files, const char *usage, bool folders, int nr,
		  char **paths)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	int status;

	if (files->help) {
		fputs(usage, stdout);
		return 0;
	}
	if (!nr)
		return say_usage(files->command, "a path is missing");
	if (files_find(files, paths, nr, folders))
		return 1;
	status = files_run(files, &result);
	if (interrupt_seen())
		return interrupt_die();
	files_report(files, &result);
	return status;
}
