/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Description of the machine: see machine.h.  Counts and memory come from
 * hwloc, so that HWLOC_XMLFILE can stand in for a machine one does not have;
 * kernel, huge pages and governor are always those of the running system.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "machine.h"
#include "cli/ui/size.h"
#include "cli/ui/text.h"
#include "util/file.h"

int machine_topology(hwloc_topology_t *topology)
{
	const char *xml = getenv("HWLOC_XMLFILE");

	/* hwloc would show this machine instead, without a word. */
	if (xml && *xml && access(xml, R_OK))
		return -errno;
	if (hwloc_topology_init(topology))
		return -ENOMEM;
	/* Set by us, since with its plugins hwloc forgives what it cannot
	 * read in the variable. */
	if (hwloc_topology_set_flags(*topology,
				     HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
	    (xml && *xml && hwloc_topology_set_xml(*topology, xml)) ||
	    hwloc_topology_load(*topology)) {
		hwloc_topology_destroy(*topology);
		return -EIO;
	}
	return 0;
}

static void first_line(const char *path, char *line, size_t size)
{
	file_text(path, line, size);
	line[strcspn(line, "\n")] = '\0';
}

/* "always [madvise] never" -> "madvise" */
static void read_thp(char *thp, size_t size)
{
	char line[128], *open, *close;

	first_line("/sys/kernel/mm/transparent_hugepage/enabled", line,
		   sizeof(line));
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	thp[0] = '\0';
	if (close)
		snprintf(thp, size, "%.*s", (int)(close - open - 1), open + 1);
}

static void read_cpu(char *cpu, size_t size, hwloc_topology_t topology)
{
	hwloc_obj_t package =
		hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
	const char *model = NULL;

	if (package)
		model = hwloc_obj_get_info_by_name(package, "CPUModel");
	if (!model)
		model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology),
						   "CPUModel");
	snprintf(cpu, size, "%s", model ? model : "unknown CPU");
}

static unsigned count_objects(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	int nr = hwloc_get_nbobjs_by_type(topology, type);

	return nr > 0 ? nr : 0;
}

/* Some kernels count a node's memory short of what /proc/meminfo has. */
static uint64_t read_memory(hwloc_topology_t topology)
{
	uint64_t nodes = hwloc_get_root_obj(topology)->total_memory;
	uint64_t system = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE);

	if (!hwloc_topology_is_thissystem(topology) || system < nodes)
		return nodes;
	return system;
}

void machine_read(struct machine *machine, hwloc_topology_t topology)
{
	struct utsname system;

	memset(machine, 0, sizeof(*machine));
	read_cpu(machine->cpu, sizeof(machine->cpu), topology);
	machine->packages = count_objects(topology, HWLOC_OBJ_PACKAGE);
	machine->cores = count_objects(topology, HWLOC_OBJ_CORE);
	machine->cpus = count_objects(topology, HWLOC_OBJ_PU);
	machine->nodes = count_objects(topology, HWLOC_OBJ_NUMANODE);
	machine->memory_bytes = read_memory(topology);
	machine->this_system = hwloc_topology_is_thissystem(topology);
	if (!uname(&system))
		snprintf(machine->kernel, sizeof(machine->kernel), "%s",
			 system.release);
	read_thp(machine->thp, sizeof(machine->thp));
	first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		   machine->governor, sizeof(machine->governor));
}

static json_t *string_or_null(const char *text)
{
	return text[0] ? text_json(text) : json_null();
}

json_t *machine_json(const struct machine *machine)
{
	return json_pack(
		"{s:o s:i s:i s:i s:i s:I s:o s:o s:o s:s s:b}", "cpu",
		text_json(machine->cpu), "packages", machine->packages, "cores",
		machine->cores, "cpus", machine->cpus, "nodes", machine->nodes,
		"memory_bytes", (json_int_t)machine->memory_bytes, "kernel",
		text_json(machine->kernel), "thp", string_or_null(machine->thp),
		"governor", string_or_null(machine->governor), "version",
		ktask_version(), "this_system", machine->this_system);
}

const char *machine_text(const struct machine *machine, char buf[MACHINE_TEXT])
{
	char memory[SIZE_TEXT];

	snprintf(buf, MACHINE_TEXT,
		 "%s, %u CPU%s, %u node%s, %s, Linux %s, THP %s%s%s",
		 machine->cpu, machine->cpus, plural_suffix(machine->cpus),
		 machine->nodes, plural_suffix(machine->nodes),
		 size_text(memory, machine->memory_bytes), machine->kernel,
		 machine->thp[0] ? machine->thp : "absent",
		 machine->governor[0] ? ", governor " : "", machine->governor);
	return buf;
}
