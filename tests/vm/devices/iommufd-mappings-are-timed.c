/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What mapping memory for iommufd's mock device takes, by one plain call and by
 * ktask_register() with two threads, of absent memory and of memory that is present.
 * The verdict is that the device reaches the memory.
 */
#include <pthread.h>

#include <ktask/register.h>

#include "iommufd_mock.h"
#include "side_times.h"

#define THREADS 2
#define IOVA (2 * MOCK_FIRST_IOVA)

static struct mock_device device;

/* Little, unless somebody asked for times. */
static size_t mapped_bytes(void)
{
	return getenv("KTASK_BENCH_ROUNDS") ? 64 * MIB : 16 * MIB;
}

static bool device_reaches(char *at, size_t len)
{
	return mock_reaches(&device, at, PAGE, IOVA) == 0 &&
	       mock_reaches(&device, at + len - PAGE, PAGE,
			    IOVA + len - PAGE) == 0;
}

static struct side_time run_plain(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();
	struct side_time took;

	(void)nr;
	assert_int_equal(mock_map(&device, at, len, IOVA,
				  MOCK_FIXED | MOCK_READABLE | MOCK_WRITEABLE),
			 0);
	took.seconds = took.longest = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_true(device_reaches(at, len));
	assert_int_equal(mock_unmap_all(&device), (int64_t)len);
	return took;
}

struct half {
	char *at;
	size_t len;
	uint64_t iova;
	int error;
};

static void *map_half(void *arg)
{
	struct half *half = arg;

	half->error = mock_map(&device, half->at, half->len, half->iova,
			       MOCK_FIXED | MOCK_READABLE | MOCK_WRITEABLE);
	return NULL;
}

/* What two threads can gain at most: a half each, and nothing else. */
static struct side_time run_halves(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns();
	struct half halves[2] = {
		{ at, len / 2, IOVA, -1 },
		{ at + len / 2, len - len / 2, IOVA + len / 2, -1 },
	};
	struct side_time took;
	pthread_t thread;

	(void)nr;
	assert_int_equal(pthread_create(&thread, NULL, map_half, &halves[1]),
			 0);
	map_half(&halves[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	took.seconds = took.longest = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_int_equal(halves[0].error, 0);
	assert_int_equal(halves[1].error, 0);
	assert_true(device_reaches(at, len));
	assert_int_equal(mock_unmap_all(&device), (int64_t)len);
	return took;
}

static struct side_time run_ktask(char *at, size_t len, size_t nr)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_iommu iommu = KTASK_IOMMU_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	uint64_t begin_ns = ktest_now_ns();
	struct side_time took;

	(void)nr;
	iommu.fd = device.fd;
	iommu.ioas_id = device.ioas_id;
	iommu.addr = at;
	iommu.iova = IOVA;
	opts.max_threads = THREADS;
	assert_int_equal(ktask_register_iommufd(&ctl, &iommu), 0);
	assert_int_equal(ktask_register(&registration, at, len, &ctl, &opts),
			 0);
	took.seconds = (double)(ktest_now_ns() - begin_ns) / 1e9;
	ktask_registration_info_get(registration, &info);
	took.longest = (double)info.longest_ns / 1e9;
	assert_true(device_reaches(at, len));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	return took;
}

static const struct timed_side sides[] = {
	{ "one call", run_plain, 1 },
	{ "two bare halves", run_halves, 1 },
	{ "ktask_register()", run_ktask, 1 },
};

static void absent_memory_is_mapped_each_way(void **state)
{
	(void)state;
	time_sides(sides, KTEST_ARRAY_SIZE(sides), mapped_bytes(), false);
}

static void present_memory_is_mapped_each_way(void **state)
{
	(void)state;
	time_sides(sides, KTEST_ARRAY_SIZE(sides), mapped_bytes(), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(absent_memory_is_mapped_each_way),
		KTEST(present_memory_is_mapped_each_way),
	};

	ktest_check(mock_open(&device) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
