/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The names of threads, from /proc.  /proc may belong to another PID namespace, in which
 * threads have other numbers.
 */
#ifndef UMT_CMD_THREAD_NAMES_H
#define UMT_CMD_THREAD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* names_own_proc - does /proc have the numbers of this process's PID namespace? */
bool names_own_proc(void);

/*
 * names_read - write the name of thread @tid to @name; leave @name as it is if there is
 * none to read
 */
void names_read(unsigned tid, char *name, size_t size);

#endif /* UMT_CMD_THREAD_NAMES_H */
