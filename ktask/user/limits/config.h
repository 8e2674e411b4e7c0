/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the administrator's file and the environment say, read once.
 *
 * The file is the upper bound and may allow more than the defaults.  The environment can
 * only ask for less.  Owns no policy.  A file that other users could have written is
 * ignored.
 */
#ifndef KTASK_USER_CONFIG_H
#define KTASK_USER_CONFIG_H

#include <sys/types.h>

#define CONFIG_PATH "/etc/ktask.conf"
#define CONFIG_BYTES_MAX 65536
#define CONFIG_THREADS_MAX 65536
#define CONFIG_CAP_PERCENT 80
#define CONFIG_IDLE_MS 5000

/* The stricter, the higher. */
enum config_energy {
	CONFIG_ENERGY_ALWAYS, /* helpers whatever the energy costs */
	CONFIG_ENERGY_AUTO, /* none while the machine saves energy */
	CONFIG_ENERGY_NEVER, /* none */
};

/* What `ktask run` makes present ahead of touches; the stricter, the higher. */
enum config_ahead {
	CONFIG_AHEAD_ON,
	CONFIG_AHEAD_SMALL, /* with no huge pages that nobody asked for */
	CONFIG_AHEAD_OFF,
};

/* What the file says; -1: nothing. */
struct config_file {
	int cap_percent;
	int node_cap_percent;
	int max_threads;
	int energy; /* enum config_energy */
	const char *refused; /* why it was not read; NULL: read, or not there */
	int ahead; /* enum config_ahead */
};

struct config {
	unsigned max_threads; /* 0: not set */
	unsigned cap_percent;
	unsigned node_cap_percent;
	enum config_energy energy;
	enum config_ahead ahead; /* the shim narrows it by what it is told */
	unsigned idle_ms; /* KTASK_IDLE_MS: idle helpers end after this */

	/* Where that came from, for people. */
	unsigned env_max_threads; /* KTASK_MAX_THREADS; 0: not set */
	struct config_file file;
};

const struct config *config_get(void);

/* config_read - read the file at @path, which must belong to @owner */
void config_read(const char *path, uid_t owner, struct config_file *file);

/* config_make - the file's values narrowed by the environment's */
void config_make(struct config *config, const struct config_file *file);

/* As the file writes them. */
const char *config_energy_name(enum config_energy energy);
const char *config_ahead_name(enum config_ahead ahead);

#endif /* KTASK_USER_CONFIG_H */
