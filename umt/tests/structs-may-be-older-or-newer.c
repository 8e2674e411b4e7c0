/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that were built with an older or a newer header are served: options
 * are read, and what backends there are is told, as far as their size goes.
 */
#include <umt.h>

#include "version.h"

VERSION_NO_PADDING(umt_options, ring_bytes);

static int open_subscriber(void *options)
{
	struct umt *subscriber = NULL;
	int error = umt_open(&subscriber, options);

	if (!error)
		umt_close(subscriber);
	return error;
}

static void options_of_subscribers(void **state)
{
	struct umt_options it = { .size = sizeof(it) };

	version_check_read(open_subscriber, &it, sizeof(it), sizeof(size_t), 8);
}

static int get_info(void *info)
{
	return umt_info(info);
}

static void backends_and_reasons(void **state)
{
	struct umt_backends filled = { .size = sizeof(filled) };

	assert_int_equal(get_info(&filled), 0);
	assert_int_not_equal(filled.backend, 0);
	version_check_filled(get_info, &filled, sizeof(filled), 160);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(options_of_subscribers),
		KTEST(backends_and_reasons),
	};

	return cmocka_run_group_tests(tests, version_begin, NULL);
}
