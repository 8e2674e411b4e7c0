/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What threads are called: /proc says it, which may be that of another PID
 * namespace, where they have other numbers.
 */
#ifndef UMT_CMD_THREAD_NAMES_H
#define UMT_CMD_THREAD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* names_own_proc - does /proc call threads as we do? */
bool names_own_proc(void);

/*
 * names_read - the name of thread @tid, which is ended by '\0'; as it was where
 * it is not to be known
 */
void names_read(unsigned tid, char *name, size_t size);

#endif /* UMT_CMD_THREAD_NAMES_H */
