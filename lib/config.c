/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The environment: numbers only, garbage counts as not set, and nothing is
 * taken from it in set-user-ID programs (secure_getenv).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/config.h"

static struct config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned env_number(const char *name, unsigned fallback, unsigned max)
{
	const char *text = secure_getenv(name);
	char *end;
	unsigned long value;

	if (!text || *text < '0' || *text > '9')
		return fallback;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end || errno)
		return fallback;
	return value < max ? (unsigned)value : max;
}

static void read_environment(void)
{
	config.max_threads = env_number("KTASK_MAX_THREADS", 0, 65536);
	config.cap_percent = env_number("KTASK_CAP_PERCENT", CONFIG_CAP_PERCENT,
					CONFIG_CAP_PERCENT);
	config.idle_ms = env_number("KTASK_IDLE_MS", CONFIG_IDLE_MS, 3600000);
}

const struct config *config_get(void)
{
	int saved = errno;

	pthread_once(&once, read_environment);
	errno = saved;
	return &config;
}
