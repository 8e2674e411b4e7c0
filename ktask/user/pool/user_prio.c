/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Priorities by sched_setattr(2) on thread ids.
 *
 * With autogroups (CONFIG_SCHED_AUTOGROUP) nice and SCHED_IDLE count only against threads
 * of the same session.  So a helper still takes its session's share from other sessions.
 *
 * Locking: there is no lock.
 *	A: written by any thread, read by any: kt_load() and kt_store().  The mode only
 *	   goes from unknown to one of the others, and from PRIO_LEND to PRIO_KEEP,
 *	   but for forks.
 */
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/deps.h"
#include "user/pool/user_prio.h"
#include "util/capability.h"
#include "util/sched_attr.h"
#include "util/scoped.h"

#define LOWEST_NICE 19
#define POLICY_DEADLINE 6

static uint32_t prio_mode_word; /* enum prio_mode; A */
static struct prio home_prio; /* of parked helpers; A */

enum prio_mode prio_mode(void)
{
	return (enum prio_mode)kt_load(&prio_mode_word);
}

void prio_fork_child(void)
{
	kt_store(&prio_mode_word, PRIO_UNKNOWN);
}

static int set_prio(pid_t tid, const struct prio *prio)
{
	struct sched_attr_v0 attr = {
		.size = sizeof(attr),
		.policy = prio->policy,
		.nice = prio->nice,
		.priority = prio->rt_priority,
	};
	keep_errno();

	return syscall(SYS_sched_setattr, tid, &attr, 0) ? -errno : 0;
}

bool prio_thread_gone(uint32_t tid)
{
	struct sched_attr_v0 attr;

	return syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) &&
	       errno == ESRCH;
}

static bool read_prio(pid_t tid, struct prio *prio)
{
	struct sched_attr_v0 attr = { .size = sizeof(attr) };
	int saved = errno;
	bool known = !syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0);

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

bool prio_own(struct prio *prio)
{
	return read_prio(0, prio);
}

bool prio_lowest(const struct prio *prio)
{
	return prio->policy == SCHED_IDLE;
}

bool prio_may_lend(void)
{
	struct rlimit limit;
	struct prio own;
	keep_errno();
	bool may = has_capability(CAP_SYS_NICE);

	/* RLIMIT_NICE counts from 1 (nice 19) to 40 (nice -20). */
	if (!may && prio_own(&own) && !getrlimit(RLIMIT_NICE, &limit))
		may = (int64_t)limit.rlim_cur >= 20 - own.nice ||
		      limit.rlim_cur == RLIM_INFINITY;
	return may;
}

/* Return: false, and never again, if this process may not raise threads. */
static bool check_raised(int error)
{
	if (error == -EPERM)
		kt_store(&prio_mode_word, PRIO_KEEP);
	return !error;
}

/* sched_setattr() ignores the nice value of a SCHED_IDLE thread.  But tools show that value,
 * and CPU time is counted as nice by it, so it is set as well.  If another thread raises
 * this one between the two calls, the nice value is raised again, too. */
void prio_lower(void)
{
	struct prio lowest = { .policy = SCHED_IDLE };
	bool is_low;
	keep_errno();

	is_low = !set_prio(0, &lowest);
	setpriority(PRIO_PROCESS, 0, LOWEST_NICE);
	if (is_low && !prio_is_lowest(0))
		prio_raise(0);
}

bool prio_is_lowest(pid_t tid)
{
	keep_errno();

	return sched_getscheduler(tid) == SCHED_IDLE;
}

bool prio_raise(pid_t tid)
{
	struct prio prio = { .policy = kt_load(&home_prio.policy),
			     .nice = kt_load(&home_prio.nice) };

	return check_raised(set_prio(tid, &prio));
}

static void find_home(void)
{
	struct prio own = { .policy = SCHED_OTHER };

	if (prio_own(&own) && own.policy != SCHED_OTHER &&
	    own.policy != SCHED_BATCH && own.policy != SCHED_IDLE)
		own.policy = SCHED_OTHER;
	kt_store(&home_prio.policy, own.policy);
	kt_store(&home_prio.nice, own.nice);
}

/*
 * To the kernel, a CPU that runs a SCHED_IDLE thread counts as idle.  It wakes the next such
 * thread on that CPU although other CPUs idle.  So two or four such threads read with
 * direct I/O half as fast as others.  A SCHED_BATCH thread does not preempt others when it
 * wakes either, and at nice 19 it has a 68th of the weight of a normal thread.
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
static bool try_raise(pid_t tid)
{
	struct prio own, down;

	if (!read_prio(tid, &own) || own.policy != SCHED_OTHER)
		return false;
	if (own.nice == LOWEST_NICE)
		return true;
	down = own;
	down.nice++;
	return !set_prio(tid, &down) && !set_prio(tid, &own);
}

bool prio_find_out(pid_t tid)
{
	bool may;

	if (prio_mode() != PRIO_UNKNOWN)
		return true;
	find_home();
	may = prio_may_lend();
	if (!may || try_raise(tid)) {
		kt_store(&prio_mode_word,
			 (uint32_t)(may ? PRIO_LEND : PRIO_KEEP));
		return true;
	}
	kt_store(&prio_mode_word, PRIO_KEEP);
	return false;
}

bool prio_lend(pid_t tid, const struct prio *prio)
{
	int error = set_prio(tid, prio);

	trace_lend(tid, prio->policy, prio->nice);
	return check_raised(error);
}
