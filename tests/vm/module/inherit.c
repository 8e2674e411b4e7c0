// SPDX-License-Identifier: GPL-2.0-only
/*
 * What helpers take over from their caller: what it may wait for when it
 * allocates, and its rights; and that they know who it is.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "test.h"

/* ---- what the caller may not wait for ---- */

struct scoped {
	struct board board;
	unsigned int wanted; /* of SCOPES */
	atomic_t wrong;
};

#define SCOPES (PF_MEMALLOC_NOIO | PF_MEMALLOC_NOFS)

static int scoped_chunk(void *start, void *end, void *arg)
{
	struct scoped *scoped = arg;

	if ((current->flags & SCOPES) != scoped->wanted)
		atomic_inc(&scoped->wrong);
	return board_chunk(start, end, &scoped->board);
}

static int in_scope(struct scoped *scoped)
{
	DEFINE_KTASK_CTL(ctl, scoped_chunk, scoped, 1);
	int error;

	scoped->wanted = current->flags & SCOPES;
	atomic_set(&scoped->board.helper_chunks, 0);
	error = board_run_helped(&scoped->board, &ctl);
	if (error)
		return error;
	expect(atomic_read(&scoped->board.helper_chunks) > 0);
	expect(atomic_read(&scoped->wrong) == 0);
	return 0;
}

/* Else reclaim in a helper would wait for a lock that its caller holds. */
static int helpers_allocate_as_the_caller_may(void)
{
	struct scoped scoped = {};
	unsigned int flags;
	int error;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	error = board_init(&scoped.board, 400);
	if (error)
		return error;
	scoped.board.sleep_us = 300;
	flags = memalloc_nofs_save();
	error = in_scope(&scoped);
	memalloc_nofs_restore(flags);
	if (!error) {
		flags = memalloc_noio_save();
		error = in_scope(&scoped);
		memalloc_noio_restore(flags);
	}
	/* And not afterwards. */
	if (!error)
		error = in_scope(&scoped);
	board_free(&scoped.board);
	return error;
}

/* ---- whose rights ---- */

#define NOBODY 65534

static int rights_chunk(void *start, void *end, void *arg)
{
	if (!uid_eq(current_fsuid(), KUIDT_INIT(NOBODY)) ||
	    cap_raised(current_cap(), CAP_SYS_RESOURCE))
		return -EPERM;
	return board_chunk(start, end, arg);
}

static int without_rights(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, rights_chunk, board, 1);
	const struct cred *own;
	struct cred *cred;
	int error;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	cred = prepare_creds();
	expect(cred);
	cred->fsuid = KUIDT_INIT(NOBODY);
	cap_clear(cred->cap_effective);
	board->sleep_us = 300;
	ktask_ctl_set_caller_mm(&ctl);
	own = override_creds(cred);
	error = board_run_helped(board, &ctl);
	revert_creds(own);
	put_cred(cred);
	expect(!error);
	expect(atomic_read(&board->helper_chunks) > 0);
	return 0;
}

/* A fault may allocate blocks of a file, within a quota. */
static int helpers_have_the_rights_of_their_caller(void)
{
	return with_board(400, without_rights);
}

/* ---- for whom they work ---- */

/* The chunk of a nested job may be done by a helper of either job. */
static int client_chunk(void *start, void *end, void *arg)
{
	struct board *board = arg;

	if (ktask_task() != board->caller)
		return -EPERM;
	return board_chunk(start, end, arg);
}

static int nested_client_chunk(void *start, void *end, void *arg)
{
	DEFINE_KTASK_CTL(ctl, client_chunk, arg, 1);

	if (ktask_task() != ((struct board *)arg)->caller)
		return -EPERM;
	return ktask_run(start, (char *)end - (char *)start, &ctl);
}

static int for_caller(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, client_chunk, board, 1);
	DEFINE_KTASK_CTL(nested, nested_client_chunk, board, 20);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	board->sleep_us = 300;
	expect(!board_run_helped(board, &ctl));
	expect(atomic_read(&board->helper_chunks) > 0);
	atomic_set(&board->helper_chunks, 0);
	expect(!board_run_helped(board, &nested));
	expect(atomic_read(&board->helper_chunks) > 0);
	expect(ktask_task() == current);
	return 0;
}

/* Limits, signals and groups are asked of the task that called first. */
static int helpers_know_for_whom_they_work(void)
{
	return with_board(400, for_caller);
}

const struct test inherit_tests[] = {
	{ "helpers-allocate-as-the-caller-may",
	  helpers_allocate_as_the_caller_may },
	{ "helpers-have-the-rights-of-their-caller",
	  helpers_have_the_rights_of_their_caller },
	{ "helpers-know-for-whom-they-work", helpers_know_for_whom_they_work },
	{}
};
