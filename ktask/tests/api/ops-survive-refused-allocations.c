/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every allocation may be refused: each operation then still does its work,
 * for what it cannot allocate it does not need.
 */
#include "ktest.h"

#include "failalloc.h"
#include "files.h"
#include "pages.h"

#define LEN (96 * MIB)

static void try_all(const char *name, unsigned flags)
{
	unsigned nth = 0;
	int error, failed;

	do {
		char *at = map_private(LEN);

		/* Many mappings: lock makes a list of them. */
		for (size_t i = 1; i < 40; i += 2)
			mprotect(at + i * MIB, MIB, PROT_READ);
		failalloc_arm(++nth);
		error = run_op(name, at, LEN, flags, NULL);
		failed = (int)failalloc_disarm();
		assert_int_equal(error, 0);
		munmap(at, LEN);
	} while (failed);
}

static void populating_memory(void **state)
{
	try_all("populate", KTASK_POPULATE_READ);
	try_all("populate", KTASK_POPULATE_READ | KTASK_POPULATE_TOUCH);
}

static void discarding_memory(void **state)
{
	try_all("discard", 0);
}

static void locking_memory(void **state)
{
	char *at = map_private(LEN);
	int error = ktask_lock(at, LEN, 0);

	munmap(at, LEN);
	if (error)
		ktest_skip("locking is not permitted");
	try_all("lock", 0);
}

/* With a block of the stack. */
static void files_without_any_memory(void **state)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .len = KTASK_TO_END };
	unsigned refused;
	int error;

	files_begin(state);
	file.path = files_make("file", 9 * MIB + 77, 1);
	failalloc_arm_from(1, FAILALLOC_ALL);
	error = files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL);
	refused = failalloc_disarm();
	assert_int_equal(error, 0);
	assert_true(refused > 1);
	assert_int_equal(file.size, 9 * MIB + 77);
	files_end(state);
}

static void warming_files(void **state)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .len = KTASK_TO_END };
	unsigned nth = 0;
	int failed;

	files_begin(state);
	file.path = files_make("file", 9 * MIB + 77, 1);
	do {
		int error;

		failalloc_arm(++nth);
		error = files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL);
		failed = (int)failalloc_disarm();
		assert_int_equal(error, 0);
	} while (failed);
	files_end(state);
}

KTEST_MAIN(KTEST(populating_memory), KTEST(discarding_memory),
	   KTEST(locking_memory), KTEST(files_without_any_memory),
	   KTEST(warming_files))
