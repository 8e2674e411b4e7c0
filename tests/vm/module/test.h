/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests inside a guest's kernel share.
 *
 * A test is a function in a table; its name is the claim.  It returns 0, or a
 * negative errno after expect() has noted why, or test_skip().
 */
#ifndef KTASK_VM_TEST_H
#define KTASK_VM_TEST_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/types.h>

#include "kernel/ktask_kernel.h"

struct test {
	const char *name;
	int (*func)(void);
};

/* One table per file; main.c knows them. */
extern const struct test error_tests[], job_tests[], numa_tests[], prio_tests[],
	overload_tests[], start_tests[], user_half_tests[], inherit_tests[],
	planted_tests[];

/* test_fail - note why, once per test; -EPROTO */
__printf(1, 2) int test_fail(const char *format, ...);

/* test_skip - note why it cannot be tested here; -EOPNOTSUPP */
int test_skip(const char *why);

#define expect(condition)                                                      \
	do {                                                                   \
		if (!(condition))                                              \
			return test_fail("%s:%d: %s", __FILE_NAME__, __LINE__, \
					 #condition);                          \
	} while (0)

#ifndef __FILE_NAME__
#define __FILE_NAME__ kbasename(__FILE__)
#endif

/* test_random - from the seed that the guest was given */
u32 test_random(u32 below);

/*
 * A board of units: how often each was done and undone.  Positions of jobs
 * over it are addresses of its cells.
 */
struct board {
	unsigned int nr;
	atomic_t *cells; /* done: + 1, undone: + BOARD_UNDONE */
	struct task_struct *caller;
	unsigned int sleep_us; /* of each chunk */
	long fail_at; /* a chunk with this cell fails; -1 none */
	int error; /* with this */
	atomic_t helper_chunks;
	atomic_t running, most; /* helpers in chunks at once */
	const struct cpumask *cpus; /* helpers must be on these, or NULL */
	atomic_t strays;
};

#define BOARD_UNDONE 1000

int board_init(struct board *board, unsigned int nr);
void board_free(struct board *board);

/* with_board - what @func returns for a board of @nr cells, made for it */
int with_board(unsigned int nr, int (*func)(struct board *board));

void board_clear(struct board *board);

/* As thread, undo and iterator functions; the argument is the board.  Units
 * are cells: positions are counted by iterator. */
int board_chunk(void *start, void *end, void *arg);
void board_undo(void *start, void *end, void *arg);
void *board_iter(void *position, size_t size);

/* Units of one byte each, at the addresses 1 to nr: no iterator. */
static inline void *board_at(unsigned int cell)
{
	return (void *)(uintptr_t)(cell + 1);
}

/*
 * board_run_helped - jobs of all cells, until helpers did a part of one
 *
 * The only helper may be on its way from the job before, and a guest's CPU may
 * get none of the host's for as long as a whole job lasts.
 *
 * Return: what the last job returned; helper_chunks is 0 where none came.
 */
int board_run_helped(struct board *board, const struct ktask_ctl *ctl);

/* For how long something is waited for that a busy host may put off. */
#define HELP_MS 30000

/* board_all - every cell holds @value */
bool board_all(const struct board *board, int value);

/* board_only - every cell holds 0 or @value */
bool board_only(const struct board *board, int value);

#endif /* KTASK_VM_TEST_H */
