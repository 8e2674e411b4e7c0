/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the administrator allows is the upper bound; the environment may ask for
 * less and never for more.
 */
#include "ktest.h"

#include "user/limits/config.h"

static const struct config_file nothing = { -1, -1, -1, -1, NULL, -1 };
static struct config config;

static int clear_environment(void **state)
{
	unsetenv("KTASK_CAP_PERCENT");
	unsetenv("KTASK_MAX_THREADS");
	unsetenv("KTASK_ENERGY");
	unsetenv("KTASK_IDLE_MS");
	return 0;
}

static void defaults_hold_without_either(void **state)
{
	config_make(&config, &nothing);
	assert_int_equal(config.cap_percent, 80);
	assert_int_equal(config.node_cap_percent, 80);
	assert_int_equal(config.max_threads, 0);
	assert_int_equal(config.energy, CONFIG_ENERGY_AUTO);
	assert_int_equal(config.idle_ms, CONFIG_IDLE_MS);
	assert_int_equal(config.ahead, CONFIG_AHEAD_ON);
}

static void the_file_may_exceed_defaults(void **state)
{
	struct config_file file = {
		100, 95, 200, CONFIG_ENERGY_ALWAYS, NULL, -1
	};

	config_make(&config, &file);
	assert_int_equal(config.cap_percent, 100);
	assert_int_equal(config.node_cap_percent, 95);
	assert_int_equal(config.max_threads, 200);
	assert_int_equal(config.energy, CONFIG_ENERGY_ALWAYS);
}

static void less_is_granted(void **state)
{
	struct config_file file = { 60, 70, 8, -1, NULL, -1 };

	setenv("KTASK_CAP_PERCENT", "65", 1);
	setenv("KTASK_MAX_THREADS", "4", 1);
	config_make(&config, &file);
	assert_int_equal(config.cap_percent, 60);
	assert_int_equal(config.node_cap_percent, 65);
	assert_int_equal(config.max_threads, 4);
	assert_int_equal(config.env_max_threads, 4);
	config_make(&config, &nothing);
	assert_int_equal(config.cap_percent, 65);
	assert_int_equal(config.max_threads, 4);
	setenv("KTASK_CAP_PERCENT", "0", 1);
	config_make(&config, &file);
	assert_int_equal(config.cap_percent, 0);
}

static void more_is_not(void **state)
{
	struct config_file file = { 60, 70, 8, -1, NULL, -1 };

	setenv("KTASK_CAP_PERCENT", "100", 1);
	setenv("KTASK_MAX_THREADS", "99999999999999999999", 1);
	config_make(&config, &file);
	assert_int_equal(config.cap_percent, 60);
	assert_int_equal(config.node_cap_percent, 70);
	assert_int_equal(config.max_threads, 8);
	config_make(&config, &nothing);
	assert_int_equal(config.cap_percent, 80);
}

static void garbage_is_not_set(void **state)
{
	static const char *const bad[] = {
		"", "-1", "5x", " 5", "0x5", "five"
	};

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++) {
		setenv("KTASK_CAP_PERCENT", bad[i], 1);
		setenv("KTASK_MAX_THREADS", bad[i], 1);
		setenv("KTASK_ENERGY", bad[i], 1);
		setenv("KTASK_IDLE_MS", bad[i], 1);
		config_make(&config, &nothing);
		assert_int_equal(config.cap_percent, 80);
		assert_int_equal(config.max_threads, 0);
		assert_int_equal(config.energy, CONFIG_ENERGY_AUTO);
		assert_int_equal(config.idle_ms, CONFIG_IDLE_MS);
	}
	setenv("KTASK_MAX_THREADS", "0", 1);
	config_make(&config, &nothing);
	assert_int_equal(config.max_threads, 0);
}

static enum config_energy read_energy(int in_file, const char *in_env)
{
	struct config_file file = nothing;

	file.energy = in_file;
	setenv("KTASK_ENERGY", in_env, 1);
	config_make(&config, &file);
	return config.energy;
}

static void the_stricter_energy_policy_holds(void **state)
{
	assert_int_equal(read_energy(CONFIG_ENERGY_ALWAYS, "auto"),
			 CONFIG_ENERGY_AUTO);
	assert_int_equal(read_energy(CONFIG_ENERGY_ALWAYS, "never"),
			 CONFIG_ENERGY_NEVER);
	assert_int_equal(read_energy(CONFIG_ENERGY_AUTO, "never"),
			 CONFIG_ENERGY_NEVER);
	assert_int_equal(read_energy(CONFIG_ENERGY_AUTO, "always"),
			 CONFIG_ENERGY_AUTO);
	assert_int_equal(read_energy(CONFIG_ENERGY_NEVER, "always"),
			 CONFIG_ENERGY_NEVER);
	assert_int_equal(read_energy(-1, "always"), CONFIG_ENERGY_AUTO);
	assert_int_equal(read_energy(-1, "never"), CONFIG_ENERGY_NEVER);
}

#define T(name)                                                  \
	cmocka_unit_test_setup_teardown(name, clear_environment, \
					clear_environment)

KTEST_MAIN(T(defaults_hold_without_either), T(the_file_may_exceed_defaults),
	   T(less_is_granted), T(more_is_not), T(garbage_is_not_set),
	   T(the_stricter_energy_policy_holds))
