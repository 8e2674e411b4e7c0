/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much memory this process may use without harm.
 */
#ifndef KTASK_CLI_MEMORY_H
#define KTASK_CLI_MEMORY_H

#include <stdint.h>

/**
 * memory_available - bytes that can be had without swapping or an OOM kill
 *
 * The least of MemAvailable and what the memory cgroups (v2) around this
 * process leave.  UINT64_MAX where nothing is known.
 */
uint64_t memory_available(void);

#endif /* KTASK_CLI_MEMORY_H */
