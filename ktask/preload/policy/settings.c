/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The settings of this process: copies of its environment variables and of its
 * name, made when the shim is loaded.
 *
 * The program may change or overwrite its environment at any time.  Servers write their
 * process title over it: a pointer into it would then name a file that nobody asked for.
 * The library inside the shim reads its variables at its first job.  So it gets the
 * copies as well: secure_getenv() below hides libc's from it.
 *
 * A value that is longer than any path counts as not set.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/shim.h"
#include "util/large_static.h"

#define NAME_BYTES 64
#define POOL_BYTES (4 * PATH_MAX)

static const char *const setting_names[] = {
	"KTASK_RUN_REPORT",
	"KTASK_RUN_OPS",
	"KTASK_RUN_MIN",
	"KTASK_MAX_THREADS",
	"KTASK_ENERGY",
	"KTASK_CAP_PERCENT",
	"KTASK_IDLE_MS",
	"KTASK_ENGINE",
	"KTASK_STAT",
	"KTASK_RUN_RECORDS",
	"KTASK_OVERLOAD",
	"XDG_CACHE_HOME",
	"HOME",
};

#define NR_NAMES (sizeof(setting_names) / sizeof(setting_names[0]))

static char *setting_values[NR_NAMES];
static char text_pool[POOL_BYTES] LARGE_STATIC_BEGUN;
static size_t pool_used;
static char program_name[NAME_BYTES];
static bool are_copied;

static char *copy_value(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = text_pool + pool_used;

	if (size > PATH_MAX || size > sizeof(text_pool) - pool_used)
		return NULL;
	memcpy(copy, text, size);
	pool_used += size;
	return copy;
}

void shim_settings_copy(void)
{
	bool privileged = getauxval(AT_SECURE);

	for (size_t i = 0; i < NR_NAMES; i++) {
		const char *text = privileged ? NULL : getenv(setting_names[i]);

		setting_values[i] = text ? copy_value(text) : NULL;
	}
	strncpy(program_name, program_invocation_short_name, NAME_BYTES - 1);
	are_copied = true;
}

const char *shim_program_name(void)
{
	return program_name;
}

/*
 * Like libc's, but reads the environment that the process began with.  The linker binds
 * the calls of the library inside the shim to this one.
 */
__attribute__((visibility("hidden"))) char *secure_getenv(const char *name)
{
	for (size_t i = 0; are_copied && i < NR_NAMES; i++)
		if (!strcmp(setting_names[i], name))
			return setting_values[i];
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}
