/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask sync: write what is dirty of files to disk, several at a time.
 *
 * sync(1) writes one file after another, each with a journal entry of its own,
 * or everything that all programs have written.
 */
#include "cmd.h"
#include "files.h"

static const char usage[] =
	"usage: ktask sync [options] PATH...\n\n"
	"Write what is dirty of files, and of folders themselves, to disk.\n\n"
	"  --data            as fdatasync(2): without times of "
	"change\n" FILES_USAGE;

int cmd_sync(int argc, char **argv)
{
	struct files files = { .command = "sync",
			       .op = "sync",
			       .doing = "writing" };
	bool data = false;
	const struct option_spec specs[] = {
		FILES_OPTIONS(&files),
		{ "data", no_argument, option_flag, &data },
		{ 0 },
	};
	int status = options_parse("sync", specs, true, argc, argv);

	if (status)
		return status;
	files.flags = data ? KTASK_SYNC_DATA : 0;
	return files_command(&files, usage, true, argc - optind, argv + optind);
}
