/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registering host memory with a GPU, and what launches of kernels wait for meanwhile:
 *
 *	bench-cuda [--library LIBCUDART] [MIB [ROUNDS [BUDGET_MS]]]
 *
 * By turns: cudaHostRegister() of memory that is not there, in one call; the same after
 * ktask_populate(); ktask_register(), whose calls have the budget.  Another thread
 * launches an empty kernel all the time and waits for each.  Prints medians, the
 * median of the ratios of the rounds, and the longest launch of all rounds.
 *
 * Does not tell how long the program's own copies would wait: nothing is copied.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ktask/register.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "bench/common/median_row.h"
#include "bench/common/others.h"
#include "bench/common/stats.h"
#include "launches.h"
#include "runtime.h"

#define MIB ((size_t)1 << 20)
#define MAX_ROUNDS 101
#define ALONE_NS 1000000000u

enum side { PLAIN, POPULATED, PIECES, NR_SIDES };

static const char *const side_names[] = {
	"cudaHostRegister(), one call",
	"ktask_populate(), then one call",
	"ktask_register()",
};

struct plan {
	const char *library;
	size_t len;
	unsigned rounds;
	unsigned budget_ms;
};

struct side_times {
	double seconds[MAX_ROUNDS];
	double back[MAX_ROUNDS]; /* of unregistering */
	struct launch_times launches; /* of all rounds */
	uint64_t pieces; /* of the last round */
	uint64_t longest_call_ns; /* of ktask_register(), of all rounds */
};

static struct cuda_runtime runtime;
static struct launches launches;

static void check_errno(int error, const char *what)
{
	if (error)
		end_with(what, strerror(error));
}

static void register_pieces(const struct plan *plan, char *at,
			    struct ktask_cuda *cuda,
			    struct ktask_registration **registration)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	cuda->library = runtime.library;
	check_errno(-ktask_register_cuda(&ctl, cuda), "preparing");
	ctl.stall_us = plan->budget_ms * 1000;
	check_errno(-ktask_register(registration, at, plan->len, &ctl, NULL),
		    "registering");
}

static void note_pieces(struct side_times *times,
			const struct ktask_registration *registration)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;

	ktask_registration_info_get(registration, &info);
	times->pieces = info.pieces;
	if (info.longest_ns > times->longest_call_ns)
		times->longest_call_ns = info.longest_ns;
}

static void register_by(enum side side, const struct plan *plan, char *at,
			struct ktask_cuda *cuda,
			struct ktask_registration **registration)
{
	if (side == PIECES) {
		register_pieces(plan, at, cuda, registration);
		return;
	}
	if (side == POPULATED)
		check_errno(-ktask_populate(at, plan->len, 0), "populating");
	runtime_check(&runtime, runtime.host_register(at, plan->len, 0),
		      "registering");
}

static void unregister_by(enum side side, char *at,
			  struct ktask_registration **registration)
{
	if (side == PIECES)
		check_errno(-ktask_unregister(registration, NULL),
			    "unregistering");
	else
		runtime_check(&runtime, runtime.host_unregister(at),
			      "unregistering");
}

static void add_launches(struct launch_times *sum, struct launch_times more)
{
	sum->nr += more.nr;
	if (more.longest_ns > sum->longest_ns)
		sum->longest_ns = more.longest_ns;
}

static void run_side(struct side_times *times, enum side side, unsigned round,
		     const struct plan *plan)
{
	struct ktask_registration *registration = NULL;
	struct ktask_cuda cuda = KTASK_CUDA_INIT;
	char *at = backing_map_absent(plan->len);
	uint64_t begin_ns;

	check_errno(at == MAP_FAILED ? errno : 0, "mapping memory");
	backing_renew(plan->len, MADV_NOHUGEPAGE);
	launches_begin(&launches);
	begin_ns = clock_ns();
	register_by(side, plan, at, &cuda, &registration);
	times->seconds[round] = (double)(clock_ns() - begin_ns) / 1e9;
	add_launches(&times->launches, launches_end(&launches));
	if (registration)
		note_pieces(times, registration);
	begin_ns = clock_ns();
	unregister_by(side, at, &registration);
	times->back[round] = (double)(clock_ns() - begin_ns) / 1e9;
	munmap(at, plan->len);
}

static void print_launches(const char *name, const struct launch_times *times)
{
	printf("  %-34s %9.3f ms  of %llu\n", name,
	       (double)times->longest_ns / 1e6, (unsigned long long)times->nr);
}

static void print_times(const struct side_times *sides, unsigned rounds)
{
	for (unsigned side = 0; side < NR_SIDES; side++) {
		const struct side_times *times = &sides[side];
		const struct side_times *plain = side ? sides : NULL;

		print_median_row(side_names[side], times->seconds, rounds,
				 plain ? plain->seconds : NULL);
		print_launches("  longest launch meanwhile", &times->launches);
		if (times->pieces)
			printf("  %-34s %9.3f ms  of %llu\n",
			       "  its longest call",
			       (double)times->longest_call_ns / 1e6,
			       (unsigned long long)times->pieces);
		print_median_row("  taken back", times->back, rounds,
				 plain ? plain->back : NULL);
	}
}

static struct launch_times launch_alone(void)
{
	launches_begin(&launches);
	clock_pause_ns(ALONE_NS);
	return launches_end(&launches);
}

static void run_plan(const struct plan *plan)
{
	struct side_times *sides = calloc(NR_SIDES, sizeof(*sides));
	struct launch_times alone;

	check_errno(sides ? 0 : ENOMEM, "taking memory");
	launches_start(&launches, &runtime);
	printf("%zu MiB of 4 KiB pages, %u rounds, %ld CPUs; a launch is %s\n",
	       plan->len / MIB, plan->rounds, sysconf(_SC_NPROCESSORS_ONLN),
	       launches.has_kernel ? "an empty kernel"
				   : "the setting of 4 bytes");
	alone = launch_alone();
	for (unsigned round = 0; round < plan->rounds; round++)
		for (unsigned i = 0; i < NR_SIDES; i++) {
			enum side side = (i + round) % NR_SIDES;

			run_side(&sides[side], side, round, plan);
		}
	launches_stop(&launches);
	print_launches("longest launch, nothing else", &alone);
	printf("registering with a GPU, absent memory, budget %u ms\n",
	       plan->budget_ms);
	print_times(sides, plan->rounds);
	free(sides);
}

static int read_plan(struct plan *plan, int argc, char **argv)
{
	unsigned long numbers[] = { 32768, 5, 50 };

	if (argc > 2 && !strcmp(argv[1], "--library")) {
		plan->library = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc > 4)
		return -1;
	for (int i = 1; i < argc; i++) {
		char *end;

		numbers[i - 1] = strtoul(argv[i], &end, 10);
		if (*end || !numbers[i - 1])
			return -1;
	}
	if (numbers[1] > MAX_ROUNDS || numbers[2] > 4000)
		return -1;
	plan->len = numbers[0] * MIB;
	plan->rounds = (unsigned)numbers[1];
	plan->budget_ms = (unsigned)numbers[2];
	return 0;
}

int main(int argc, char **argv)
{
	struct others before = others_now();
	struct plan plan = { 0 };

	if (read_plan(&plan, argc, argv)) {
		fprintf(stderr, "usage: bench-cuda [--library LIBCUDART] "
				"[MIB [ROUNDS [BUDGET_MS]]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	runtime_load(&runtime, plan.library);
	run_plan(&plan);
	printf("others used %.2f CPUs meanwhile\n", others_cpus(&before));
	return 0;
}
