/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The entries of binfmt_misc, by which the kernel starts files of formats that it does not
 * know itself.
 */
#ifndef KTASK_UTIL_BINFMT_MISC_H
#define KTASK_UTIL_BINFMT_MISC_H

#include <stdbool.h>
#include <stddef.h>

/* As many bytes of a file as the kernel looks at. */
#define BINFMT_HEAD_BYTES 256

/**
 * binfmt_misc_matches - whether an entry that is enabled starts a file
 * @head: the file's first BINFMT_HEAD_BYTES, with zeros behind its end
 * @path: by which it is started; its extension may count.  Not in @interpreter.
 * @interpreter: set to the path of the entry's program; to "" where that need not be
 * found (flag F), or is longer than @size
 *
 * Allocates nothing and needs 1 KiB of stack.  Where binfmt_misc is not mounted nothing
 * matches, though the kernel may have entries.
 */
bool binfmt_misc_matches(const char *head, const char *path, char *interpreter,
			 size_t size);

#endif /* KTASK_UTIL_BINFMT_MISC_H */
