/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * migrate: move the pages of a range to nodes.
 *
 * By move_pages(2), which takes the lock of the address space for reading, so
 * that chunks run side by side; mbind(2) on chunks would make a mapping of
 * each, one after another.  The policy is set, if that is wanted, by one
 * mbind() that moves nothing.
 *
 * Pages are asked first where they are, and again after they were moved: what
 * is still elsewhere then has failed.  A page that cannot be moved keeps no
 * other from being moved; the error is that of the lowest.  Moving back would
 * gain nobody anything: there is no undo.
 *
 * Where it behaves badly: that two threads gain is not shown, see
 * preload/policy.c.  Asking costs 42 ms per GiB of small pages, also of those
 * that are where they should be, and no less by two threads.  Linux 6.0 to 6.5
 * does not see pages that its own balancing between nodes has just marked: they
 * count as not there, for the plain call as well.
 */
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapping.h"

#define BATCH 512
#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)
/* A page may be in use for a moment; a huge page is moved with its first. */
#define MAX_TRIES 3

struct migrate {
	const unsigned long *nodes;
	size_t nr_nodes; /* bits */
	unsigned nr_targets;
	int flags;
	pthread_mutex_t lock; /* for those below */
	uintptr_t first; /* page that could not be moved; 0: none */
	int error; /* why */
};

struct batch {
	const struct op_job *job;
	unsigned nr;
	void *pages[BATCH];
	int nodes[BATCH]; /* wanted */
	int where[BATCH];
};

static bool wanted(const struct migrate *migrate, int node)
{
	return node >= 0 && (size_t)node < migrate->nr_nodes &&
	       migrate->nodes[(size_t)node / WORD_BITS] >>
			       ((size_t)node % WORD_BITS) &
		       1;
}

/* Huge page by huge page in turn, from where in memory it lies. */
static int target(const struct migrate *migrate, const struct op_job *job,
		  uintptr_t pos)
{
	unsigned turn = (unsigned)(pos / job->align % migrate->nr_targets);

	for (int node = 0;; node++)
		if (wanted(migrate, node) && !turn--)
			return node;
}

static long move_pages(struct batch *batch, const int *nodes, int flags)
{
	long nr = syscall(SYS_move_pages, batch->job->pid,
			  (unsigned long)batch->nr, batch->pages, nodes,
			  batch->where, flags);

	return nr < 0 ? -errno : nr;
}

static void note_failure(struct migrate *migrate, uintptr_t pos, int error)
{
	pthread_mutex_lock(&migrate->lock);
	if (!migrate->first || pos < migrate->first) {
		migrate->first = pos;
		migrate->error = error;
	}
	pthread_mutex_unlock(&migrate->lock);
}

/* There is nothing to move: untouched, zero page, or gone. */
static bool nothing_there(int where)
{
	return where == -ENOENT || where == -EFAULT;
}

/* Leaves what is elsewhere. */
static void keep_misplaced(const struct migrate *migrate, struct batch *batch)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < batch->nr; i++) {
		if (nothing_there(batch->where[i]) ||
		    wanted(migrate, batch->where[i]))
			continue;
		batch->pages[nr] = batch->pages[i];
		batch->where[nr] = batch->where[i];
		batch->nodes[nr++] =
			target(migrate, batch->job, (uintptr_t)batch->pages[i]);
	}
	batch->nr = nr;
}

static int look(const struct migrate *migrate, struct batch *batch)
{
	long done = batch->nr ? move_pages(batch, NULL, 0) : 0;

	if (done < 0)
		return (int)done;
	keep_misplaced(migrate, batch);
	return 0;
}

static int move_batch(struct migrate *migrate, struct batch *batch)
{
	int error = look(migrate, batch), why = 0;

	for (unsigned tries = 0; !error && batch->nr && tries < MAX_TRIES;
	     tries++) {
		long done = move_pages(batch, batch->nodes, migrate->flags);

		if (done < 0)
			return (int)done;
		/* Of the lowest; a node says that it has arrived. */
		why = batch->where[0] < 0 ? batch->where[0] : -EBUSY;
		error = look(migrate, batch);
		if (why == -EACCES || why == -ENOMEM)
			break;
	}
	if (!error && batch->nr)
		note_failure(migrate, (uintptr_t)batch->pages[0], why);
	return error;
}

/*
 * One call moves pages to one node: the kernel leaves the rest of a call alone
 * behind a node that not all of its pages could be moved to.  The range may
 * begin inside a page.  Return: the first position that is not in the batch.
 */
static uintptr_t fill_batch(struct batch *batch, uintptr_t pos, uintptr_t last)
{
	const struct op_job *job = batch->job;
	const struct migrate *migrate = job->state;
	uintptr_t turn = pos / job->align;

	for (batch->nr = 0; pos < last && batch->nr < BATCH;
	     pos = (pos | (job->step_bytes - 1)) + 1) {
		if (migrate->nr_targets > 1 && pos / job->align != turn)
			break;
		batch->pages[batch->nr++] = (void *)pos;
	}
	return pos;
}

static int migrate_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	struct batch batch = { .job = job };
	uintptr_t pos = (uintptr_t)start, last = (uintptr_t)end;

	while (pos < last) {
		uintptr_t first = pos;
		int error;

		pos = fill_batch(&batch, pos, last);
		error = move_batch(job->state, &batch);
		if (error) {
			op_fail_at(job, first);
			return error;
		}
	}
	return 0;
}

static int follow(const struct mapping *mapping, void *arg)
{
	uintptr_t *pos = arg;

	if (mapping->start > *pos)
		return 1;
	*pos = mapping->end;
	return 0;
}

static int bind(const struct op_job *job, const struct migrate *migrate)
{
	/* The kernel uses one bit less than it is told. */
	return syscall(SYS_mbind, job->addr, job->len, MPOL_BIND,
		       migrate->nodes, migrate->nr_nodes + 1, 0)
		       ? -errno
		       : 0;
}

static int migrate_around(struct op_job *job)
{
	uintptr_t start = (uintptr_t)job->addr, pos = start;
	struct migrate migrate = {
		.nodes = (const unsigned long *)(const void *)job->src,
		.nr_nodes = job->src_len,
		.flags = job->flags & KTASK_MIGRATE_SHARED ? MPOL_MF_MOVE_ALL
							   : MPOL_MF_MOVE,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int error;

	for (size_t node = 0; node < migrate.nr_nodes; node++)
		migrate.nr_targets += wanted(&migrate, (int)node);
	if (mapping_each_of(job->pid, start, start + job->len, 0, follow,
			    &pos) >= 0 &&
	    pos < start + job->len)
		return op_fail(job, -EFAULT, (void *)pos);
	error = job->flags & KTASK_MIGRATE_BIND ? bind(job, &migrate) : 0;
	if (error)
		return op_fail(job, error, job->addr);
	job->state = &migrate;
	error = op_go(job, migrate_chunk);
	if (error || !migrate.first)
		return error;
	return op_fail(job, migrate.error, (void *)migrate.first);
}

static int migrate_validate(const struct ktask_op_args *args)
{
	const unsigned long *nodes = args->src;
	struct migrate migrate = { .nodes = nodes, .nr_nodes = args->src_len };

	if (args->pid && args->flags & KTASK_MIGRATE_BIND)
		return -EINVAL;
	if (!nodes || args->src_len > POLICY_NODES_MAX)
		return -EINVAL;
	for (size_t node = 0; node < args->src_len; node++)
		if (wanted(&migrate, (int)node))
			return 0;
	return -EINVAL;
}

/*
 * min_chunk: asking where 2 MiB of small pages are takes 80 us, moving them
 * longer.
 */
const struct ktask_op op_migrate = {
	.name = "migrate",
	.summary = "move the pages of a range to nodes",
	.min_chunk = 2 * MIB,
	.known_flags = KTASK_MIGRATE_BIND | KTASK_MIGRATE_SHARED,
	.takes_pid = true,
	.align = mapping_align_range,
	.validate = migrate_validate,
	.chunk = migrate_chunk,
	.around = migrate_around,
};
