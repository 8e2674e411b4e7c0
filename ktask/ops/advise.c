/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise(2) on a chunk: repeating it, and finding where it failed.
 *
 * The call bypasses the C library: the preload shim replaces madvise(), and its own
 * calls must not come back to it.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advise.h"
#include "op.h"

/* EAGAIN is said to pass; so that a kernel that is wrong about it ends too. */
#define MAX_TRIES 1000

bool advise_known(int advice)
{
	return !syscall(SYS_madvise, NULL, 0, advice);
}

static int advise_once(uintptr_t start, uintptr_t end, int advice)
{
	for (unsigned tries = 0;; tries++) {
		if (!syscall(SYS_madvise, start, end - start, advice))
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
		if (tries == MAX_TRIES)
			return -errno;
		if (errno == EAGAIN)
			sched_yield();
	}
}

/*
 * Each call begins at @start, because a hugetlb page can only be discarded from its
 * beginning.  The error must be the same as that of the whole call: a call that skips a
 * hole reports the hole only if no other error follows.
 */
static uintptr_t find_fail_pos(uintptr_t start, uintptr_t end, int advice,
			       int error)
{
	uintptr_t page = op_page_bytes();
	uintptr_t done = start, bad = end;

	while (bad - done > page) {
		uintptr_t half = done + (bad - done) / 2 / page * page;

		if (advise_once(start, half, advice) == error)
			bad = half;
		else
			done = half;
	}
	return done;
}

int advise_range(uintptr_t start, uintptr_t end, int advice,
		 uintptr_t *fail_pos)
{
	int error = advise_once(start, end, advice);

	if (!error)
		return 0;
	*fail_pos = find_fail_pos(start, end, advice, error);
	/* Memory may have become free: then the whole chunk is done now. */
	if (end - *fail_pos <= op_page_bytes())
		error = advise_once(start, end, advice);
	return error;
}

int advise_chunk(struct op_job *job, uintptr_t start, uintptr_t end, int advice,
		 int passable)
{
	uintptr_t bad;
	int error = advise_range(start, end, advice, &bad);

	if (error && error == passable) {
		op_note_suspect(job, bad);
		return 0;
	}
	if (error)
		op_fail_at(job, bad);
	return error;
}
