/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs a call that the shim takes over as an operation of libktask; times and counts it.
 * Does not decide which calls are taken over, and does not know the plain calls.
 *
 * Signals and cancellation are held off: none of the plain calls is a cancellation
 * point, and a handler must not interrupt the library.
 *
 * Locking: there is no lock.  nr_working is atomic, of all threads; is_busy is the
 * thread's own.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <ktask/ops.h>

#include "preload/shim.h"
#include "util/clock.h"
#include "util/least_limit.h"
#include "util/scoped.h"

/*
 * Guards against the program's own code inside the library, such as a fault handler or
 * an allocator.
 */
static __thread bool is_busy;

bool shim_busy(void)
{
	return is_busy;
}

void shim_set_busy(bool value)
{
	is_busy = value;
}

static atomic_uint nr_working;

bool shim_working(void)
{
	return atomic_load(&nr_working);
}

/* Only the thread that forked is in the child. */
void shim_forget_working(void)
{
	atomic_store(&nr_working, is_busy);
}

static int run_quietly(const char *name, const struct ktask_op_args *args,
		       struct ktask_result *result)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct shim_quiet quiet;
	int cancel_state, error;

	opts.result = result;
	/* First: a handler may leave at any moment before. */
	shim_quiet_begin(&quiet);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	is_busy = true;
	atomic_fetch_add(&nr_working, 1);
	error = ktask_op_run(ktask_op_find(name), args, &opts);
	if (shim_main_has_ended())
		ktask_trim();
	atomic_fetch_sub(&nr_working, 1);
	is_busy = false;
	pthread_setcancelstate(cancel_state, NULL);
	shim_quiet_end(&quiet);
	return error;
}

/* @bytes: what is counted */
static bool run_operation(enum shim_call call, const char *name, void *addr,
			  size_t len, unsigned flags, size_t bytes)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = addr,
				      .len = len,
				      .flags = flags };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct shim_work work = {
		.bytes = bytes,
		/* Then nothing is made, which helpers are too late for. */
		.present = call == SHIM_MLOCK && shim_all_present(addr, len),
	};
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	keep_errno();
	int error = run_quietly(name, &args, &result);

	work.wall_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	work.cpu_ns = result.cpu_ns;
	work.threads = result.threads;
	work.undivided = result.threads <= 1 && result.chunks <= 1;
	work.done = !error;
	shim_count(call, &work);
	return !error;
}

bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags)
{
	return run_operation(call, "populate", addr, len, flags, len);
}

bool shim_discard(void *addr, size_t len, unsigned flags)
{
	return run_operation(SHIM_MADVISE, "discard", addr, len, flags,
			     shim_present_bytes(addr, len));
}

bool shim_lock(enum shim_call call, void *addr, size_t len)
{
	return run_operation(call, "lock", addr, len, 0, len);
}

bool shim_unmap(void *addr, size_t len)
{
	return run_operation(SHIM_MUNMAP, "unmap", addr, len, 0,
			     shim_present_bytes(addr, len));
}

void shim_trim(void)
{
	if (is_busy)
		return;
	is_busy = true;
	ktask_trim();
	is_busy = false;
}

/* A handler that left by siglongjmp() would leave the library half started. */
static unsigned ask_quietly(unsigned (*ask)(void))
{
	const bool was_busy = is_busy;
	struct shim_quiet quiet;
	unsigned threads;

	shim_quiet_begin(&quiet);
	is_busy = true;
	threads = ask();
	is_busy = was_busy;
	shim_quiet_end(&quiet);
	return threads;
}

unsigned shim_limit(void)
{
	return ask_quietly(least_limit);
}

unsigned shim_lasting_limit(void)
{
	return ask_quietly(lasting_limit);
}
