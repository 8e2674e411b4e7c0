/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See soft.h.  The counts keep the program's rules (umt.bpf.c): a thread
 * is counted on one core or on none, increments come first.
 *
 * Behaves badly: one lock for all threads of the process; these backends are
 * for where nothing better may be had.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "umt/shared.h"
#include "soft.h"

/* ---- telling ---- */

static void poke(int fd)
{
	uint64_t one = 1;

	/* Full is readable as well. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

static void calm(int fd)
{
	uint64_t value;

	if (fd >= 0 && read(fd, &value, sizeof(value)) < 0)
		return;
}

/* As in the program: disarmed before the descriptor is written. */
static void ring_bell(struct umt *user, int cpu)
{
	struct umt_core *core = &user->cores[cpu];

	if (__atomic_exchange_n(&core->armed, 0, __ATOMIC_SEQ_CST))
		poke(user_core_fd(user, cpu));
}

static void tell_idle(struct umt *user, int cpu)
{
	struct umt_core *core = &user->cores[cpu];

	if (!__atomic_load_n(&user->word->wanted, __ATOMIC_SEQ_CST))
		return;
	if (!__atomic_exchange_n(&core->told, 1, __ATOMIC_SEQ_CST))
		poke(user->fd);
}

/* ---- counting ---- */

static void add_to(__u64 *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
}

static void count(struct umt *user, int cpu, bool moved)
{
	struct umt_core *core = &user->cores[cpu];

	add_to(moved ? &core->moved_in : &core->wakes);
	__atomic_fetch_add(&core->ready, 1, __ATOMIC_SEQ_CST);
	ring_bell(user, cpu);
}

static void uncount(struct umt *user, int cpu, bool moved)
{
	struct umt_core *core = &user->cores[cpu];

	add_to(moved ? &core->moved_out : &core->sleeps);
	if (__atomic_fetch_sub(&core->ready, 1, __ATOMIC_SEQ_CST) == 1)
		tell_idle(user, cpu);
	ring_bell(user, cpu);
}

int soft_core(const struct umt *user, int cpu)
{
	return cpu < 0 || cpu >= user->nr_cores ? 0 : cpu;
}

void soft_ready(struct soft_thread *thread, int cpu)
{
	bool moved = thread->counted;
	int from = thread->cpu;
	int i;

	if (moved && from == cpu)
		return;
	thread->counted = true;
	thread->cpu = cpu;
	for (i = 0; i < thread->nr; i++) {
		count(thread->user[i], soft_core(thread->user[i], cpu), moved);
		if (moved)
			uncount(thread->user[i],
				soft_core(thread->user[i], from), true);
	}
}

void soft_blocked(struct soft_thread *thread)
{
	int i;

	if (!thread->counted)
		return;
	thread->counted = false;
	for (i = 0; i < thread->nr; i++)
		uncount(thread->user[i],
			soft_core(thread->user[i], thread->cpu), false);
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

static int find(const struct soft_thread *thread, const struct umt *user)
{
	int i;

	for (i = 0; i < thread->nr; i++)
		if (thread->user[i] == user)
			return i;
	return -ENOENT;
}

static int add_locked(struct soft_set *set, struct umt *user)
{
	struct soft_thread *thread = soft_self(set);
	int error = 0;

	if (!thread)
		thread = new_self(set, &error);
	if (!thread)
		return error;
	if (find(thread, user) >= 0)
		return -EEXIST;
	if (thread->nr == UMT_MEMBERSHIPS)
		return -EUSERS;
	if (thread->counted)
		count(user, soft_core(user, thread->cpu), true);
	thread->user[thread->nr++] = user;
	return 0;
}

int soft_add(struct soft_set *set, struct umt *user)
{
	int error;

	thread_lock();
	error = add_locked(set, user);
	thread_unlock();
	return error;
}

static void leave(struct soft_thread *thread, int i)
{
	struct umt *user = thread->user[i];

	thread->user[i] = thread->user[--thread->nr];
	if (thread->counted)
		uncount(user, soft_core(user, thread->cpu), true);
}

int soft_remove(struct soft_set *set, struct umt *user)
{
	struct soft_thread *thread = soft_self(set);
	int i = -ENOENT;

	thread_lock();
	if (thread)
		i = find(thread, user);
	if (i >= 0)
		leave(thread, i);
	if (thread && !thread->nr) {
		pthread_setspecific(set->key, NULL);
		soft_forget(thread);
	}
	thread_unlock();
	return i < 0 ? i : 0;
}

/* ---- users ---- */

int soft_open(struct umt *user)
{
	int nr = (int)sysconf(_SC_NPROCESSORS_CONF);
	int error = user_cores_alloc(user, nr);
	void *memory;

	if (error)
		return error;
	memory = mmap(NULL, user_table_bytes(nr), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	user->word = memory;
	user->cores = (struct umt_core *)memory + 1;
	user->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return user->fd < 0 ? -errno : 0;
}

static void close_fds(struct umt *user)
{
	int cpu;

	for (cpu = 0; user->core_fds && cpu < user->nr_cores; cpu++)
		if (user->core_fds[cpu] >= 0)
			close(user->core_fds[cpu]);
	if (user->fd >= 0)
		close(user->fd);
}

void soft_close(struct soft_set *set, struct umt *user)
{
	struct soft_thread *thread;

	thread_lock();
	for (thread = set->threads; thread; thread = thread->next) {
		int i = find(thread, user);

		if (i >= 0)
			leave(thread, i);
	}
	thread_unlock();
	close_fds(user);
	user_unmap(user);
}

static bool take_told(struct umt *user, struct umt_event *event)
{
	int cpu;

	for (cpu = 0; cpu < user->nr_cores; cpu++) {
		if (!__atomic_load_n(&user->cores[cpu].told, __ATOMIC_SEQ_CST))
			continue;
		memset(event, 0, sizeof(*event));
		event->kind = UMT_IDLE;
		event->cpu = (__u16)cpu;
		return true;
	}
	return false;
}

/* With the lock, as who tells has it: what was not told since is not readable. */
int soft_next(struct umt *user, struct umt_event *event)
{
	bool told;

	thread_lock();
	told = take_told(user, event);
	if (!told)
		calm(user->fd);
	thread_unlock();
	return told;
}

int soft_core_fd(struct umt *user, int cpu)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void soft_quiet(struct umt *user, int cpu)
{
	calm(user_core_fd(user, cpu));
}

void soft_child(struct umt *user)
{
	close_fds(user);
}
