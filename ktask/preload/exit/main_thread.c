/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The end of the main thread, where the process goes on: by pthread_exit() or cancellation.
 *
 * When the last thread ends, the C library ends the process by exit(0).  It counts the
 * watcher too, which would keep the process alive for ever.  The watcher could not be the
 * last thread either: the handlers of exit() and the streams would not find the program's
 * files, as the watcher has its own descriptor table, and so have the helpers that it
 * made.  So a destructor of thread-specific data, which such an end of the main thread
 * calls, ends all of these while the program's thread still lives, and nothing is watched
 * from then on.  A destructor sees a cancellation, which a pthread_exit() of the shim's own
 * would not.
 *
 * Other helpers would be the last threads until they have idled for KTASK_IDLE_MS, and
 * block all signals.  So idle ones end as well, and later ones after each call.
 *
 * A main thread that ends by the system call itself calls no destructor.  Of a syscall()
 * the shim knows.  After any other the kernel wakes the watcher: the main thread holds a
 * robust mutex as long as it lives, and the watcher sleeps on the futex in that mutex.  The
 * thread's own futex, of which the kernel would tell as well, is pthread_join()'s: the
 * kernel wakes one thread that waits there.  A pidfd of a thread is new in Linux 6.9.
 *
 * Behaves badly: a helper that works at that moment, for another thread or --prefault, is
 * not ended.  A program that replaces the main thread's list of robust mutexes, or is
 * restored with another thread id, wakes nobody by such an end.
 *
 * Locking: has_ended is atomic; the main thread sets it, and the child of a fork, which has
 * one thread, resets it.  So it does with lifelong_mutex, which no other thread locks.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim.h"

static pthread_key_t end_key;
static bool has_key;
static atomic_bool has_ended;
static pthread_mutex_t lifelong_mutex;

/* As the kernel knows it: the owner's thread id, FUTEX_WAITERS if somebody sleeps there,
 * and FUTEX_OWNER_DIED once the owner has ended. */
static _Atomic uint32_t *lifelong_futex(void)
{
	return (_Atomic uint32_t *)&lifelong_mutex.__data.__lock;
}

/* It makes no system call, which a filter might kill for. */
static void lock_for_life(void)
{
	pthread_mutexattr_t attr;

	if (pthread_mutexattr_init(&attr))
		return;
	if (!pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
	    !pthread_mutex_init(&lifelong_mutex, &attr))
		pthread_mutex_lock(&lifelong_mutex);
	pthread_mutexattr_destroy(&attr);
}

static void end_with_main(void *unused)
{
	atomic_store(&has_ended, true);
	if (!shim_filter_allows() || !shim_is_ours() || shim_busy())
		return;
	shim_raise_working();
	shim_ahead_end();
	shim_trim();
}

/* Any value but NULL has the destructor called. */
static void mark_main(void)
{
	if (has_key)
		pthread_setspecific(end_key, &end_key);
}

void shim_main_init(void)
{
	has_key = !pthread_key_create(&end_key, end_with_main);
	mark_main();
	lock_for_life();
}

/* A child of vfork() has its parent's memory, and must not decide for it. */
void shim_thread_ends(void)
{
	if (has_key && pthread_getspecific(end_key) && shim_filter_allows() &&
	    shim_is_ours())
		end_with_main(NULL);
}

void shim_main_forked(void)
{
	atomic_store(&has_ended, false);
	mark_main();
	lock_for_life();
}

bool shim_main_has_ended(void)
{
	return atomic_load(&has_ended);
}

bool shim_main_is_gone(void)
{
	return atomic_load(lifelong_futex()) & FUTEX_OWNER_DIED;
}

bool shim_is_lifelong_futex(const void *addr)
{
	return addr == (const void *)lifelong_futex();
}

/*
 * The sleeper sets FUTEX_WAITERS and then reads the number.  Whoever wakes it changes the
 * number first and then clears FUTEX_WAITERS.  So either the sleeper reads the new number,
 * or the kernel finds the futex changed, or the sleeper is woken.
 */
void shim_main_wait(const _Atomic uint32_t *news, uint32_t seen,
		    const struct timespec *wait)
{
	uint32_t word = FUTEX_WAITERS |
			atomic_fetch_or(lifelong_futex(), FUTEX_WAITERS);

	/* The kernel wakes who has not said FUTEX_PRIVATE_FLAG. */
	if (!(word & FUTEX_OWNER_DIED) && atomic_load(news) == seen)
		syscall(SYS_futex, lifelong_futex(), FUTEX_WAIT, word, wait,
			NULL, 0);
}

void shim_main_wake(void)
{
	if (atomic_fetch_and(lifelong_futex(), ~FUTEX_WAITERS) & FUTEX_WAITERS)
		syscall(SYS_futex, lifelong_futex(), FUTEX_WAKE, 1, NULL, NULL,
			0);
}
