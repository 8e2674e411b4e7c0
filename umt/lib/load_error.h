/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Why the eBPF program cannot be loaded, in one line for people. */
#ifndef UMT_LIB_LOAD_ERROR_H
#define UMT_LIB_LOAD_ERROR_H

#include <stddef.h>

/* why_not - "@what: error (what it may be)"; returns @error */
int why_not(int error, const char *what, char *why, size_t size);

/* why_refused - the same when loading failed: looks for what is missing */
int why_refused(int error, char *why, size_t size);

#endif /* UMT_LIB_LOAD_ERROR_H */
