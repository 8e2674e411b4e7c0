/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A setting that is asked for before the shim's constructor makes the copies.  The
 * constructor keeps them, also long ones that would not fit twice, and what another
 * library has put into the environment since does not replace them.  It does not become a
 * setting either if there was no environment.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ktest.h"

#include "preload/policy/settings.c"

/* As long as a path may be, behind a slash. */
#define VALUE_BYTES (PATH_MAX - 96)

static char *long_variable(char *text, const char *name)
{
	size_t len = (size_t)sprintf(text, "%s=/", name);

	memset(text + len, 'x', VALUE_BYTES);
	text[len + VALUE_BYTES] = '\0';
	return text;
}

static void all_are_kept(void **unused)
{
	static char report[PATH_MAX], cache[PATH_MAX], home[PATH_MAX];
	static char other[] = "KTASK_STAT=other";
	char *then[] = { long_variable(home, "HOME"),
			 long_variable(cache, "XDG_CACHE_HOME"),
			 long_variable(report, "KTASK_RUN_REPORT"), NULL };
	char *now[] = { other, then[0], then[1], then[2], NULL };
	char **own = environ;

	environ = then;
	assert_non_null(secure_getenv("HOME"));
	environ = now;
	shim_settings_copy();
	environ = own;
	assert_string_equal(secure_getenv("HOME"), strchr(home, '/'));
	assert_non_null(secure_getenv("XDG_CACHE_HOME"));
	assert_string_equal(secure_getenv("XDG_CACHE_HOME"),
			    strchr(cache, '/'));
	assert_non_null(secure_getenv("KTASK_RUN_REPORT"));
	assert_string_equal(secure_getenv("KTASK_RUN_REPORT"),
			    strchr(report, '/'));
	assert_null(secure_getenv("KTASK_STAT"));
}

static void none_comes_later_if_the_environment_was_emptied(void **unused)
{
	char stat[] = "KTASK_STAT=other";
	char *later[] = { stat, NULL };
	char **own = environ, *value;

	memset(setting_values, 0, sizeof(setting_values));
	pool_used = 0;
	are_copied = false;
	/* As clearenv() leaves it. */
	environ = NULL;
	shim_settings_copy();
	environ = later;
	value = secure_getenv("KTASK_STAT");
	environ = own;
	assert_null(value);
}

KTEST_MAIN(KTEST(all_are_kept),
	   KTEST(none_comes_later_if_the_environment_was_emptied))
