/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations may be asked for by threads with little stack, as language runtimes
 * and callbacks have it.
 */
#include "ktest.h"

#include <pthread.h>

#include "files.h"
#include "pages.h"

#define LEN (32 * MIB)
#define STACK_BYTES (64 * KIB)
/* A frame may be larger than the C library's guard page. */
#define GUARD_BYTES (1 * MIB)

static char *paths[2];

static bool is_on_files(const char *name)
{
	return !strcmp(name, "warm") || !strcmp(name, "sync") ||
	       !strcmp(name, "copy_file");
}

/* Whether it succeeds is not the question. */
static void *run_one(void *arg)
{
	struct ktask_file file = { .path = paths[0],
				   .dst_path = paths[1],
				   .len = KTASK_TO_END };
	static const unsigned long node = 1;
	struct ktask_op_args args = { 0 };
	const char *name = arg;

	if (is_on_files(name)) {
		args.files = &file;
		args.nr_files = 1;
	} else {
		args.addr = map_private(LEN);
		args.len = LEN;
	}
	if (!strcmp(name, "copy"))
		args.src = map_private(LEN);
	if (!strcmp(name, "migrate")) {
		args.src = &node;
		args.src_len = 1;
	}
	ktask_op_run(ktask_op_find(name), &args, NULL);
	return NULL;
}

static int in_a_small_thread(void *name)
{
	char *guard = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = guard + GUARD_BYTES;
	pthread_attr_t attr;
	pthread_t thread;

	ktest_check(guard != MAP_FAILED);
	ktest_check(!mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE));
	ktest_check(!pthread_attr_init(&attr));
	ktest_check(!pthread_attr_setstack(&attr, stack, STACK_BYTES));
	ktest_check(!pthread_create(&thread, &attr, run_one, name));
	ktest_check(!pthread_join(thread, NULL));
	return 0;
}

static void every_operation(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers need stack of their own");
	paths[0] = files_make("from", 9 * MIB, 1);
	paths[1] = files_make("to", 0, 0);
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		int status = ktest_in_child(in_a_small_thread, (void *)name);

		if (status)
			fail_msg("%s: status %x", name, (unsigned)status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_operation, files_begin,
						files_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
