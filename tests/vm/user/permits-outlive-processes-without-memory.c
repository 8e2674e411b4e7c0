/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process that is killed for want of memory while its helper gets no CPU to
 * die on: after two seconds the kernel takes away the memory where the list of
 * the helper's robust mutexes is, and so never frees its permit.  Others then do
 * without that permit, and have as many as before.
 *
 * From 6.12 on every thread gets a CPU within a second, and frees the permit.
 */
#include "sys.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "user/limits/permits.h"

#define GROUP "/sys/fs/cgroup/ktask-oom"
#define MIB (1ul << 20)
#define HOG_NS 6000000000ull
#define PATIENCE_NS 20000000000ull
#define CPU 1

static struct {
	uint32_t holds, hogs, start;
	uint32_t nr_permits;
} * shared;

static bool wait_until(const uint32_t *flag)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;

	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
		if (ktest_now_ns() > end_ns)
			return false;
		usleep(1000);
	}
	return true;
}

static void bind_thread(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(CPU, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *hold_permit(void *arg)
{
	bind_thread();
	permits_take((uint32_t)gettid());
	__atomic_store_n(&shared->holds, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

static _Noreturn void run_out_of_memory(void)
{
	struct ktask_limit limits[1] = { KTASK_LIMIT_INIT };
	size_t len = 128 * MIB;
	pthread_t thread;
	char *at;

	sys_put(GROUP "/cgroup.procs", "0");
	ktask_limits(limits, 1);
	if (pthread_create(&thread, NULL, hold_permit, NULL) ||
	    !wait_until(&shared->start))
		_exit(1);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(at, 1, len);
	_exit(2);
}

static _Noreturn void hog_cpu(void)
{
	struct sched_param param = { .sched_priority = 50 };
	uint64_t end_ns;

	bind_thread();
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		_exit(1);
	end_ns = ktest_now_ns() + HOG_NS;
	__atomic_store_n(&shared->hogs, 1, __ATOMIC_RELEASE);
	while (ktest_now_ns() < end_ns)
		;
	_exit(0);
}

static int count_permits(void *arg)
{
	struct ktask_limit limits[1] = { KTASK_LIMIT_INIT };
	uint64_t end_ns = ktest_now_ns() + 3000000000;
	unsigned nr = 0;

	ktask_limits(limits, 1);
	while (ktest_now_ns() < end_ns) {
		nr += permits_take((uint32_t)gettid()) >= 0;
		usleep(10000);
	}
	shared->nr_permits = nr;
	return 0;
}

static void a_permit_that_was_never_freed_is_made_up_for(void **state)
{
	unsigned nr_cpus;
	cpu_set_t all = sys_list(SYS_CPU "/online");
	pid_t victim, hogger;
	int status;

	nr_cpus = (unsigned)CPU_COUNT(&all);
	mkdir(GROUP, 0755);
	if (nr_cpus < 2 || sys_put(GROUP "/memory.max", "%lu", 32 * MIB) ||
	    sys_put("/proc/sys/kernel/sched_rt_runtime_us", "-1"))
		ktest_skip("needs two CPUs, and control groups of version 2");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	victim = fork();
	if (!victim)
		run_out_of_memory();
	assert_true(wait_until(&shared->holds));
	hogger = fork();
	if (!hogger)
		hog_cpu();
	assert_true(wait_until(&shared->hogs));
	__atomic_store_n(&shared->start, 1, __ATOMIC_RELEASE);
	assert_int_equal(waitpid(victim, &status, 0), victim);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	waitpid(hogger, &status, 0);
	sys_put("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	assert_int_equal(ktest_in_child(count_permits, NULL), 0);
	assert_int_equal(shared->nr_permits, nr_cpus * 4 / 5);
	rmdir(GROUP);
}

KTEST_MAIN(KTEST(a_permit_that_was_never_freed_is_made_up_for))
