/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUs are really unplugged and plugged in a loop, all of a node's among them,
 * and a node's memory is taken away and given back, while jobs run: each unit
 * is done once, jobs that name a node which is gone are done all the same, and
 * afterwards the library counts the CPUs there are.
 */
#include "sys.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <ktask/ktask.h>
#include <ktask/ops.h>

#define UNITS 600
#define LOOP_NS 4000000000ull
#define SECONDS 30

static struct sys_node nodes[SYS_NODES_MAX];
static unsigned nr_nodes;
static cpu_set_t all;

static struct {
	uint32_t stop, nr_moves, nr_refused;
	uint8_t done[SYS_NODES_MAX * UNITS];
} now;

static int switch_cpu(unsigned cpu, bool online)
{
	char path[100];

	snprintf(path, sizeof(path), SYS_CPU "/cpu%u/online", cpu);
	return sys_put(path, "%d", online);
}

static int read_machine(void **state)
{
	all = sys_list(SYS_CPU "/online");
	nr_nodes = sys_nodes(nodes);
	memset(&now, 0, sizeof(now));
	return 0;
}

static int restore_cpus(void **state)
{
	for (unsigned cpu = 1; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			switch_cpu(cpu, true);
	return 0;
}

static int count_chunk(void *start, void *end, void *arg)
{
	for (size_t i = (size_t)start - 1; i < (size_t)end - 1; i++)
		__atomic_add_fetch(&now.done[i], 1, __ATOMIC_RELAXED);
	usleep(200);
	return 0;
}

/* A range for each node that there was at first. */
static void run_job(void)
{
	struct ktask_node ranges[SYS_NODES_MAX];
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	memset(now.done, 0, sizeof(now.done));
	ktask_ctl_set_chunk_us(&ctl, 1);
	for (unsigned i = 0; i < nr_nodes; i++) {
		ranges[i].start = (void *)(1 + (size_t)i * UNITS);
		ranges[i].task_size = UNITS;
		ranges[i].nid = nodes[i].id;
	}
	assert_int_equal(ktask_run_numa(ranges, nr_nodes, &ctl), 0);
	for (size_t i = 0; i < (size_t)nr_nodes * UNITS; i++)
		assert_int_equal(now.done[i], 1);
}

static unsigned cpus_counted(void)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, "cpus"))
			return limits[i].threads;
	return 0;
}

static void assert_cpus_counted(unsigned nr)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	while (cpus_counted() != nr && ktest_now_ns() < end_ns)
		usleep(50000);
	assert_int_equal(cpus_counted(), nr);
}

/* ---- CPUs ---- */

static void *move_cpus(void *arg)
{
	while (!__atomic_load_n(&now.stop, __ATOMIC_RELAXED))
		for (unsigned cpu = 1; cpu < CPU_SETSIZE; cpu++) {
			if (!CPU_ISSET(cpu, &all))
				continue;
			now.nr_refused += switch_cpu(cpu, false) != 0;
			usleep(5000);
			switch_cpu(cpu, true);
			now.nr_moves++;
		}
	return NULL;
}

static void cpus_in_a_loop(void **state)
{
	uint64_t end_ns = ktest_now_ns() + LOOP_NS;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, move_cpus, NULL), 0);
	while (ktest_now_ns() < end_ns)
		run_job();
	__atomic_store_n(&now.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("# %u moves, %u refused\n", now.nr_moves, now.nr_refused);
	assert_true(now.nr_moves > now.nr_refused);
	assert_cpus_counted((unsigned)CPU_COUNT(&all));
	run_job();
}

static void all_but_one(void **state)
{
	restore_cpus(NULL);
	assert_cpus_counted((unsigned)CPU_COUNT(&all));
	run_job();
	for (unsigned cpu = 1; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			assert_int_equal(switch_cpu(cpu, false), 0);
	run_job();
	assert_cpus_counted(1);
	run_job();
	restore_cpus(NULL);
	run_job();
	assert_cpus_counted((unsigned)CPU_COUNT(&all));
	run_job();
}

/* ---- nodes ---- */

static void *take_node(void *arg)
{
	const struct sys_node *node = arg;

	usleep(20000);
	for (unsigned cpu = 1; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &node->cpus))
			now.nr_refused += switch_cpu(cpu, false) != 0;
	return NULL;
}

static void all_of_a_node_during_a_job(void **state)
{
	pthread_t thread;

	if (nr_nodes < 2)
		ktest_skip("a machine of one node");
	run_job();
	assert_int_equal(pthread_create(&thread, NULL, take_node, &nodes[1]),
			 0);
	run_job();
	pthread_join(thread, NULL);
	assert_int_equal(now.nr_refused, 0);
	run_job();
	assert_cpus_counted((unsigned)CPU_COUNT(&all) - nodes[1].nr_cpus);
	run_job();
}

/* Writes @state into each block of memory that node @id has, or had. */
static int switch_memory(int id, const char *state)
{
	static char blocks[64][300];
	static unsigned nr_blocks;
	char path[400];
	struct dirent *entry;
	int error = 0;
	DIR *dir;

	snprintf(path, sizeof(path), SYS_NODE "/node%d", id);
	dir = nr_blocks ? NULL : opendir(path);
	while (dir && (entry = readdir(dir)) && nr_blocks < 64)
		if (!strncmp(entry->d_name, "memory", 6) &&
		    entry->d_name[6] >= '0' && entry->d_name[6] <= '9')
			strcpy(blocks[nr_blocks++], entry->d_name);
	if (dir)
		closedir(dir);
	for (unsigned i = 0; i < nr_blocks && !error; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/memory/%s/state", blocks[i]);
		error = sys_put(path, "%s", state);
	}
	return nr_blocks ? error : -ENOENT;
}

static bool node_is_in(const char *list, int id)
{
	char path[100];
	cpu_set_t nodes_there;

	snprintf(path, sizeof(path), SYS_NODE "/%s", list);
	nodes_there = sys_list(path);
	return CPU_ISSET(id, &nodes_there);
}

static void *take_memory(void *arg)
{
	usleep(20000);
	*(int *)arg = switch_memory(*(int *)arg, "offline");
	return NULL;
}

static void populate_node(int node)
{
	unsigned long mask = 1ul << node;
	size_t len = 16 << 20;
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	if (node >= 0)
		assert_int_equal(syscall(SYS_mbind, at, len, 1, &mask, 64, 0),
				 0);
	assert_int_equal(ktask_populate(at, len, 0), 0);
	munmap(at, len);
}

/* With its memory the machine loses the node; it does not come back. */
static void eject_node(int id)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	if (sys_put("/sys/bus/acpi/devices/PNP0C80:00/eject", "1"))
		return;
	while (node_is_in("online", id) && ktest_now_ns() < end_ns)
		run_job();
	assert_false(node_is_in("online", id));
	printf("# node %d is gone\n", id);
	run_job();
	run_job();
	populate_node(-1);
}

/* Memory only, and all of it. */
static void the_memory_of_a_node(void **state)
{
	unsigned i = 0;
	pthread_t thread;
	int id, error;

	while (i < nr_nodes && (nodes[i].nr_cpus || !nodes[i].memory))
		i++;
	if (i == nr_nodes)
		ktest_skip("no node has memory only");
	error = id = nodes[i].id;
	populate_node(id);
	run_job();
	assert_int_equal(pthread_create(&thread, NULL, take_memory, &error), 0);
	run_job();
	pthread_join(thread, NULL);
	if (error == -EBUSY || error == -EINVAL || error == -ENOENT) {
		switch_memory(id, "online");
		ktest_skip("the kernel does not give that memory away: %s",
			   strerror(-error));
	}
	assert_int_equal(error, 0);
	assert_false(node_is_in("has_memory", id));
	run_job();
	populate_node(-1);
	assert_int_equal(switch_memory(id, "online_movable"), 0);
	assert_true(node_is_in("has_memory", id));
	run_job();
	populate_node(id);
	eject_node(id);
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, read_machine, restore_cpus)

KTEST_MAIN(T(cpus_in_a_loop), T(all_but_one), T(all_of_a_node_during_a_job),
	   T(the_memory_of_a_node))
