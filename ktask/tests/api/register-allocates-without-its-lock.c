/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Room for the pieces of a registration is allocated without its lock: a helper of the
 * lowest priority may take long to allocate, and the caller would wait for the lock.
 */
#include "ktest.h"

#include <pthread.h>
#include <stdlib.h>

#include "pages.h"
#include "ops/registration.h"

#define NR_PIECES 1000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static void the_lock_is_free(void **state)
{
	ktest_skip("the allocator is the sanitizer's");
}

#else

void *__libc_malloc(size_t size);
void *__libc_realloc(void *at, size_t size);
void *malloc(size_t size);
void *realloc(void *at, size_t size);

static struct ktask_registration *watched;
static unsigned nr_allocations, nr_locked;

static void note_lock(void)
{
	if (!watched)
		return;
	nr_allocations++;
	if (pthread_mutex_trylock(&watched->lock))
		nr_locked++;
	else
		pthread_mutex_unlock(&watched->lock);
}

void *malloc(size_t size)
{
	note_lock();
	return __libc_malloc(size);
}

void *realloc(void *at, size_t size)
{
	note_lock();
	return __libc_realloc(at, size);
}

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static void the_lock_is_free(void **state)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	uintptr_t start = MIB;

	ctl.register_func = ctl.unregister_func = do_nothing;
	watched = registration_new(start, NR_PIECES * page_bytes(), &ctl,
				   page_bytes(), start);
	assert_non_null(watched);
	for (size_t i = 0; i < NR_PIECES; i++) {
		uintptr_t at = start + i * page_bytes();

		assert_int_equal(
			registration_add(watched, at, at + page_bytes()), 0);
	}
	assert_int_equal(watched->nr_pieces, NR_PIECES);
	for (size_t i = 0; i < NR_PIECES; i++)
		assert_int_equal(watched->pieces[i].start,
				 start + i * page_bytes());
	assert_true(nr_allocations > 1);
	assert_int_equal(nr_locked, 0);
	registration_free(watched);
	watched = NULL;
}

#endif

KTEST_MAIN(KTEST(the_lock_is_free))
