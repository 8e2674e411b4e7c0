/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that were built with an older or a newer header are served: options
 * and attributes are read, and figures told, as far as their size goes.
 */
#include <stdlib.h>

#include <ktask/runtime.h>

#include "version.h"

VERSION_NO_PADDING(ktrt_options, reserved);
VERSION_NO_PADDING(ktrt_attr, move);

static int start_and_stop(void *options)
{
	int error = ktrt_start(options);

	if (!error)
		assert_int_equal(ktrt_stop(), 0);
	return error;
}

static void options_of_the_runtime(void **state)
{
	struct ktrt_options it = KTRT_OPTIONS_INIT;

	version_check_read(start_and_stop, &it, sizeof(it), sizeof(size_t), 1);
}

static int nr_done;

static int count_task(void *arg)
{
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_RELAXED);
	return 0;
}

static int spawn_task(void *attr)
{
	int error = ktrt_spawn_attr(count_task, NULL, attr);

	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_done, error ? 0 : 1);
	nr_done = 0;
	return error;
}

static void attributes_of_tasks(void **state)
{
	struct ktrt_attr it = KTRT_ATTR_INIT;

	assert_int_equal(ktrt_start(NULL), 0);
	version_check_read(spawn_task, &it, sizeof(it),
			   offsetof(struct ktrt_attr, node) + sizeof(it.node),
			   1);
	assert_int_equal(ktrt_stop(), 0);
}

static void hide_bytes(void *info, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < *(size_t *)info; i++)
		((char *)info)[i] = 0;
}

/* But for what is not the same each time. */
static int get_info(void *info)
{
	int error = ktrt_info_get(info);

	if (error)
		return error;
	hide_bytes(info, offsetof(struct ktrt_info, threads),
		   offsetof(struct ktrt_info, max_threads));
	hide_bytes(info, offsetof(struct ktrt_info, tasks),
		   sizeof(struct ktrt_info));
	return 0;
}

static void figures_of_the_runtime(void **state)
{
	struct ktrt_info filled = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&filled), -ESRCH);
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(get_info(&filled), 0);
	assert_int_not_equal(filled.workers, 0);
	version_check_filled(get_info, &filled, sizeof(filled), 1);
	assert_int_equal(ktrt_stop(), 0);
}

/* Starting is quicker so, and the same. */
static int begin_without_umt(void **state)
{
	setenv("KTRT_UMT", "0", 1);
	return version_begin(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(options_of_the_runtime),
		KTEST(attributes_of_tasks),
		KTEST(figures_of_the_runtime),
	};

	return cmocka_run_group_tests(tests, begin_without_umt, NULL);
}
