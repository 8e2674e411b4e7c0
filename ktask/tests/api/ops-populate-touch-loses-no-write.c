/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate by touching: what other threads store meanwhile is not lost.
 */
#include "ktest.h"

#include <pthread.h>
#include <stdatomic.h>

#include "pages.h"

#define LEN (8 * MIB)
#define ROUNDS 20

struct writer {
	_Atomic unsigned char *at;
	_Atomic bool stop;
	unsigned long rounds;
};

/* Counts up the byte that is touched, and sees its own count each time. */
static void *write_pages(void *arg)
{
	struct writer *writer = arg;
	size_t step = page_bytes();

	while (!atomic_load(&writer->stop)) {
		for (size_t i = 0; i < LEN; i += step) {
			unsigned char value = (unsigned char)writer->rounds;

			if (atomic_load(&writer->at[i]) != value)
				return "a store was lost";
			atomic_store(&writer->at[i],
				     (unsigned char)(value + 1));
		}
		writer->rounds++;
	}
	return NULL;
}

static void stores_beside_it_stay(void **state)
{
	struct writer writer = { .at = (void *)map_private(LEN) };
	pthread_t thread;
	void *complaint;

	assert_int_equal(pthread_create(&thread, NULL, write_pages, &writer),
			 0);
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(ktask_populate((void *)writer.at, LEN,
						KTASK_POPULATE_TOUCH),
				 0);
	atomic_store(&writer.stop, true);
	pthread_join(thread, &complaint);
	assert_null(complaint);
	munmap((void *)writer.at, LEN);
}

static void contents_stay(void **state)
{
	char *at = map_private(LEN);

	for (size_t i = 0; i < LEN; i++)
		at[i] = (char)(i * 7 + i / 4096);
	assert_int_equal(ktask_populate(at, LEN, KTASK_POPULATE_TOUCH), 0);
	for (size_t i = 0; i < LEN; i++)
		if (at[i] != (char)(i * 7 + i / 4096))
			fail_msg("byte %zu changed", i);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(stores_beside_it_stay), KTEST(contents_stay))
