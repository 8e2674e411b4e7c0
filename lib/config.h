/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the environment says, read once.  It can only narrow: a program's user
 * may ask for less than the defaults, never for more.
 */
#ifndef KTASK_LIB_CONFIG_H
#define KTASK_LIB_CONFIG_H

#include <stdint.h>

#define CONFIG_CAP_PERCENT 80
#define CONFIG_IDLE_MS 5000

struct config {
	unsigned max_threads; /* KTASK_MAX_THREADS; 0: not set */
	unsigned cap_percent; /* KTASK_CAP_PERCENT, at most 80 */
	unsigned idle_ms; /* KTASK_IDLE_MS: idle helpers end after this */
};

const struct config *config_get(void);

#endif /* KTASK_LIB_CONFIG_H */
