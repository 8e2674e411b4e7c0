/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without rights the next backend serves, and umt_info() says in a line why it
 * is not a better one.  What is asked for wrongly is refused.
 */
#include "support/subscribers.h"
#include "refuse.h"

#include <sys/syscall.h>
#include <sys/wait.h>

static struct umt_backends info_of_now(void)
{
	struct umt_backends info = { .size = sizeof(info) };

	ktest_check(umt_info(&info) == 0);
	return info;
}

static int open_backend(unsigned backend, unsigned flags)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = backend,
				       .flags = flags };
	struct umt *subscriber;
	int error = umt_open(&subscriber, &options);

	if (error)
		return error;
	error = umt_backend(subscriber);
	ktest_check(umt_thread_add(subscriber) == 0);
	umt_close(subscriber);
	return error;
}

static int without_rights(void *unused)
{
	struct umt_backends info;

	ktest_check(setgid(65534) == 0 && setuid(65534) == 0);
	info = info_of_now();
	fprintf(stderr, "# %s; %s\n", info.why[UMT_BPF], info.why[UMT_PERF]);
	ktest_check(info.backend == UMT_PERF || info.backend == UMT_EXPLICIT);
	ktest_check(strlen(info.why[UMT_BPF]) > 10);
	ktest_check(!strchr(info.why[UMT_BPF], '\n'));
	ktest_check(open_backend(UMT_ANY, 0) == info.backend);
	ktest_check(open_backend(UMT_BPF, 0) < 0);
	ktest_check(open_backend(UMT_ANY, UMT_TRACE) < 0);
	ktest_check(open_backend(UMT_EXPLICIT, 0) == UMT_EXPLICIT);
	return 0;
}

static void without_rights_the_next_serves(void **state)
{
	if (getuid())
		ktest_skip("only root can give rights up");
	assert_int_equal(ktest_in_child(without_rights, NULL), 0);
}

/* They fail with EACCES, as some containers have it. */
static int without_calls(void *unused)
{
	struct umt_backends info;

	ktest_check(refuse_whole(SYS_bpf, EACCES));
	info = info_of_now();
	ktest_check(info.backend != UMT_BPF);
	ktest_check(info.why[UMT_BPF][0]);
	ktest_check(refuse_whole(SYS_perf_event_open, EACCES));
	info = info_of_now();
	fprintf(stderr, "# %s; %s\n", info.why[UMT_BPF], info.why[UMT_PERF]);
	ktest_check(info.backend == UMT_EXPLICIT);
	ktest_check(strstr(info.why[UMT_PERF], "perf") != NULL);
	ktest_check(open_backend(UMT_ANY, 0) == UMT_EXPLICIT);
	ktest_check(open_backend(UMT_PERF, 0) == -EACCES);
	return 0;
}

static void without_any_explicit_calls_remain(void **state)
{
	assert_int_equal(ktest_in_child(without_calls, NULL), 0);
}

static void the_environment_narrows(void **state)
{
	setenv("UMT_BACKEND", "explicit", 1);
	assert_int_equal(open_backend(UMT_ANY, 0), UMT_EXPLICIT);
	setenv("UMT_BACKEND", "nonsense", 1);
	assert_true(open_backend(UMT_ANY, 0) > 0);
	unsetenv("UMT_BACKEND");
}

static void nonsense_is_refused(void **state)
{
	struct umt_options options = { .size = sizeof(options.size) - 1 };
	struct umt_backends info = { .size = sizeof(info.size) - 1 };
	struct umt_counts counts;
	struct umt *subscriber = NULL;

	assert_int_equal(umt_open(&subscriber, &options), -EINVAL);
	options.size = sizeof(options);
	options.backend = UMT_EXPLICIT + 1;
	assert_int_equal(umt_open(&subscriber, &options), -EINVAL);
	options.backend = UMT_EXPLICIT;
	options.flags = 4;
	assert_int_equal(umt_open(&subscriber, &options), -EINVAL);
	options.flags = 0;
	options.ring_bytes = 5000;
	assert_int_equal(umt_open(&subscriber, &options), -EINVAL);
	assert_null(subscriber);
	umt_close(NULL);
	assert_int_equal(umt_info(&info), -EINVAL);

	options.ring_bytes = 0;
	assert_int_equal(umt_open(&subscriber, &options), 0);
	assert_int_equal(umt_core_fd(subscriber, -1), -EINVAL);
	assert_int_equal(umt_core_fd(subscriber, umt_nr_cores(subscriber)),
			 -EINVAL);
	assert_int_equal(umt_core_counts(subscriber, -1, &counts), -EINVAL);
	umt_close(subscriber);
	assert_null(umt_backend_name(UMT_ANY));
	assert_null(umt_backend_name(4));
	assert_string_equal(umt_backend_name(UMT_PERF), "perf");
	assert_string_equal(umt_reason_name(UMT_IO), "io");
	assert_null(umt_reason_name(UMT_NR_REASONS));
	assert_non_null(strchr(umt_version(), '.'));
}

KTEST_MAIN(KTEST(without_rights_the_next_serves),
	   KTEST(without_any_explicit_calls_remain),
	   KTEST(the_environment_narrows), KTEST(nonsense_is_refused))
