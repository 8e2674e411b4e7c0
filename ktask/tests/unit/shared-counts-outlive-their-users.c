/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The counts of a shared mapping are unmapped only when no thread uses them any more:
 * threads may give back, or look at, one part of a mapping while another thread unmaps
 * another part and maps the next one.
 */
#include <pthread.h>
#include <sched.h>

#include "ktest.h"

#include "preload/ahead/inherited_mappings.c"

#define START ((uintptr_t)0x10000000)
#define LEN ((uintptr_t)64 << 20)
#define ROUNDS (KTEST_TSAN ? 20000 : 200000)
#define NR_COUNTS 64
#define COUNTS_BYTES 256

/* What the table asks of the rest of the shim. */
atomic_uint shim_ahead_watched;
_Atomic size_t shim_ahead_least_block;

bool ahead_is_unlimited(void)
{
	return true;
}

bool shim_filter_allows(void)
{
	return true;
}

/* Memory that is never unmapped, so that it shows who used it afterwards. */
static _Atomic uint64_t counts[NR_COUNTS][COUNTS_BYTES / 8];
static bool is_mapped[NR_COUNTS];
static unsigned nr_used_late;

static bool is_zero(size_t i)
{
	for (size_t word = 0; word < COUNTS_BYTES / 8; word++)
		if (atomic_load(&counts[i][word]))
			return false;
	return true;
}

static void clear_counts(size_t i)
{
	for (size_t word = 0; word < COUNTS_BYTES / 8; word++)
		atomic_store(&counts[i][word], 0);
}

void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset)
{
	static size_t last;

	assert_true(len <= COUNTS_BYTES);
	for (size_t i = 0; i < NR_COUNTS; i++) {
		last = (last + 1) % NR_COUNTS;
		if (is_mapped[last])
			continue;
		nr_used_late += !is_zero(last);
		clear_counts(last);
		is_mapped[last] = true;
		return (void *)counts[last];
	}
	return MAP_FAILED;
}

int real_munmap(void *addr, size_t len)
{
	size_t i = (size_t)((char *)addr - (char *)counts) / sizeof(counts[0]);

	assert_true(i < NR_COUNTS && is_mapped[i]);
	clear_counts(i);
	is_mapped[i] = false;
	return 0;
}

static atomic_bool is_over;

static void *give_back(void *unused)
{
	while (!atomic_load(&is_over))
		inherited_mappings_give_back(START, START + 1);
	return NULL;
}

static void begin_one(uintptr_t start, uintptr_t end,
		      struct shared_waste *waste, bool begins)
{
	if (begins)
		shared_waste_begin(waste);
}

static void *watch_each(void *unused)
{
	while (!atomic_load(&is_over))
		inherited_mappings_each(begin_one);
	return NULL;
}

/* What a thread used when its mapping went stays mapped; no thread does any more. */
static void unmap_others(void)
{
	for (size_t i = 0; i < NR_MAPPINGS; i++)
		while (atomic_load(&inherited_table[i].nr_users))
			sched_yield();
	for (size_t i = 0; i < NR_COUNTS; i++)
		if (is_mapped[i])
			real_munmap((void *)counts[i], COUNTS_BYTES);
}

/* Return: how often counts were changed that had been unmapped. */
static unsigned unmap_beside(void *(*use)(void *unused), bool inherited)
{
	pthread_t thread;

	nr_used_late = 0;
	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&thread, NULL, use, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		inherited_mappings_add(START, START + LEN);
		inherited_mappings_fork();
		for (size_t at = 0; at < NR_MAPPINGS; at++)
			inherited_table[at].inherited = inherited;
		inherited_mappings_drop(START, START + LEN);
		if (!(i % (NR_COUNTS / 2)))
			unmap_others();
	}
	atomic_store(&is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	unmap_others();
	assert_int_equal(inherited_mappings_nr(), 0);
	return nr_used_late;
}

static void one_thread_gives_back(void **state)
{
	assert_int_equal(unmap_beside(give_back, false), 0);
}

static void one_thread_begins_to_watch(void **state)
{
	assert_int_equal(unmap_beside(watch_each, true), 0);
}

/* Nobody uses them: all go. */
static void nothing_is_left(void **state)
{
	for (int i = 0; i < 2 * NR_COUNTS; i++) {
		inherited_mappings_add(START, START + LEN);
		inherited_mappings_fork();
		assert_non_null(inherited_table[0].waste);
		inherited_mappings_drop(START, START + LEN);
	}
	for (size_t i = 0; i < NR_COUNTS; i++)
		assert_false(is_mapped[i]);
}

KTEST_MAIN(KTEST(one_thread_gives_back), KTEST(one_thread_begins_to_watch),
	   KTEST(nothing_is_left))
