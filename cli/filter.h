/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A system call filter that this process was started under, and whether the
 * library can work behind it.
 */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include <stdbool.h>

/**
 * filter_is_harmless - there is a filter, and a job that was tried lived
 *
 * The trial takes a child process and some milliseconds, where there is a
 * filter; without one this is one system call.
 */
bool filter_is_harmless(void);

#endif /* CLI_FILTER_H */
