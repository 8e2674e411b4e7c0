/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Trying out a system call filter: a child makes the system calls that the library would
 * make in the program.  A filter's verdict depends on the call alone, so if the child
 * survives them, the program will.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "run.h"
#include "util/clock.h"

#define TRIAL_BYTES ((size_t)8 << 20)

/* Whatever is refused by an error is well: only dying counts. */
static void try_calls(void)
{
	static const char *const names[] = { "populate", "lock", "discard",
					     "unmap" };
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .len = TRIAL_BYTES };
	struct ktask_engine engine = KTASK_ENGINE_INIT;
	clockid_t clock;

	args.addr = mmap(NULL, args.len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (args.addr == MAP_FAILED)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ktask_op_run(ktask_op_find(names[i]), &args, NULL);
	/* A large job opens the device where that is wanted. */
	ktask_op_engine(ktask_op_find("populate"), &engine);
	/* A job does so only beside other jobs. */
	if (!pthread_getcpuclockid(pthread_self(), &clock))
		clock_ns(clock);
	ktask_trim();
}

static bool run_trial(void)
{
	struct rlimit no_core = { 0 };
	pid_t child = fork();
	int status;

	if (child < 0)
		return false;
	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		try_calls();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && !status;
}

enum filter_verdict filter_judge(void)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) <= 0)
		return FILTER_NONE;
	return run_trial() ? FILTER_HARMLESS : FILTER_HARMFUL;
}
