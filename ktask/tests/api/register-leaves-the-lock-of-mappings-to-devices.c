/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: while a device is called that takes the lock of the process's mappings, no
 * thread populates, which holds this lock; helpers touch pages instead.
 *
 * A helper may have begun a step of populating before the call, or have looked just
 * before it: one step of each helper is allowed in a call.
 */
#include "ktest.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "device.h"
#include "syscalls.h"

#define LEN (128 * MIB)
#define HELPERS 1u
#define ATTEMPTS 20

static _Atomic bool calling;
static _Atomic unsigned nr_asked; /* in a call of the device */

static bool note_populate(long number, const long args[6], long *result)
{
	(void)result;
	if (number == SYS_madvise && args[1] && calling &&
	    (args[2] == MADV_POPULATE_WRITE || args[2] == MADV_POPULATE_READ))
		nr_asked++;
	return false;
}

struct seen {
	char *end; /* of the range */
	unsigned most_asked; /* in one call */
	bool made; /* pages behind a piece, in its call */
};

/* Until pages were made meanwhile, 20 ms at most. */
static int watch_call(struct device *device, char *start, char *end)
{
	struct seen *seen = device->arg;
	size_t behind = (size_t)(seen->end - end), before;
	bool made = false;

	(void)start;
	before = pages_present(end, behind);
	nr_asked = 0;
	calling = true;
	for (int i = 0; i < 20 && !made; i++) {
		usleep(1000);
		made = pages_present(end, behind) * page_bytes() >=
		       before * page_bytes() + 6 * MIB;
	}
	calling = false;
	seen->made |= made;
	if (nr_asked > seen->most_asked)
		seen->most_asked = nr_asked;
	return 0;
}

static struct seen register_all(unsigned flags)
{
	struct ktask_registration *registration;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);
	struct seen seen = { .end = at + LEN };

	madvise(at, LEN, MADV_NOHUGEPAGE);
	device_init(&device);
	device.before = watch_call;
	device.arg = &seen;
	ctl = device_ctl(&device, flags);
	ctl.max_piece_bytes = 16 * MIB;
	opts.max_threads = 1 + HELPERS;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, &opts),
			 0);
	assert_int_equal(device_bytes(&device), LEN);
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(device.wrong, 0);
	munmap(at, LEN);
	return seen;
}

static void pages_are_touched_while_the_device_is_called(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	for (int i = 0; i < ATTEMPTS && !seen.made; i++) {
		seen = register_all(KTASK_REGISTER_LOCKS_MAPPINGS);
		assert_in_range(seen.most_asked, 0, HELPERS);
	}
	if (!seen.made)
		ktest_skip("no helper came");
}

static void others_are_populated_for_all_the_time(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	for (int i = 0; i < ATTEMPTS && seen.most_asked <= HELPERS; i++)
		seen = register_all(0);
	if (seen.most_asked <= HELPERS)
		ktest_skip("no helper came");
}

static void touched_pages_keep_what_they_have(void **state)
{
	struct ktask_registration *registration;
	static struct device device;
	struct ktask_register_ctl ctl;
	char *at = map_private(LEN);

	(void)state;
	for (size_t i = 0; i < LEN; i += 3 * MIB + 4096)
		at[i] = (char)(i / MIB + 1);
	device_init(&device);
	ctl = device_ctl(&device, KTASK_REGISTER_LOCKS_MAPPINGS);
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	for (size_t i = 0; i < LEN; i += 3 * MIB + 4096)
		assert_int_equal(at[i], (char)(i / MIB + 1));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	munmap(at, LEN);
}

/* Wherever the hole is: its window may be populated or touched. */
static void holes_are_told_to_the_byte(void **state)
{
	static struct device device;

	(void)state;
	for (size_t hole = 4096; hole < LEN; hole += 9 * MIB + 4096) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_opts opts = KTASK_OPTS_INIT;
		struct ktask_registration *registration;
		struct ktask_register_ctl ctl;
		char *at = map_private(LEN);

		munmap(at + hole, page_bytes());
		device_init(&device);
		ctl = device_ctl(&device, KTASK_REGISTER_LOCKS_MAPPINGS);
		opts.result = &result;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, &opts),
			-ENOMEM);
		assert_int_equal(result.fail_offset, hole);
		assert_int_equal(device.nr, 0);
		munmap(at, LEN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(pages_are_touched_while_the_device_is_called),
		KTEST(others_are_populated_for_all_the_time),
		KTEST(touched_pages_keep_what_they_have),
		KTEST(holes_are_told_to_the_byte),
	};

	syscalls_answer = note_populate;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
