/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Governor, preference, platform profile and power supply tell whether the
 * machine saves energy; a machine that says nothing does not.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/energy.h"

#define CPUFREQ "/sys/devices/system/cpu/cpufreq/policy"
#define SUPPLY "/sys/class/power_supply/"
#define PROFILE "/sys/firmware/acpi/platform_profile"

static struct tree tree;
static char why[120];

static int make_tree(void **state)
{
	tree_begin(&tree);
	return 0;
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

static bool is_saving(void)
{
	why[0] = '\0';
	return energy_saving(tree.root, why, sizeof(why));
}

static void put_policy(unsigned id, const char *driver, const char *governor,
		       const char *preference)
{
	char path[128];

	snprintf(path, sizeof(path), CPUFREQ "%u/scaling_driver", id);
	tree_put(&tree, path, driver);
	snprintf(path, sizeof(path), CPUFREQ "%u/scaling_governor", id);
	tree_put(&tree, path, governor);
	snprintf(path, sizeof(path), CPUFREQ "%u/energy_performance_preference",
		 id);
	if (preference)
		tree_put(&tree, path, preference);
}

static void put_supply(const char *name, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), SUPPLY "%s/%s", name, file);
	tree_put(&tree, path, text);
}

static void a_system_without_sysfs_does_not(void **state)
{
	assert_false(is_saving());
	put_policy(0, "", "", "");
	put_supply("BAT0", "type", "");
	tree_put(&tree, PROFILE, "");
	assert_false(is_saving());
}

static void powersave_means_the_lowest_frequency(void **state)
{
	put_policy(0, "acpi-cpufreq\n", "powersave\n", NULL);
	assert_true(is_saving());
	assert_non_null(strstr(why, "powersave"));
	put_policy(0, "amd-pstate\n", "powersave\n", NULL);
	assert_true(is_saving());
	put_policy(0, "intel_cpufreq\n", "powersave\n", NULL);
	assert_true(is_saving());
}

static void powersave_is_normal_in_active_mode(void **state)
{
	put_policy(0, "intel_pstate\n", "powersave\n", "balance_performance\n");
	assert_false(is_saving());
	put_policy(0, "amd-pstate-epp\n", "powersave\n", "balance_power\n");
	assert_false(is_saving());
}

static void other_governors_do_not(void **state)
{
	static const char *const governors[] = {
		"performance\n", "schedutil\n", "ondemand\n",  "conservative\n",
		"userspace\n",	 "powersave",	"powersaver\n"
	};

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(governors); i++) {
		put_policy(0, "acpi-cpufreq\n", governors[i], NULL);
		assert_false(is_saving());
	}
}

static void preference_for_power_does(void **state)
{
	put_policy(0, "intel_pstate\n", "powersave\n", "power\n");
	assert_true(is_saving());
	assert_non_null(strstr(why, "preference"));
	put_policy(0, "amd-pstate-epp\n", "powersave\n", "power\n");
	assert_true(is_saving());
}

static void all_of_them_must_agree(void **state)
{
	put_policy(0, "acpi-cpufreq\n", "powersave\n", NULL);
	put_policy(1, "acpi-cpufreq\n", "powersave\n", NULL);
	assert_true(is_saving());
	put_policy(1, "acpi-cpufreq\n", "performance\n", NULL);
	assert_false(is_saving());
}

static void many_policies_are_enough(void **state)
{
	for (unsigned id = 0; id < 130; id++)
		put_policy(id, "acpi-cpufreq\n", "powersave\n", NULL);
	tree_put(&tree, CPUFREQ "x/scaling_governor", "performance\n");
	assert_true(is_saving());
}

static void platform_profile_does(void **state)
{
	tree_put(&tree, PROFILE, "low-power\n");
	assert_true(is_saving());
	assert_non_null(strstr(why, "profile"));
	tree_put(&tree, PROFILE, "balanced\n");
	assert_false(is_saving());
	tree_put(&tree, PROFILE, "performance\n");
	assert_false(is_saving());
}

static void running_on_battery_does(void **state)
{
	put_supply("BAT0", "type", "Battery\n");
	put_supply("BAT0", "status", "Discharging\n");
	assert_true(is_saving());
	assert_non_null(strstr(why, "battery"));
	put_supply("AC", "type", "Mains\n");
	put_supply("AC", "online", "0\n");
	assert_true(is_saving());
	/* It may discharge all the same, at full load. */
	put_supply("AC", "online", "1\n");
	assert_false(is_saving());
	put_supply("AC", "online", "0\n");
	put_supply("ucsi0", "type", "USB\n");
	put_supply("ucsi0", "online", "1\n");
	assert_false(is_saving());
	put_supply("ucsi0", "online", "0\n");
	put_supply("BAT0", "status", "Charging\n");
	assert_false(is_saving());
}

static void preference_between_counts_on_battery_only(void **state)
{
	put_policy(0, "intel_pstate\n", "powersave\n", "balance_power\n");
	put_supply("AC", "type", "Mains\n");
	put_supply("AC", "online", "1\n");
	put_supply("BAT0", "type", "Battery\n");
	put_supply("BAT0", "status", "Discharging\n");
	assert_false(is_saving());
	put_supply("AC", "online", "0\n");
	assert_true(is_saving());
}

static void battery_of_a_mouse_does_not(void **state)
{
	put_supply("hidpp_battery_0", "type", "Battery\n");
	put_supply("hidpp_battery_0", "scope", "Device\n");
	put_supply("hidpp_battery_0", "status", "Discharging\n");
	assert_false(is_saving());
}

static void nothing_stays_open(void **state)
{
	int fds = tree_fds();

	put_policy(0, "acpi-cpufreq\n", "powersave\n", NULL);
	put_supply("AC", "type", "Mains\n");
	put_supply("AC", "online", "1\n");
	is_saving();
	assert_int_equal(tree_fds(), fds);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(a_system_without_sysfs_does_not),
	   T(powersave_means_the_lowest_frequency),
	   T(powersave_is_normal_in_active_mode), T(other_governors_do_not),
	   T(preference_for_power_does), T(all_of_them_must_agree),
	   T(many_policies_are_enough), T(platform_profile_does),
	   T(running_on_battery_does),
	   T(preference_between_counts_on_battery_only),
	   T(battery_of_a_mouse_does_not), T(nothing_stays_open))
