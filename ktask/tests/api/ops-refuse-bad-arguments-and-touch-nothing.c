/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Wrong arguments are -EINVAL from every operation, before a page is touched.
 */
#include "ktest.h"

#include "pages.h"

#define LEN (4 * MIB)

static char *target;
static char source[64];

static int try_operation(const char *name, struct ktask_op_args args)
{
	return ktask_op_run(ktask_op_find(name), &args, NULL);
}

static bool on_files(const char *name)
{
	return !strcmp(name, "warm");
}

/* Arguments with which @name would work. */
static struct ktask_op_args make_args(const char *name)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = target,
				      .len = LEN };

	if (on_files(name))
		args = (struct ktask_op_args)KTASK_OP_ARGS_INIT;
	return args;
}

static bool wants_pages(const char *name)
{
	return strcmp(name, "fill");
}

static void check_untouched(void)
{
	assert_int_equal(pages_present(target, LEN), 0);
}

static void bad_addresses(void **state)
{
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		struct ktask_op_args args = make_args(name);

		if (on_files(name))
			continue;
		args.addr = NULL;
		assert_int_equal(try_operation(name, args), -EINVAL);
		args = make_args(name);
		args.len = SIZE_MAX;
		assert_int_equal(try_operation(name, args), -EINVAL);
		args.len = SIZE_MAX - (uintptr_t)target + 1;
		assert_int_equal(try_operation(name, args), -EINVAL);
		if (wants_pages(name)) {
			args = make_args(name);
			args.addr = target + 1;
			assert_int_equal(try_operation(name, args), -EINVAL);
			args.addr = target + page_bytes() - 1;
			assert_int_equal(try_operation(name, args), -EINVAL);
		}
	}
	check_untouched();
}

static void unknown_flags(void **state)
{
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		struct ktask_op_args args = make_args(name);

		/* No operation knows more than two flags. */
		for (unsigned bit = 2; bit < 32; bit++) {
			args.flags = 1u << bit;
			assert_int_equal(try_operation(name, args), -EINVAL);
		}
		args.len = 0;
		assert_int_equal(try_operation(name, args), -EINVAL);
	}
	assert_int_equal(ktask_lock(target, LEN, 2), -EINVAL);
	assert_int_equal(
		ktask_discard(target, LEN,
			      KTASK_DISCARD_FREE | KTASK_DISCARD_LOCKED),
		-EINVAL);
	assert_int_equal(ktask_fill(target, LEN, NULL, 0,
				    KTASK_STORE_STREAM | KTASK_STORE_CACHED),
			 -EINVAL);
	check_untouched();
}

static void fields_of_other_operations(void **state)
{
	static const char *const plain[] = { "populate", "discard", "lock",
					     "unmap", "unlock" };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(plain); i++) {
		struct ktask_op_args args = make_args(plain[i]);

		args.src = source;
		assert_int_equal(try_operation(plain[i], args), -EINVAL);
		args.src = NULL;
		args.src_len = 1;
		assert_int_equal(try_operation(plain[i], args), -EINVAL);
	}
	check_untouched();
}

static void files_and_memory_are_not_mixed(void **state)
{
	struct ktask_file file = { .struct_size = sizeof(file), .fd = -1 };

	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		struct ktask_op_args args = make_args(name);

		if (on_files(name)) {
			args.addr = target;
			assert_int_equal(try_operation(name, args), -EINVAL);
			args.addr = NULL;
			args.len = LEN;
			assert_int_equal(try_operation(name, args), -EINVAL);
			args.len = 0;
			args.src = source;
			assert_int_equal(try_operation(name, args), -EINVAL);
			args.src = NULL;
			args.nr_files = 1;
			assert_int_equal(try_operation(name, args), -EINVAL);
			continue;
		}
		args.files = &file;
		assert_int_equal(try_operation(name, args), -EINVAL);
		args.files = NULL;
		args.nr_files = 1;
		assert_int_equal(try_operation(name, args), -EINVAL);
	}
	check_untouched();
}

static void bad_patterns(void **state)
{
	assert_int_equal(ktask_fill(target, LEN, source, 0, 0), -EINVAL);
	assert_int_equal(ktask_fill(target, LEN, NULL, 1, 0), -EINVAL);
	assert_int_equal(ktask_fill(target, LEN, source, 4097, 0), -EINVAL);
	check_untouched();
}

static void bad_options(void **state)
{
	struct ktask_op_args args = make_args("populate");
	struct ktask_result result = KTASK_RESULT_INIT;
	struct {
		struct ktask_opts opts;
		char more[16];
	} longer = { .opts = { .struct_size = sizeof(longer) } };
	struct ktask_opts opts = { 0 };
	const struct ktask_op *op = ktask_op_find("populate");

	assert_int_equal(ktask_op_run(op, &args, &opts), -EINVAL);
	opts.struct_size = sizeof(opts.struct_size) - 1;
	assert_int_equal(ktask_op_run(op, &args, &opts), -EINVAL);
	for (unsigned i = 0; i < 3; i++) {
		opts = (struct ktask_opts)KTASK_OPTS_INIT;
		opts.reserved[i] = 1;
		assert_int_equal(ktask_op_run(op, &args, &opts), -EINVAL);
	}
	opts = (struct ktask_opts)KTASK_OPTS_INIT;
	opts.flags = ~KTASK_FIXED;
	assert_int_equal(ktask_op_run(op, &args, &opts), -EINVAL);
	opts = (struct ktask_opts)KTASK_OPTS_INIT;
	result.struct_size = 0;
	opts.result = &result;
	assert_int_equal(ktask_op_run(op, &args, &opts), -EINVAL);
	longer.more[15] = 1;
	assert_int_equal(ktask_op_run(op, &args, &longer.opts), -E2BIG);
	assert_int_equal(ktask_op_run(NULL, &args, NULL), -EINVAL);
	assert_int_equal(ktask_op_run(op, NULL, NULL), -EINVAL);
	check_untouched();

	/* A longer structure that asks for nothing new will do. */
	longer.more[15] = 0;
	args.len = 0;
	assert_int_equal(ktask_op_run(op, &args, &longer.opts), 0);
}

static void nothing_is_done_for_length_0(void **state)
{
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));
		struct ktask_op_args args = make_args(name);

		args.len = 0;
		assert_int_equal(try_operation(name, args), 0);
		args.addr = NULL;
		assert_int_equal(try_operation(name, args), 0);
	}
	check_untouched();
}

static void the_result_tells_of_it(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;

	result.units = 5;
	assert_int_equal(run_op("populate", target + 1, LEN, 0, &result),
			 -EINVAL);
	assert_int_equal(result.error, -EINVAL);
	assert_int_equal(result.units, 0);
}

static int map_target(void **state)
{
	target = map_private(LEN);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(bad_addresses),
		KTEST(unknown_flags),
		KTEST(fields_of_other_operations),
		KTEST(files_and_memory_are_not_mixed),
		KTEST(bad_patterns),
		KTEST(bad_options),
		KTEST(nothing_is_done_for_length_0),
		KTEST(the_result_tells_of_it),
	};

	return cmocka_run_group_tests(tests, map_target, NULL);
}
