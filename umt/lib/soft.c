/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See soft.h.  The counts follow the rules of the program (umt.bpf.c): a thread is
 * counted on one core or on none, and increments come before decrements.
 *
 * Behaves badly: all threads of the process share one lock.  These backends are for
 * machines where nothing better is available.
 *
 * Locking: soft.h.  Counts are written under T and read by any thread.  A leader that has
 * read that a core is idle clears the core's "told" without T (umt_next()).  A thread that
 * writes "told" at the same time reports the same core.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ebpf/shared.h"
#include "soft.h"

/* ---- telling ---- */

static void signal_eventfd(int fd)
{
	uint64_t one = 1;

	/* An eventfd that is full is readable, too. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

static void drain_eventfd(int fd)
{
	uint64_t value;

	if (fd >= 0 && read(fd, &value, sizeof(value)) < 0)
		return;
}

/* As in the program: disarmed before the descriptor is written. */
static void ring_doorbell(struct umt *subscriber, int cpu)
{
	struct umt_core *core = &subscriber->cores[cpu];

	if (__atomic_exchange_n(&core->reserved[UMT_CORE_ARMED], 0,
				__ATOMIC_SEQ_CST))
		signal_eventfd(subscriber_core_fd(subscriber, cpu));
}

static void tell_idle(struct umt *subscriber, int cpu)
{
	struct umt_core *core = &subscriber->cores[cpu];

	if (!__atomic_load_n(&subscriber->word->wanted, __ATOMIC_SEQ_CST))
		return;
	if (!__atomic_exchange_n(&core->reserved[UMT_CORE_TOLD], 1,
				 __ATOMIC_SEQ_CST))
		signal_eventfd(subscriber->fd);
}

/* ---- counting ---- */

static void add_to(__u64 *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
}

static void count_thread(struct umt *subscriber, int cpu, bool moved)
{
	struct umt_core *core = &subscriber->cores[cpu];

	thread_assert_locked();
	add_to(moved ? &core->moved_in : &core->wakes);
	__atomic_fetch_add(&core->ready, 1, __ATOMIC_SEQ_CST);
	ring_doorbell(subscriber, cpu);
}

static void uncount_thread(struct umt *subscriber, int cpu, bool moved)
{
	struct umt_core *core = &subscriber->cores[cpu];

	thread_assert_locked();
	add_to(moved ? &core->moved_out : &core->sleeps);
	if (__atomic_fetch_sub(&core->ready, 1, __ATOMIC_SEQ_CST) == 1)
		tell_idle(subscriber, cpu);
	ring_doorbell(subscriber, cpu);
}

int soft_core(const struct umt *subscriber, int cpu)
{
	return cpu < 0 || cpu >= subscriber->nr_cores ? 0 : cpu;
}

void soft_ready(struct soft_thread *thread, int cpu)
{
	bool moved = thread->counted;
	int from = thread->cpu;
	int i;

	thread_assert_locked();
	if (moved && from == cpu)
		return;
	thread->counted = true;
	thread->cpu = cpu;
	for (i = 0; i < thread->nr; i++) {
		count_thread(thread->subscriber[i],
			     soft_core(thread->subscriber[i], cpu), moved);
		if (moved)
			uncount_thread(thread->subscriber[i],
				       soft_core(thread->subscriber[i], from),
				       true);
	}
}

void soft_blocked(struct soft_thread *thread)
{
	int i;

	thread_assert_locked();
	if (!thread->counted)
		return;
	thread->counted = false;
	for (i = 0; i < thread->nr; i++)
		uncount_thread(thread->subscriber[i],
			       soft_core(thread->subscriber[i], thread->cpu),
			       false);
}

/* ---- threads ---- */

void soft_forget(struct soft_thread *thread)
{
	struct soft_thread **at;

	soft_blocked(thread);
	for (at = &thread->set->threads; *at; at = &(*at)->next)
		if (*at == thread) {
			*at = thread->next;
			break;
		}
	if (thread->set->end)
		thread->set->end(thread);
	free(thread);
}

void soft_forget_all(struct soft_set *set)
{
	struct soft_thread *thread;

	thread_assert_locked();
	while ((thread = set->threads)) {
		set->threads = thread->next;
		if (set->end)
			set->end(thread);
		free(thread);
	}
	if (set->keyed)
		pthread_setspecific(set->key, NULL);
}

static void at_thread_exit(void *thread)
{
	struct soft_thread *self = thread;

	thread_lock();
	soft_forget(self);
	thread_unlock();
}

struct soft_thread *soft_self(const struct soft_set *set)
{
	if (!__atomic_load_n(&set->keyed, __ATOMIC_ACQUIRE))
		return NULL;
	return pthread_getspecific(set->key);
}

static int make_key(struct soft_set *set)
{
	int error =
		set->keyed ? 0 : pthread_key_create(&set->key, at_thread_exit);

	if (!error)
		__atomic_store_n(&set->keyed, true, __ATOMIC_RELEASE);
	return -error;
}

static struct soft_thread *new_self(struct soft_set *set, int *error)
{
	struct soft_thread *thread = calloc(1, sizeof(*thread));

	*error = thread ? make_key(set) : -ENOMEM;
	if (*error)
		goto fail;
	thread->set = set;
	thread->fd = -1;
	thread->counted = true;
	thread->cpu = sched_getcpu();
	*error = -pthread_setspecific(set->key, thread);
	if (!*error && set->begin)
		*error = set->begin(thread);
	if (*error)
		goto fail;
	thread->next = set->threads;
	set->threads = thread;
	return thread;
fail:
	if (thread && thread->set)
		pthread_setspecific(set->key, NULL);
	free(thread);
	return NULL;
}

static int find_membership(const struct soft_thread *thread,
			   const struct umt *subscriber)
{
	int i;

	for (i = 0; i < thread->nr; i++)
		if (thread->subscriber[i] == subscriber)
			return i;
	return -ENOENT;
}

static int add_locked(struct soft_set *set, struct umt *subscriber)
{
	struct soft_thread *thread = soft_self(set);
	int error = 0;

	thread_assert_locked();
	if (!thread)
		thread = new_self(set, &error);
	if (!thread)
		return error;
	if (find_membership(thread, subscriber) >= 0)
		return -EEXIST;
	if (thread->nr == UMT_MEMBERSHIPS)
		return -EUSERS;
	if (thread->counted)
		count_thread(subscriber, soft_core(subscriber, thread->cpu),
			     true);
	thread->subscriber[thread->nr++] = subscriber;
	return 0;
}

int soft_add(struct soft_set *set, struct umt *subscriber)
{
	int error;

	thread_lock();
	error = add_locked(set, subscriber);
	thread_unlock();
	return error;
}

static void end_membership(struct soft_thread *thread, int i)
{
	struct umt *subscriber = thread->subscriber[i];

	thread->subscriber[i] = thread->subscriber[--thread->nr];
	if (thread->counted)
		uncount_thread(subscriber, soft_core(subscriber, thread->cpu),
			       true);
}

int soft_remove(struct soft_set *set, struct umt *subscriber)
{
	struct soft_thread *thread = soft_self(set);
	int i = -ENOENT;

	thread_lock();
	if (thread)
		i = find_membership(thread, subscriber);
	if (i >= 0)
		end_membership(thread, i);
	if (thread && !thread->nr) {
		pthread_setspecific(set->key, NULL);
		soft_forget(thread);
	}
	thread_unlock();
	return i < 0 ? i : 0;
}

/* ---- subscribers ---- */

int soft_open(struct umt *subscriber)
{
	int nr = (int)sysconf(_SC_NPROCESSORS_CONF);
	int error = subscriber_cores_alloc(subscriber, nr);
	void *memory;

	subscriber_assert_locked();
	if (error)
		return error;
	memory = mmap(NULL, subscriber_table_bytes(nr), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	subscriber->word = memory;
	subscriber->cores = (struct umt_core *)memory + 1;
	subscriber->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return subscriber->fd < 0 ? -errno : 0;
}

static void close_fds(struct umt *subscriber)
{
	int cpu;

	for (cpu = 0; subscriber->core_fds && cpu < subscriber->nr_cores; cpu++)
		if (subscriber->core_fds[cpu] >= 0)
			close(subscriber->core_fds[cpu]);
	if (subscriber->fd >= 0)
		close(subscriber->fd);
}

void soft_close(struct soft_set *set, struct umt *subscriber)
{
	struct soft_thread *thread;

	subscriber_assert_locked();
	thread_lock();
	for (thread = set->threads; thread; thread = thread->next) {
		int i = find_membership(thread, subscriber);

		if (i >= 0)
			end_membership(thread, i);
	}
	thread_unlock();
	close_fds(subscriber);
	subscriber_unmap(subscriber);
}

static bool take_told(struct umt *subscriber, struct umt_event *event)
{
	int cpu;

	for (cpu = 0; cpu < subscriber->nr_cores; cpu++) {
		if (!__atomic_load_n(
			    &subscriber->cores[cpu].reserved[UMT_CORE_TOLD],
			    __ATOMIC_SEQ_CST))
			continue;
		memset(event, 0, sizeof(*event));
		event->kind = UMT_IDLE;
		event->cpu = (__u16)cpu;
		return true;
	}
	return false;
}

/*
 * Under T, which writers of events hold.  So an event that comes after the last one
 * was read makes the descriptor readable again.
 */
int soft_next(struct umt *subscriber, struct umt_event *event)
{
	bool told;

	thread_lock();
	told = take_told(subscriber, event);
	if (!told)
		drain_eventfd(subscriber->fd);
	thread_unlock();
	return told;
}

int soft_core_fd(struct umt *subscriber, int cpu)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	subscriber_assert_locked();
	return fd < 0 ? -errno : fd;
}

void soft_drain(struct umt *subscriber, int cpu)
{
	drain_eventfd(subscriber_core_fd(subscriber, cpu));
}

void soft_child(struct umt *subscriber)
{
	close_fds(subscriber);
}
