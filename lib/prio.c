/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Priorities by sched_setattr(2) on thread ids.
 *
 * With autogroups (CONFIG_SCHED_AUTOGROUP) nice and SCHED_IDLE count only
 * against threads of the same session: a helper then still takes its session's
 * share from other sessions.
 */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/deps.h"
#include "lib/futex.h"
#include "lib/prio.h"

#define LOWEST_NICE 19
#define POLICY_DEADLINE 6

/* The first version of the kernel's structure; 48 bytes for ever. */
struct sched_attr_v0 {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static uint32_t mode; /* enum prio_mode */

enum prio_mode prio_mode(void)
{
	return (enum prio_mode)kt_load(&mode);
}

void prio_fork_child(void)
{
	kt_store(&mode, PRIO_UNKNOWN);
}

static int set_prio(pid_t tid, const struct prio *prio)
{
	struct sched_attr_v0 attr = {
		.size = sizeof(attr),
		.policy = prio->policy,
		.nice = prio->nice,
		.priority = prio->rt_priority,
	};
	int saved = errno;
	int error = syscall(SYS_sched_setattr, tid, &attr, 0) ? -errno : 0;

	errno = saved;
	return error;
}

bool prio_thread_gone(uint32_t tid)
{
	struct sched_attr_v0 attr;

	return syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) &&
	       errno == ESRCH;
}

bool prio_own(struct prio *prio)
{
	struct sched_attr_v0 attr = { .size = sizeof(attr) };
	int saved = errno;
	bool known = !syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0);

	errno = saved;
	prio->policy = attr.policy;
	prio->nice = attr.nice;
	prio->rt_priority = attr.priority;
	/* A deadline reservation cannot be shared; the lowest real-time
	 * priority puts the helper above all that does not outrank us. */
	if (attr.policy == POLICY_DEADLINE) {
		prio->policy = SCHED_FIFO;
		prio->rt_priority = 1;
	}
	return known;
}

bool prio_lowest(const struct prio *prio)
{
	return prio->policy == SCHED_IDLE;
}

static bool has_capability(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data))
		return false;
	return data[CAP_TO_INDEX(CAP_SYS_NICE)].effective &
	       CAP_TO_MASK(CAP_SYS_NICE);
}

bool prio_may_lend(void)
{
	struct rlimit limit;
	struct prio own;
	int saved = errno;
	bool may = has_capability();

	/* RLIMIT_NICE counts from 1 (nice 19) to 40 (nice -20). */
	if (!may && prio_own(&own) && !getrlimit(RLIMIT_NICE, &limit))
		may = (int64_t)limit.rlim_cur >= 20 - own.nice ||
		      limit.rlim_cur == RLIM_INFINITY;
	errno = saved;
	return may;
}

/* sched_setattr() ignores the nice value of SCHED_IDLE, but what is derived
 * from it (the priority of input and output, what tools show) counts. */
void prio_lower(void)
{
	struct prio nice = { .policy = SCHED_OTHER, .nice = LOWEST_NICE };
	struct prio lowest = { .policy = SCHED_IDLE };

	set_prio(0, &nice);
	set_prio(0, &lowest);
}

/*
 * The kernel takes a CPU that runs a SCHED_IDLE thread for an idle one and wakes
 * the next such thread there while other CPUs really idle: two or four of them
 * read with direct I/O half as fast as others.  SCHED_BATCH preempts nobody when
 * it wakes either; at nice 19 it has a 68th of a normal thread's weight.
 */
void prio_blocks(void)
{
	struct prio batch = { .policy = SCHED_BATCH, .nice = LOWEST_NICE };

	set_prio(0, &batch);
}

void prio_take(const struct prio *prio)
{
	set_prio(0, prio);
}

/* Down one step of nice and up again: is what we lower ours to raise? */
static bool try_raise(void)
{
	struct prio own, down;

	if (!prio_own(&own) || own.policy != SCHED_OTHER)
		return false;
	if (own.nice == LOWEST_NICE)
		return true;
	down = own;
	down.nice++;
	return !set_prio(0, &down) && !set_prio(0, &own);
}

enum answer { ANSWER_NONE, ANSWER_YES, ANSWER_NO };

static void *try_thread(void *arg)
{
	uint32_t *answer = arg;
	uint32_t found = try_raise() ? ANSWER_YES : ANSWER_NO;

	kt_store_release(answer, found);
	/* The word may be gone by now; waking nobody does no harm. */
	futex_wake(answer, 1);
	return NULL;
}

/* On a thread that ends: one that could not be raised again shall not stay. */
static bool try_apart(void)
{
	struct sched_param normal = { .sched_priority = 0 };
	sigset_t all, saved;
	pthread_attr_t attr;
	pthread_t thread;
	uint32_t answer = ANSWER_NONE;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	if (pthread_create(&thread, &attr, try_thread, &answer))
		answer = ANSWER_NO;
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
	while (kt_load_acquire(&answer) == ANSWER_NONE)
		futex_wait(&answer, ANSWER_NONE, 0);
	return kt_load_acquire(&answer) == ANSWER_YES;
}

void prio_find_out(void)
{
	if (prio_mode() != PRIO_UNKNOWN)
		return;
	kt_store(&mode, (uint32_t)(prio_may_lend() && try_apart() ? PRIO_LEND
								  : PRIO_KEEP));
}

void prio_helper_begin(void)
{
	if (prio_mode() == PRIO_LEND)
		prio_lower();
}

bool prio_lend(pid_t tid, const struct prio *prio)
{
	int error = set_prio(tid, prio);

	trace_lend(tid, prio->policy, prio->nice);
	if (error == -EPERM)
		kt_store(&mode, PRIO_KEEP);
	return !error;
}
