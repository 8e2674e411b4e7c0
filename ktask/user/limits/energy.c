/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Energy: cpufreq, the platform profile, the power supply.
 *
 * Measured: 11 us if there is none of them, 140 us with 256 frequency policies.  Reading
 * the state of a battery may take the firmware milliseconds.  If a mains supply is found
 * first, that is not needed; REFRESH_PART bounds it.
 *
 * Locking, for this_machine: the thread that moves due_ns on by compare-and-swap
 * refreshes; the others use what was found before.
 *	A: written by that thread, read by any: kt_load() and kt_store()
 */
#include <stdio.h>
#include <string.h>

#include "core/deps.h"
#include "user/limits/config.h"
#include "user/limits/energy.h"
#include "util/directory_names.h"
#include "util/file.h"
#include "util/scoped.h"

#define WORD 64
#define PATH_BYTES 512
#define POLICIES_MAX 1024
/* Read, of all policies. */
#define POLICIES_SAMPLED 8
/* Refreshing may take this part of the time.  One that lasted long, because the
 * thread was stopped, puts off the next by no more than this. */
#define REFRESH_PART 64
#define REFRESH_MOST_NS 60000000000ull

/* The one line of a file; "" if there is none. */
static void read_word(char word[WORD], const char *dir, const char *name)
{
	char path[PATH_BYTES];
	int len;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	len = file_text(path, word, WORD);
	if (len <= 0 || word[len - 1] != '\n')
		word[0] = '\0';
	else
		word[len - 1] = '\0';
}

static bool file_says(const char *dir, const char *name, const char *what)
{
	char word[WORD];

	read_word(word, dir, name);
	return !strcmp(word, what);
}

/* ---- CPU frequency ---- */

/* In these drivers' active mode "powersave" is how they always work; what
 * they shall save is in the preference. */
static bool powersave_is_normal(const char *driver)
{
	return !strcmp(driver, "intel_pstate") ||
	       !strcmp(driver, "amd-pstate-epp");
}

static bool policy_saves(const char *dir, char *why, size_t size)
{
	char driver[WORD];

	if (file_says(dir, "energy_performance_preference", "power")) {
		snprintf(why, size,
			 "the CPUs' energy performance preference is power");
		return true;
	}
	if (!file_says(dir, "scaling_governor", "powersave"))
		return false;
	read_word(driver, dir, "scaling_driver");
	if (powersave_is_normal(driver))
		return false;
	snprintf(why, size, "the CPUs' governor is powersave (%s)", driver);
	return true;
}

static unsigned list_policies(const char *root, uint16_t ids[POLICIES_MAX])
{
	char path[PATH_BYTES];
	struct directory_names names;
	const char *name;
	unsigned nr = 0;
	uint64_t id;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpufreq", root);
	directory_names_begin(&names, path);
	while (nr < POLICIES_MAX && (name = directory_names_next(&names)))
		if (!strncmp(name, "policy", 6) && text_number(name + 6, &id) &&
		    id <= UINT16_MAX)
			ids[nr++] = (uint16_t)id;
	directory_names_end(&names);
	return nr;
}

/* All policies that are read must agree: one slow core does not mean that the
 * machine saves energy. */
static bool cpus_save(const char *root, char *why, size_t size)
{
	uint16_t ids[POLICIES_MAX];
	unsigned nr = list_policies(root, ids);
	unsigned step = (nr + POLICIES_SAMPLED - 1) / POLICIES_SAMPLED;
	char dir[PATH_BYTES];

	for (unsigned i = 0; i < nr; i += step) {
		snprintf(dir, sizeof(dir),
			 "%s/sys/devices/system/cpu/cpufreq/policy%u", root,
			 ids[i]);
		if (!policy_saves(dir, why, size))
			return false;
	}
	return nr;
}

/* ---- power supply ---- */

enum supply { SUPPLY_OTHER, SUPPLY_MAINS, SUPPLY_DISCHARGES };

static enum supply read_supply(const char *dir)
{
	char type[WORD];

	read_word(type, dir, "type");
	if (!strcmp(type, "Mains") || !strncmp(type, "USB", 3))
		return file_says(dir, "online", "1") ? SUPPLY_MAINS
						     : SUPPLY_OTHER;
	/* The battery of a mouse is none of the machine's. */
	if (strcmp(type, "Battery") || file_says(dir, "scope", "Device") ||
	    !file_says(dir, "status", "Discharging"))
		return SUPPLY_OTHER;
	return SUPPLY_DISCHARGES;
}

static bool on_battery(const char *root)
{
	char path[PATH_BYTES], supply[PATH_BYTES];
	bool battery = false, mains = false;
	struct directory_names names;
	const char *name;

	snprintf(path, sizeof(path), "%s/sys/class/power_supply", root);
	directory_names_begin(&names, path);
	while (!mains && (name = directory_names_next(&names))) {
		enum supply kind;

		if (name[0] == '.' || snprintf(supply, sizeof(supply), "%s/%s",
					       path, name) >= PATH_BYTES)
			continue;
		kind = read_supply(supply);
		mains = kind == SUPPLY_MAINS;
		battery = battery || kind == SUPPLY_DISCHARGES;
	}
	directory_names_end(&names);
	return battery && !mains;
}

/* ---- all of it ---- */

bool energy_saving(const char *root, char *why, size_t size)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/sys/firmware/acpi", root);
	if (file_says(path, "platform_profile", "low-power")) {
		snprintf(why, size, "the platform profile is low-power");
		return true;
	}
	if (on_battery(root)) {
		snprintf(why, size, "the machine runs on its battery");
		return true;
	}
	return cpus_save(root, why, size);
}

static struct {
	uint64_t due_ns; /* A */
	uint32_t saving; /* A */
} this_machine;

static void refresh_saving(uint64_t now_ns)
{
	uint64_t due_ns = kt_load(&this_machine.due_ns);
	char why[WORD * 2];
	keep_errno();
	uint64_t cost_ns;

	if (now_ns < due_ns ||
	    !kt_cas(&this_machine.due_ns, &due_ns, now_ns + ENERGY_REFRESH_NS))
		return;
	kt_store(&this_machine.saving,
		 energy_saving(file_root, why, sizeof(why)));
	cost_ns = kt_now_ns() - now_ns;
	if (cost_ns > ENERGY_REFRESH_NS / REFRESH_PART)
		kt_store(&this_machine.due_ns,
			 now_ns + KT_MIN(cost_ns * REFRESH_PART,
					 REFRESH_MOST_NS));
}

unsigned energy_threads(uint64_t now_ns)
{
	enum config_energy policy = config_get()->energy;

	if (policy == CONFIG_ENERGY_AUTO &&
	    now_ns >= kt_load(&this_machine.due_ns))
		refresh_saving(now_ns ? now_ns : kt_now_ns());
	if (policy == CONFIG_ENERGY_NEVER ||
	    (policy == CONFIG_ENERGY_AUTO && kt_load(&this_machine.saving)))
		return 1;
	return ENERGY_NO_LIMIT;
}

unsigned energy_explain(char *why, size_t size)
{
	enum config_energy policy = config_get()->energy;

	if (policy == CONFIG_ENERGY_ALWAYS) {
		snprintf(why, size,
			 "always: helpers whatever the energy costs");
		return ENERGY_NO_LIMIT;
	}
	if (policy == CONFIG_ENERGY_NEVER) {
		snprintf(why, size, "never: no helpers, to save energy");
		return 1;
	}
	if (energy_saving(file_root, why, size))
		return 1;
	snprintf(why, size, "auto: nothing says that energy is to be saved");
	return ENERGY_NO_LIMIT;
}
