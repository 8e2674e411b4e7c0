/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The files that something went wrong with, for the "errors" of JSON output.
 */
#ifndef KTASK_CLI_FAILURES_H
#define KTASK_CLI_FAILURES_H

#include <stdint.h>

#include <jansson.h>

/** failures_add - one more in @list: @path, from byte @offset on, since @why
 * @path: NULL: all of them */
void failures_add(json_t *list, const char *path, uint64_t offset,
		  const char *why);

#endif /* KTASK_CLI_FAILURES_H */
