/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files that results are written to.  A command that works for a long time
 * verifies them before it begins.
 */
#ifndef KTASK_CLI_TARGET_H
#define KTASK_CLI_TARGET_H

/**
 * target_verify - can a file be written at @path?
 *
 * Changes no file and leaves none behind.  Does not open FIFOs and devices:
 * opening these may wait, or mean something to whoever reads them.
 *
 * Return: 0 or -errno.
 */
int target_verify(const char *path);

#endif /* KTASK_CLI_TARGET_H */
