/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine of a figure.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "machine.h"

static void first_match(const char *path, const char *key, char *value,
			size_t size)
{
	FILE *file = fopen(path, "r");
	char line[512];

	snprintf(value, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " "));
		break;
	}
	if (file)
		fclose(file);
}

json_t *machine_json(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct utsname system;
	char cpu[128];

	first_match("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
	uname(&system);
	return json_pack("{s:s s:i s:I s:s s:s}", "cpu", cpu, "cpus",
			 (int)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
			 (json_int_t)pages * page, "kernel", system.release,
			 "version", ktask_version());
}

void machine_print(void)
{
	struct utsname system;
	char cpu[128];

	first_match("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
	uname(&system);
	printf("%s, %ld CPUs, Linux %s\n", cpu, sysconf(_SC_NPROCESSORS_ONLN),
	       system.release);
}
