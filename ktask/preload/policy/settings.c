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
#include <unistd.h>

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

/* Return: the length with the end of the text; 0: it is longer than @most */
static size_t copy_text(char *to, const char *text, size_t most)
{
	for (size_t i = 0; i < most; i++) {
		to[i] = text[i];
		if (!text[i])
			return i + 1;
	}
	return 0;
}

static char *copy_value(const char *text)
{
	const size_t left = sizeof(text_pool) - pool_used;
	char *copy = text_pool + pool_used;
	size_t size = copy_text(copy, text, left < PATH_MAX ? left : PATH_MAX);

	pool_used += size;
	return size ? copy : NULL;
}

/* Return: what is behind "@name="; NULL if it is another variable. */
static const char *value_of(const char *variable, const char *name)
{
	while (*name && *variable == *name) {
		variable++;
		name++;
	}
	return !*name && *variable == '=' ? variable + 1 : NULL;
}

static bool is_same_text(const char *text, const char *other)
{
	while (*text && *text == *other) {
		text++;
		other++;
	}
	return *text == *other;
}

/* As getenv() does, the first one of a name counts. */
static void copy_variable(const char *variable, uint32_t *seen)
{
	for (size_t i = 0; i < NR_NAMES; i++) {
		const char *text = value_of(variable, setting_names[i]);

		if (!text || *seen & 1u << i)
			continue;
		*seen |= 1u << i;
		setting_values[i] = copy_value(text);
	}
}

/*
 * Nothing here is a call of libc that every start of a program would pay the loader for:
 * it looks up each function at its first call.
 */
static void copy_settings(void)
{
	uint32_t seen = 0;

	if (!getauxval(AT_SECURE))
		for (char **variable = environ; variable && *variable;
		     variable++)
			if (**variable == 'K' || **variable == 'X' ||
			    **variable == 'H')
				copy_variable(*variable, &seen);
	copy_text(program_name, program_invocation_short_name, NAME_BYTES - 1);
}

/* By the shim's constructor. */
void shim_settings_copy(void)
{
	/* The pool has room for one copy, and text that was returned must stay. */
	if (!are_copied)
		copy_settings();
	/* Also if a constructor before ours has emptied the environment. */
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
	/* A constructor before ours calls. */
	if (!are_copied) {
		copy_settings();
		/* Before libc has begun there is no environment, so copy again. */
		are_copied = environ;
	}
	for (size_t i = 0; i < NR_NAMES; i++)
		if (is_same_text(setting_names[i], name))
			return setting_values[i];
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}
