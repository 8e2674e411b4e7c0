/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fixed buffers: the plain way is one call for all slots.  ktask_register() fills the
 * same slots by more calls, the longest of which is told beside its budget.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include <ktask/register.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "part.h"

#define SLOT_BYTES (4 * MIB)
#define BUDGET_MS 50

enum side { PLAIN, PARALLEL, IN_ORDER, NR_SIDES };

static const char *const side_names[] = {
	"one call for all",
	"ktask_register(), several at once",
	"ktask_register(), in order",
};

struct uring_times {
	double seconds[NR_SIDES][MAX_ROUNDS];
	double cpu_seconds[NR_SIDES][MAX_ROUNDS]; /* of all threads */
	double back[NR_SIDES][MAX_ROUNDS]; /* of unregistering */
	double longest[NR_SIDES]; /* single call, of all rounds */
};

static int open_ring(unsigned slots)
{
	struct io_uring_params params = { 0 };
	struct io_uring_rsrc_register table = {
		.nr = slots,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	check_that(fd >= 0, "making an io_uring");
	check_that(!syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS2,
			    &table, sizeof(table)),
		   "making a table of buffers");
	return fd;
}

static void update_all(int fd, const struct iovec *parts, unsigned nr)
{
	struct io_uring_rsrc_update2 update = {
		.data = (uintptr_t)parts,
		.nr = nr,
	};

	check_that(syscall(SYS_io_uring_register, fd,
			   IORING_REGISTER_BUFFERS_UPDATE, &update,
			   sizeof(update)) == (long)nr,
		   "registering buffers");
}

static void run_plain(struct uring_times *times, unsigned round, int fd,
		      char *at, size_t len)
{
	unsigned nr = (unsigned)(len / SLOT_BYTES);
	struct iovec *parts = calloc(2 * nr, sizeof(*parts));
	uint64_t begin_ns, cpu_ns;

	check_that(!!parts, "memory");
	for (unsigned i = 0; i < nr; i++)
		parts[i] = (struct iovec){ at + i * SLOT_BYTES, SLOT_BYTES };
	cpu_ns = clock_cpu_ns();
	begin_ns = clock_ns();
	update_all(fd, parts, nr);
	times->seconds[PLAIN][round] = (double)(clock_ns() - begin_ns) / 1e9;
	times->cpu_seconds[PLAIN][round] =
		(double)(clock_cpu_ns() - cpu_ns) / 1e9;
	if (times->seconds[PLAIN][round] > times->longest[PLAIN])
		times->longest[PLAIN] = times->seconds[PLAIN][round];
	begin_ns = clock_ns();
	update_all(fd, parts + nr, nr);
	times->back[PLAIN][round] = (double)(clock_ns() - begin_ns) / 1e9;
	free(parts);
}

static void run_ktask(struct uring_times *times, enum side side, unsigned round,
		      int fd, char *at, size_t len)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	uint64_t cpu_ns = clock_cpu_ns(), begin_ns = clock_ns();

	buffers.ring_fd = fd;
	buffers.addr = at;
	buffers.slot_bytes = SLOT_BYTES;
	errno = -ktask_register_uring(&ctl, &buffers);
	check_that(!errno, "preparing");
	ctl.stall_us = BUDGET_MS * 1000;
	if (side == IN_ORDER)
		ctl.flags &= ~KTASK_REGISTER_PARALLEL;
	errno = -ktask_register(&registration, at, len, &ctl, NULL);
	check_that(!errno, "registering");
	times->seconds[side][round] = (double)(clock_ns() - begin_ns) / 1e9;
	times->cpu_seconds[side][round] =
		(double)(clock_cpu_ns() - cpu_ns) / 1e9;
	ktask_registration_info_get(registration, &info);
	if ((double)info.longest_ns / 1e9 > times->longest[side])
		times->longest[side] = (double)info.longest_ns / 1e9;
	begin_ns = clock_ns();
	errno = -ktask_unregister(&registration, NULL);
	check_that(!errno, "unregistering");
	times->back[side][round] = (double)(clock_ns() - begin_ns) / 1e9;
}

static void run_side(struct uring_times *times, enum side side, unsigned round,
		     size_t len, int present)
{
	int fd = open_ring((unsigned)(len / SLOT_BYTES));
	char *at = map_absent(len);

	if (present)
		ktask_populate(at, len, 0);
	else
		backing_renew(len, MADV_NOHUGEPAGE);
	if (side == PLAIN)
		run_plain(times, round, fd, at, len);
	else
		run_ktask(times, side, round, fd, at, len);
	munmap(at, len);
	close(fd);
}

static void print_times(struct uring_times *times, unsigned rounds)
{
	for (unsigned side = 0; side < NR_SIDES; side++) {
		print_median_row(side_names[side], times->seconds[side], rounds,
				 side ? times->seconds[PLAIN] : NULL);
		printf("  %-34s %9.2f ms\n", "  its longest call",
		       times->longest[side] * 1e3);
		print_median_row("  its CPU time", times->cpu_seconds[side],
				 rounds,
				 side ? times->cpu_seconds[PLAIN] : NULL);
		print_median_row("  taken back", times->back[side], rounds,
				 side ? times->back[PLAIN] : NULL);
	}
}

void bench_uring(const struct plan *plan)
{
	static const char *const what[] = { "absent", "present" };
	size_t len = plan->len / SLOT_BYTES * SLOT_BYTES;

	for (int present = 0; present < 2; present++) {
		struct uring_times *times = calloc(1, sizeof(*times));

		check_that(!!times, "memory");
		for (unsigned round = 0; round < plan->rounds; round++)
			for (unsigned side = 0; side < NR_SIDES; side++)
				run_side(times, (side + round) % NR_SIDES,
					 round, len, present);
		printf("io_uring fixed buffers, %s memory, budget %d ms\n",
		       what[present], BUDGET_MS);
		print_times(times, plan->rounds);
		free(times);
	}
}
