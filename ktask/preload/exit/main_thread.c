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
 * the shim knows; after any other the watcher finds the thread gone when it next looks.
 *
 * Behaves badly: a helper that works at that moment, for another thread or --prefault, is
 * not ended.
 *
 * Locking: there is no lock.  has_ended is atomic; the main thread sets it, and the child
 * of a fork, which has one thread, resets it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim.h"

static pthread_key_t end_key;
static bool has_key;
static atomic_bool has_ended;

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
}

bool shim_main_has_ended(void)
{
	return atomic_load(&has_ended);
}

/* The kernel forgets a thread's list when the thread ends, though not the main thread
 * itself before the process ends. */
bool shim_main_is_gone(void)
{
	void *head = &head;
	size_t len;

	return !syscall(SYS_get_robust_list, getpid(), &head, &len) && !head;
}
