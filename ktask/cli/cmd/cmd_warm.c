/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask warm: read files into the page cache, many or a large one.
 *
 * `ktask populate` maps one file and makes its pages, also of tmpfs and
 * hugetlbfs; this reads, which takes no memory but the cache's.
 */
#include "cmd.h"
#include "file_operation.h"

static const char usage[] = "usage: ktask warm [options] PATH...\n\n"
			    "Read files into the page cache.\n\n"
			    "  --direct          read past the page cache "
			    "(O_DIRECT), to warm only\n"
			    "                    what is below it: the cache "
			    "of a host, or storage\n"
			    "                    on a network\n" FILES_USAGE;

int cmd_warm(int argc, char **argv)
{
	struct files files = { .command = "warm",
			       .op = "warm",
			       .doing = "warming" };
	bool direct = false;
	const struct option_spec specs[] = {
		FILES_OPTIONS(&files),
		{ "direct", no_argument, option_flag, &direct },
		{ 0 },
	};
	int status = options_parse("warm", specs, true, argc, argv);

	if (status)
		return status;
	files.flags = direct ? KTASK_FILE_DIRECT : 0;
	return files_command(&files, usage, false, argc - optind,
			     argv + optind);
}
