/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Preparations for measuring: how much memory to work on, which machine this is, whether
 * the results can be written.
 */
#include <unistd.h>

#include "bench.h"
#include "plot.h"
#include "cli/ui/message.h"
#include "cli/ui/size.h"
#include "cli/ui/target.h"
#include "util/memory.h"

#define LEAST_DEFAULT_BYTES (64ull << 20)

static uint64_t default_size(uint64_t bytes, uint64_t available)
{
	while (bytes > available / 3 && bytes > LEAST_DEFAULT_BYTES)
		bytes /= 2;
	return bytes;
}

int bench_size(struct bench *bench, const char *command, uint64_t wanted,
	       uint64_t default_bytes)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t need, available = memory_available();
	char text[2][SIZE_TEXT];

	if (!wanted)
		wanted = default_size(default_bytes, available);
	bench->size_bytes = (wanted + page - 1) / page * page;
	need = bench->size_bytes;
	if (need <= available)
		return 0;
	return say_fail("%s: mapping %s: only %s of memory are available",
			command, size_text(text[0], need),
			size_text(text[1], available));
}

int bench_machine(struct bench *bench, const char *command)
{
	hwloc_topology_t topology;
	int error = machine_topology(&topology);

	if (error)
		return say_error(-error, "%s: reading the topology", command);
	machine_read(&bench->machine, topology);
	hwloc_topology_destroy(topology);
	return 0;
}

int bench_verify_targets(const char *json_path, const char *plot_path)
{
	int error = json_path ? target_verify(json_path) : 0;

	if (error)
		return say_error(-error, "writing %s", json_path);
	return plot_path ? plot_verify(plot_path) : 0;
}
