/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What stands around measuring: how much memory to work on, which machine this
 * is, where the JSON goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "cli/ui/interrupt.h"
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

/* Of a FIFO nobody waits for its other end who was told to end, before or
 * meanwhile. */
static FILE *open_output(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd;
	FILE *file;

	interrupt_release();
	fd = open(path, interrupt_seen() ? flags | O_NONBLOCK : flags, 0666);
	if (fd < 0)
		return NULL;
	fcntl(fd, F_SETFL, 0);
	file = fdopen(fd, "w");
	if (!file)
		close(fd);
	return file;
}

int bench_write_json(json_t *object, const char *path)
{
	size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
	FILE *file = stdout;
	int failed;

	if (!object)
		return say_error(ENOMEM, "allocating the JSON object");
	if (path)
		file = open_output(path);
	if (!file) {
		json_decref(object);
		return say_error(errno, "writing %s", path);
	}
	failed = json_dumpf(object, file, flags);
	json_decref(object);
	if (!path) {
		putchar('\n');
		return 0;
	}
	fputc('\n', file);
	if (fclose(file) || failed)
		return say_error(errno, "writing %s", path);
	return 0;
}
