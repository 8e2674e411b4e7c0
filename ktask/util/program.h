/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that is about to be started: will the dynamic loader preload a
 * library into it?
 */
#ifndef KTASK_UTIL_PROGRAM_H
#define KTASK_UTIL_PROGRAM_H

#include <stdbool.h>

/**
 * program_why_not - why no library will be preloaded into a program
 * @name: as for execvp(3)
 *
 * Reads the file that execvp(3) would start, and the interpreter of a
 * script.  Allocates nothing and needs 3 KiB of stack: may be called in a signal
 * handler and in a child of vfork(2).
 *
 * Return: the reason, a static string; NULL where one will be, where the file
 * cannot be started, or where that cannot be found out.
 */
const char *program_why_not(const char *name);

/** program_exists - whether execvp(3) would find an executable file @name */
bool program_exists(const char *name);

/**
 * program_may_start_at - whether execveat(2) may start a file
 * @flags: as for execveat(2)
 *
 * Return: false where there is no such file, none that may be executed, none on that
 * file system, none of a format that the kernel or an entry of binfmt_misc knows, or no
 * interpreter that could open it.  A file that may not be read is taken for a program;
 * so is ELF of any machine, but on x86-64 and arm64.
 */
bool program_may_start_at(int dir, const char *path, int flags);

/**
 * program_may_start - the same for execvp(3), which runs files of unknown format by a
 * shell
 */
bool program_may_start(const char *name);

#endif /* KTASK_UTIL_PROGRAM_H */
