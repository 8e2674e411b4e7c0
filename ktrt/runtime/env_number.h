/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What counts as a number in the environment.  To the runtime anything else counts as
 * not set; ktrt-info reports it.
 */
#ifndef RUNTIME_ENV_NUMBER_H
#define RUNTIME_ENV_NUMBER_H

#include <stdbool.h>
#include <string.h>

static inline bool env_is_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text);
}

#endif /* RUNTIME_ENV_NUMBER_H */
