/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine that a test really runs on, as the kernel tells it: files of
 * sysfs and control groups, CPUs and nodes.  Reads for itself, so that the
 * library's own reading is tested too.
 */
#ifndef TESTS_VM_USER_SYS_H
#define TESTS_VM_USER_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "ktest.h"

#define SYS_NODES_MAX 16
#define SYS_NODE "/sys/devices/system/node"
#define SYS_CPU "/sys/devices/system/cpu"

struct sys_node {
	int id;
	cpu_set_t cpus;
	unsigned nr_cpus;
	bool memory;
	unsigned distance[SYS_NODES_MAX]; /* by index */
};

/* sys_put - 0 or a negative errno */
__attribute__((format(printf, 2, 3))) static inline int
sys_put(const char *path, const char *format, ...)
{
	char text[256];
	va_list args;
	int fd, error;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return error;
}

/* sys_get - what is in the file, empty if it cannot be read */
static inline const char *sys_get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

/* sys_list - a list of numbers as the kernel writes it */
static inline cpu_set_t sys_list(const char *path)
{
	char text[1024], *end = text;
	cpu_set_t set;

	CPU_ZERO(&set);
	sys_get(path, text, sizeof(text));
	while (*end >= '0' && *end <= '9') {
		unsigned from = (unsigned)strtoul(end, &end, 10), to = from;

		if (*end == '-')
			to = (unsigned)strtoul(end + 1, &end, 10);
		for (; from <= to; from++)
			CPU_SET(from, &set);
		end += *end == ',';
	}
	return set;
}

static inline bool sys_within(const cpu_set_t *part, const cpu_set_t *whole)
{
	cpu_set_t both;

	CPU_AND(&both, part, whole);
	return CPU_COUNT(part) && CPU_EQUAL(&both, part);
}

static inline void sys_read_node(struct sys_node *node, unsigned id,
				 const cpu_set_t *memory)
{
	char path[100], text[200], *end = text;

	node->id = (int)id;
	node->memory = CPU_ISSET(id, memory);
	snprintf(path, sizeof(path), SYS_NODE "/node%u/cpulist", id);
	node->cpus = sys_list(path);
	node->nr_cpus = (unsigned)CPU_COUNT(&node->cpus);
	snprintf(path, sizeof(path), SYS_NODE "/node%u/distance", id);
	sys_get(path, text, sizeof(text));
	for (unsigned i = 0; i < SYS_NODES_MAX; i++)
		node->distance[i] = (unsigned)strtoul(end, &end, 10);
}

/* sys_nodes - Return: how many there are, at most SYS_NODES_MAX */
static inline unsigned sys_nodes(struct sys_node *nodes)
{
	cpu_set_t online = sys_list(SYS_NODE "/online");
	cpu_set_t memory = sys_list(SYS_NODE "/has_memory");
	unsigned nr = 0;

	for (unsigned id = 0; id < 64 && nr < SYS_NODES_MAX; id++)
		if (CPU_ISSET(id, &online))
			sys_read_node(&nodes[nr++], id, &memory);
	return nr;
}

/* sys_bind - the calling thread to the first CPU of @node */
static inline unsigned sys_bind(const struct sys_node *node)
{
	unsigned cpu = 0;
	cpu_set_t one;

	while (!CPU_ISSET(cpu, &node->cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	return cpu;
}

/* sys_work - a chunk's work; threads that sleep would be replaced by compensating helpers */
static inline void sys_work(unsigned us)
{
	uint64_t end_ns = ktest_now_ns() + us * 1000ull;

	while (ktest_now_ns() < end_ns)
		;
}

#endif /* TESTS_VM_USER_SYS_H */
