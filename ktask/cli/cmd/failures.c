/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files that failed, as JSON: see failures.h.
 */
#include "failures.h"
#include "cli/ui/text.h"

void failures_add(json_t *list, const char *path, uint64_t offset,
		  const char *why)
{
	json_array_append_new(
		list, json_pack("{s:o, s:I, s:s}", "path",
				path ? text_json(path) : json_null(), "offset",
				(json_int_t)offset, "error", why));
}
