/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd fill: whichever call of the source fails, its error and its place are told, what
 * it was asked for is missing, and another call makes the rest.
 */
#include "ktest.h"

#include <pthread.h>

#include "uffd.h"

#define LEN (2 * MIB)

/* One call of it fails, whatever it is asked for. */
struct failing_source {
	_Atomic unsigned calls;
	unsigned fail_call; /* 0: none fails */
	uint64_t offset; /* set: what the one that failed was asked for */
	size_t len;
};

static int give_words(void *buf, size_t len, uint64_t offset)
{
	uffd_words(buf, len, offset);
	return 0;
}

static int fail_one_call(void *buf, size_t len, uint64_t offset, void *arg)
{
	struct failing_source *source = arg;

	if (++source->calls != source->fail_call)
		return give_words(buf, len, offset);
	source->offset = offset;
	source->len = len;
	return -EIO;
}

static void check_present(const char *at, size_t len)
{
	for (size_t pos = 0; pos < len; pos += page_bytes())
		if (pages_present(at + pos, page_bytes()))
			assert_int_equal(
				uffd_wrong(at + pos, page_bytes(), pos),
				SIZE_MAX);
}

/* One thread makes the pages in ascending order, but that which a thread waits for, the
 * last one, at any time. */
static void check_failed_fill(const char *at,
			      const struct failing_source *source,
			      const struct ktask_result *result, bool in_order,
			      bool waits)
{
	size_t page = page_bytes(), offset = source->offset;
	size_t end = LEN - (waits ? page : 0);

	assert_int_equal(result->error, -EIO);
	assert_int_equal(result->fail_error, -EIO);
	assert_int_equal(result->fail_offset, offset);
	if (offset + source->len < end)
		end = offset + source->len;
	assert_int_equal(
		end > offset ? pages_present(at + offset, end - offset) : 0, 0);
	check_present(at, LEN);
	if (in_order && !waits) {
		assert_int_equal(pages_present(at, offset), offset / page);
		assert_int_equal(pages_present(at + offset, LEN - offset), 0);
	}
}

static void *touch_byte(void *arg)
{
	return (void *)(uintptr_t) * (volatile char *)arg;
}

/* Return: whether there were as many calls. */
static bool fail_and_repeat(unsigned fail_call, unsigned threads, bool waits)
{
	struct failing_source source = { .fail_call = fail_call };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
	int uffd = uffd_open(0);
	char *at = map_private(LEN);
	pthread_t thread;
	int error;

	assert_true(uffd_register(uffd, at, LEN));
	if (waits) {
		assert_int_equal(
			pthread_create(&thread, NULL, touch_byte, at + LEN - 1),
			0);
		assert_true(uffd_waits(uffd));
	}
	fill.uffd = uffd;
	fill.addr = at;
	fill.len = LEN;
	fill.source_func = fail_one_call;
	fill.source_arg = &source;
	opts.result = &result;
	opts.max_threads = threads;
	error = ktask_uffd_fill(&fill, &opts);
	if (source.calls >= fail_call) {
		assert_int_equal(error, -EIO);
		check_failed_fill(at, &source, &result, threads == 1, waits);
		assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	} else {
		assert_int_equal(error, 0);
	}
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
	assert_int_equal(uffd_wrong(at, LEN, 0), SIZE_MAX);
	/* What it waited for may have been asked for by the call that failed. */
	if (waits)
		pthread_join(thread, NULL);
	close(uffd);
	munmap(at, LEN);
	return source.calls >= fail_call;
}

static void any_call_of_the_source_may_fail(void **state)
{
	need_uffd();
	for (unsigned threads = 1; threads <= 2; threads++)
		for (unsigned waits = 0; waits < 2; waits++) {
			unsigned call = 1;

			while (fail_and_repeat(call, threads, waits))
				call++;
			/* Of 64 KiB at most. */
			assert_in_range(call - 1, LEN / 65536, 10000);
		}
}

KTEST_MAIN(KTEST(any_call_of_the_source_may_fail))
