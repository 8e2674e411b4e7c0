/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A recorded machine on which the library believes to run: its CPUs can be
 * asked for and bound to, and each thread's binding is kept here instead of in
 * the kernel.  Threads really run on the CPUs there are.  Include in one file
 * of a program, which links with nothing else that asks for CPUs.
 *
 * Owns standing before syscall(), getcpu(), sched_getcpu() and the affinity of
 * thread attributes.  Behaves badly with more than MACHINE_THREADS threads.
 */
#ifndef TESTS_API_SUPPORT_MACHINE_H
#define TESTS_API_SUPPORT_MACHINE_H

#include "topology.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include "user/machine/topo.h"

#define MACHINE_THREADS 256

static struct {
	struct tree tree;
	struct kt_cpus online;
	struct kt_cpus allowed; /* to the caller */
	unsigned caller_cpu; /* where the caller is */
	pid_t caller;
	struct kt_cpus made_on; /* threads that were bound when made */
	struct {
		pid_t tid;
		struct kt_cpus cpus;
	} bound[MACHINE_THREADS];
	unsigned nr_bound;
	uint32_t hold; /* helpers that sleep do not wake */
	pthread_mutex_t lock;
} laid_machine = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* machine_parse - "0-3,8" */
static inline struct kt_cpus machine_parse(const char *list)
{
	struct kt_cpus cpus = { 0 };
	char *end = (char *)list;

	while (*end >= '0' && *end <= '9') {
		unsigned from = (unsigned)strtoul(end, &end, 10), to = from;

		if (*end == '-')
			to = (unsigned)strtoul(end + 1, &end, 10);
		for (; from <= to; from++)
			cpus_set(&cpus, from);
		end += *end == ',';
	}
	return cpus;
}

/* machine_list - as sysfs writes it */
static inline void machine_list(char *text, const struct kt_cpus *cpus)
{
	*text = '\0';
	topology_list(text, cpus);
}

/* machine_read_online - of the tree, after it was changed */
static inline void machine_read_online(void)
{
	char path[128], text[256] = "";

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online",
		 laid_machine.tree.root);
	file_text(path, text, sizeof(text));
	pthread_mutex_lock(&laid_machine.lock);
	laid_machine.online = machine_parse(text);
	pthread_mutex_unlock(&laid_machine.lock);
}

static inline struct kt_cpus machine_online(void)
{
	struct kt_cpus cpus;

	pthread_mutex_lock(&laid_machine.lock);
	cpus = laid_machine.online;
	pthread_mutex_unlock(&laid_machine.lock);
	return cpus;
}

/* machine_begin - the calling thread is the caller, on CPU @caller_cpu */
static inline void machine_begin(const char *name, const char *allowed,
				 unsigned caller_cpu)
{
	topology_begin(&laid_machine.tree, name);
	machine_read_online();
	laid_machine.allowed = machine_parse(allowed);
	laid_machine.caller_cpu = caller_cpu;
	laid_machine.caller = gettid();
}

static inline void machine_end(void)
{
	topology_end(&laid_machine.tree);
}

static inline struct kt_cpus *cpus_of_thread(pid_t tid)
{
	for (unsigned i = 0; i < laid_machine.nr_bound; i++)
		if (laid_machine.bound[i].tid == tid)
			return &laid_machine.bound[i].cpus;
	if (laid_machine.nr_bound == MACHINE_THREADS)
		abort();
	laid_machine.bound[laid_machine.nr_bound].tid = tid;
	laid_machine.bound[laid_machine.nr_bound].cpus = laid_machine.made_on;
	return &laid_machine.bound[laid_machine.nr_bound++].cpus;
}

/* machine_cpus_of - what thread @tid is bound to */
static inline struct kt_cpus machine_cpus_of(pid_t tid)
{
	struct kt_cpus cpus;

	pthread_mutex_lock(&laid_machine.lock);
	cpus = tid == laid_machine.caller ? laid_machine.allowed
					  : *cpus_of_thread(tid);
	pthread_mutex_unlock(&laid_machine.lock);
	return cpus;
}

/* machine_let - the caller may run on @cpus, and is on the first */
static inline void machine_let(const char *list)
{
	pthread_mutex_lock(&laid_machine.lock);
	laid_machine.allowed = machine_parse(list);
	laid_machine.caller_cpu = (unsigned)atoi(list);
	pthread_mutex_unlock(&laid_machine.lock);
}

/* The kernel ignores what is offline and refuses what is nothing else. */
static inline long machine_bind(pid_t tid, const struct kt_cpus *cpus)
{
	struct kt_cpus real = machine_online();

	if (!cpus_narrow(&real, cpus)) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&laid_machine.lock);
	*cpus_of_thread(tid) = *cpus;
	pthread_mutex_unlock(&laid_machine.lock);
	return 0;
}

/* What is read beyond the arguments is the caller's stack. */
__attribute__((noinline, no_sanitize_address)) long syscall(long number, ...)
{
	long (*real)(long, ...) =
		(long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	struct kt_cpus online;
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_sched_setaffinity)
		return machine_bind((pid_t)args[0],
				    (const struct kt_cpus *)args[2]);
	if (number != SYS_sched_getaffinity) {
		long result = real(number, args[0], args[1], args[2], args[3],
				   args[4], args[5]);

		while (number == SYS_futex && gettid() != laid_machine.caller &&
		       __atomic_load_n(&laid_machine.hold, __ATOMIC_ACQUIRE))
			usleep(200);
		return result;
	}
	online = machine_online();
	*(struct kt_cpus *)args[2] = machine_cpus_of(gettid());
	cpus_narrow((struct kt_cpus *)args[2], &online);
	return sizeof(struct kt_cpus);
}

int pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t size,
				const cpu_set_t *cpus)
{
	pthread_mutex_lock(&laid_machine.lock);
	laid_machine.made_on = *(const struct kt_cpus *)cpus;
	pthread_mutex_unlock(&laid_machine.lock);
	return 0;
}

int sched_getcpu(void)
{
	struct kt_cpus cpus = machine_cpus_of(gettid());
	int cpu = 0;

	if (gettid() == laid_machine.caller)
		return (int)laid_machine.caller_cpu;
	while (cpu < KT_CPUS_MAX - 1 && !(cpus.words[cpu / 64] >> cpu % 64 & 1))
		cpu++;
	return cpu;
}

int getcpu(unsigned *cpu, unsigned *node)
{
	const struct topo *topo = topo_get();

	*cpu = (unsigned)sched_getcpu();
	*node = 0;
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		if (topo->node_cpus[i].words[*cpu / 64] >> *cpu % 64 & 1)
			*node = (unsigned)topo->ids[i];
	return 0;
}

#endif /* TESTS_API_SUPPORT_MACHINE_H */
