/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask copy: copy files, many or a large one, by several threads.
 *
 * Contents and permissions only, as cp(1) does it by default; holes stay holes.
 * A copy that fails is removed, unless it overwrites a file that was there.
 */
#include <errno.h>
#include <stdio.h>

#include "cmd.h"
#include "copy_plan.h"
#include "interrupt.h"
#include "say.h"

static const char usage[] =
	"usage: ktask copy [options] SOURCE... DESTINATION\n\n"
	"Copy files to another file, or into a folder.\n\n"
	"  --direct          past the page cache, as far as the file systems "
	"can\n"
	"  --sync            write the copies to disk before the "
	"end\n" FILES_USAGE;

static int sync_copies(struct files *files)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct files copies = { .command = "copy",
				.op = "sync",
				.doing = "writing to disk" };
	size_t i;

	for (i = 0; i < files->nr; i++) {
		struct ktask_file *file;

		if (files->at[i].error)
			continue;
		file = files_add(&copies);
		if (!file)
			return 1;
		file->path = files->at[i].dst_path;
		file->nofollow = files->at[i].dst_nofollow;
	}
	return files_run(&copies, &result);
}

static int copy(struct copy_plan *plan, bool sync)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct files *files = plan->files;
	int status = files_run(files, &result);

	copy_plan_undo(plan, result.error == -ECANCELED);
	if (result.error != -ECANCELED)
		copy_plan_finish(plan);
	status |= files->failed;
	if (!interrupt_seen() && sync && sync_copies(files))
		status = 1;
	if (interrupt_seen())
		return interrupt_die();
	files_report(files, &result);
	return status;
}

int cmd_copy(int argc, char **argv)
{
	struct files files = { .command = "copy",
			       .op = "copy_file",
			       .doing = "copying",
			       .flags = KTASK_FILE_SPARSE |
					KTASK_FILE_TRUNCATE };
	struct copy_plan plan = { .files = &files };
	bool direct = false, sync = false;
	const struct option_spec specs[] = {
		FILES_OPTIONS(&files),
		{ "direct", no_argument, option_flag, &direct },
		{ "sync", no_argument, option_flag, &sync },
		{ 0 },
	};
	int status = options_parse("copy", specs, true, argc, argv);

	if (status)
		return status;
	if (files.help) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc - optind < 2)
		return say_usage("copy",
				 "a source and a destination are wanted");
	if (direct)
		files.flags |= KTASK_FILE_DIRECT;
	plan.target = argv[argc - 1];
	if (copy_plan_make(&plan, argv + optind, argc - optind - 1))
		return 1;
	return copy(&plan, sync);
}
