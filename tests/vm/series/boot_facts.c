/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is the same after struct pages were initialised: the pages that each zone of
 * each node spans, has, and manages.
 *
 * The kernel's own image lies on node 0 and is not of one size, so that what is
 * managed is not compared there.  Nor is memory of devices (zone Device), which is on the
 * node of the CPU that met the device.
 */
#include <stdio.h>
#include <string.h>

#include "facts.h"

static void tell_zone(int nid, const char *zone, const char *lines)
{
	static const char *const names[] = { "spanned", "present", "managed" };
	char label[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *at;
		long value = -1;

		if (!nid && !strcmp(names[i], "managed"))
			continue;
		snprintf(label, sizeof(label), "        %s", names[i]);
		at = strstr(lines, label);
		if (at)
			sscanf(at + strlen(label), "%ld", &value);
		if (value < 0)
			check_that(false, "zone %s says what is %s", zone,
				   names[i]);
		tell_fact_number(value, "node %d zone %s %s", nid, zone,
				 names[i]);
	}
}

void tell_boot_facts(void)
{
	static char text[65536];
	char *at = text, zone[32];
	int nid, nr = 0;

	read_text("/proc/zoneinfo", text, sizeof(text));
	while ((at = strstr(at, "Node "))) {
		if (sscanf(at, "Node %d, zone %31s", &nid, zone) == 2 &&
		    strcmp(zone, "Device")) {
			tell_zone(nid, zone, at);
			nr++;
		}
		at += strlen("Node ");
	}
	check_that(nr > 0, "zones are listed");
}
