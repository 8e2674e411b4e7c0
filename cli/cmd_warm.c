/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask warm: read files into the page cache, many or a large one.
 *
 * `ktask populate` maps one file and makes its pages, also of tmpfs and
 * hugetlbfs; this reads, which takes no memory but the cache's.
 */
#include <stdio.h>

#include "cmd.h"
#include "files.h"
#include "interrupt.h"
#include "say.h"

static const char usage[] =
	"usage: ktask warm [options] PATH...\n\n"
	"Read files into the page cache.\n\n"
	"  --direct          past the page cache instead, which warms what is\n"
	"                    below it: a host's cache, network "
	"storage\n" FILES_USAGE;

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
	struct ktask_result result = KTASK_RESULT_INIT;
	int status = options_parse("warm", specs, true, argc, argv);

	if (status)
		return status;
	if (files.help) {
		fputs(usage, stdout);
		return 0;
	}
	if (optind == argc)
		return say_usage("warm", "a path is missing");
	files.flags = direct ? KTASK_FILE_DIRECT : 0;
	if (files_find(&files, argv + optind, argc - optind, false))
		return 1;
	status = files_run(&files, &result);
	if (interrupt_seen())
		return interrupt_die();
	files_report(&files, &result);
	return status;
}
