/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process that ends, in whatever way, has no parked helper of the lowest
 * priority, which would need long to get a CPU for its end; nor one in a chunk
 * when it ends by exit().
 *
 * The process is traced: each of its threads stops in its end, and the kernel
 * is asked then what it runs at.
 */
#include "support/work.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "user/pool/user_pool.h"

#define OPTIONS                                                          \
	(PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_EXITKILL)
#define NICE 3

/* The check for leaks cannot run in a process that is traced. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

/* ---- the process that ends ---- */

static bool all_sleep(void)
{
	pid_t tids[64];
	unsigned nr = helpers_now(tids, 64);

	for (unsigned i = 0; i < nr; i++)
		if (!thread_sleeps(tids[i]))
			return false;
	return nr;
}

static void park_helpers(void)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	bool parked;

	if (work_met())
		_exit(77);
	while (!(parked = all_sleep()) && ktest_now_ns() < end_ns)
		nap_us(1000);
	ktest_check(parked);
}

static uint32_t in_chunk;

static int stay_in_chunk(void *start, void *end, void *arg)
{
	set_flag(&in_chunk);
	for (;;)
		nap_us(1000);
	return 0;
}

/* Nobody waits for the job: only a helper can be in its chunk. */
static void leave_helper_in_chunk(void)
{
	DEFINE_KTASK_CTL(ctl, stay_in_chunk, NULL, 1);
	struct ktask_job *job;

	ktest_check(!ktask_start(&job, NULL, 2, &ctl));
	if (!wait_for_flag(&in_chunk))
		_exit(77);
}

static void *exit_apart(void *unused)
{
	exit(0);
}

static void end_by_exit(void)
{
	exit(0);
}

static void end_at_once(void)
{
	_exit(0);
}

static void end_quickly(void)
{
	quick_exit(0);
}

static void end_by_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void end_by_sigterm(void)
{
	kill(getpid(), SIGTERM);
	pause();
}

static void end_by_sigkill(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

static void end_by_another_thread(void)
{
	pthread_t thread;

	ktest_check(!pthread_create(&thread, NULL, exit_apart, NULL));
	pause();
}

static void end_without_main_thread(void)
{
	pthread_t thread;

	ktest_check(!pthread_create(&thread, NULL, exit_apart, NULL));
	pthread_exit(NULL);
}

static void execute_another(void)
{
	execl("/bin/true", "true", NULL);
}

static void exit_with_a_helper_in_a_chunk(void)
{
	leave_helper_in_chunk();
	exit(0);
}

/* ---- who looks ---- */

static bool is_helper(pid_t tid)
{
	char path[64], name[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strcmp(name, "ktask\n");
}

struct ends {
	unsigned nr, nr_low;
	int status; /* of the process */
};

static void see_end(struct ends *ends, pid_t tid)
{
	if (!is_helper(tid))
		return;
	ends->nr++;
	if (sched_getscheduler(tid) == SCHED_OTHER &&
	    getpriority(PRIO_PROCESS, (id_t)tid) == NICE)
		return;
	ends->nr_low++;
	printf("# thread %d ended at policy %d, nice %d\n", tid,
	       sched_getscheduler(tid), getpriority(PRIO_PROCESS, (id_t)tid));
}

/* Return: the signal to go on with. */
static int see_stop(struct ends *ends, pid_t tid, int status)
{
	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
		see_end(ends, tid);
	if (status >> 16 || WSTOPSIG(status) == SIGSTOP ||
	    WSTOPSIG(status) == SIGTRAP)
		return 0;
	return WSTOPSIG(status);
}

static void trace_child(struct ends *ends, pid_t child)
{
	int status;
	pid_t tid;

	alarm(HANG_SECONDS);
	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			int signal = see_stop(ends, tid, status);

			ptrace(PTRACE_CONT, tid, NULL, signal);
		} else if (tid == child) {
			ends->status = status;
			break;
		}
	}
	alarm(0);
}

static void start_traced(void (*end)(void))
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	setpriority(PRIO_PROCESS, 0, NICE);
	park_helpers();
	end();
	_exit(1);
}

static void check_end(void (*end)(void), int signal)
{
	struct ends ends = { 0 };
	int status;
	pid_t child;

	need_sure_helper();
	fflush(stdout);
	child = fork();
	if (!child)
		start_traced(end);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, OPTIONS)) {
		kill(child, SIGKILL);
		ktest_skip("may not trace");
	}
	ptrace(PTRACE_CONT, child, NULL, 0);
	trace_child(&ends, child);
	if (ends.status == 77 << 8)
		ktest_skip("no helper came");
	if (signal)
		assert_int_equal(WTERMSIG(ends.status), signal);
	else
		assert_int_equal(ends.status, 0);
	assert_true(ends.nr > 0);
	assert_int_equal(ends.nr_low, 0);
}

#define END_TEST(name, end, signal)     \
	static void name(void **state)  \
	{                               \
		check_end(end, signal); \
	}

END_TEST(exit_leaves_none, end_by_exit, 0)
END_TEST(immediate_exit_leaves_none, end_at_once, 0)
END_TEST(quick_exit_leaves_none, end_quickly, 0)
END_TEST(abort_leaves_none, end_by_abort, SIGABRT)
END_TEST(sigterm_leaves_none, end_by_sigterm, SIGTERM)
END_TEST(sigkill_leaves_none, end_by_sigkill, SIGKILL)
END_TEST(exit_of_another_thread_leaves_none, end_by_another_thread, 0)
END_TEST(exit_without_the_main_thread_leaves_none, end_without_main_thread, 0)
END_TEST(exec_leaves_none, execute_another, 0)
END_TEST(exit_during_a_chunk_leaves_none, exit_with_a_helper_in_a_chunk, 0)

/* ---- a helper that lowers itself and then gets no CPU ---- */

static uint32_t hold_helper, is_held;

/* Stands before that of the C library: by a helper that is SCHED_IDLE already. */
int setpriority(__priority_which_t which, id_t who, int nice)
{
	if (nice == 19 && __atomic_load_n(&hold_helper, __ATOMIC_ACQUIRE)) {
		set_flag(&is_held);
		while (__atomic_load_n(&hold_helper, __ATOMIC_ACQUIRE))
			nap_us(100);
	}
	return (int)syscall(SYS_setpriority, which, who, nice);
}

static bool work_never(struct pool_item *pool_item)
{
	return true;
}

static int cancel_for_the_starved(void *arg)
{
	struct pool_item pool_item = { .work = work_never,
				       .level = KT_PLACEMENT_ANY };
	struct kt_cpus cpus;

	park_helpers();
	ktest_check(cpus_get_affinity(&cpus));
	pool_item.cpus = &cpus;
	set_flag(&hold_helper);
	ktest_check(pool_submit(&pool_item, -1));
	ktest_check(wait_for_flag(&is_held));
	ktest_check(sched_getscheduler((pid_t)pool_item_tid(&pool_item)) ==
		    SCHED_IDLE);
	ktest_check(pool_cancel(&pool_item, ktest_now_ns()));
	ktest_check(sched_getscheduler((pid_t)pool_item_tid(&pool_item)) ==
		    SCHED_OTHER);
	return 0;
}

static void a_starved_helper_is_raised_when_it_is_not_needed(void **state)
{
	int status;

	need_sure_helper();
	status = ktest_in_child(cancel_for_the_starved, NULL);
	if (status == 77 << 8)
		ktest_skip("no helper came");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(exit_leaves_none), KTEST(immediate_exit_leaves_none),
	   KTEST(quick_exit_leaves_none), KTEST(abort_leaves_none),
	   KTEST(sigterm_leaves_none), KTEST(sigkill_leaves_none),
	   KTEST(exit_of_another_thread_leaves_none),
	   KTEST(exit_without_the_main_thread_leaves_none),
	   KTEST(exec_leaves_none), KTEST(exit_during_a_chunk_leaves_none),
	   KTEST(a_starved_helper_is_raised_when_it_is_not_needed))
