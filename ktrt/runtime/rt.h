/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the runtime share, and who may read and write it: the life of a task,
 * the order of locks, and the letters that stand beside fields.
 *
 * The life of a task: task.c makes it.  dependences.c makes it wait for its data.
 * task_sched.c queues and finds it, steal_tasks.c steals it; wait_search.c finds it if no
 * more threads can be made.  task_run.c runs it; visit.c has attached threads do so.
 * task_complete.c completes it, which makes others ready.  If there are no tasks, park.c puts workers to
 * sleep; wake.c chooses the worker that a task wakes; leader.c puts workers on cores
 * whose workers blocked.
 *
 * Locking.  A thread takes locks in this order; builds with the
 * address or the thread sanitizer assert that, and what is said to be done under a lock:
 *
 *	G: the lock of start.c: is there a runtime, and who is attached
 *	D: rt.load_lock
 *	L: a core's lock
 *	P: rt.pool_lock
 *	Q: innermost, one at a time: those of a node queue (node_queue.h), of a pool
 *	   of records (record_pool.h), of turns (dependences.h), of codes (error_codes.c)
 *
 * None is held while anything of the user runs.  L, P and Q are not held across a
 * system call but waking and asking for memory.
 *
 * Fields are written, and unless A says more read, by:
 *
 *	I: the thread that starts the runtime, under G, before there are threads that read
 *	   it; constant until they have ended
 *	O: the worker's own thread; while it has none, the thread that makes or retires
 *	   the worker
 *	W: the thread that wakes the worker, after it took the worker from its list (L, P)
 *	   and before it gives the signal; from then on O
 *	M: the thread that makes the task, before others can find it; constant until it is
 *	   complete
 *	B: the thread that runs the body; for the task that stands for an attached thread,
 *	   that thread
 *	E: the thread that decrements one of the task's counts to 0 or to its last step
 *	C: the leader; there is one at a time, and the next has all that it wrote
 *	A: any thread: by atomic operations
 *
 * A thief may read the record of a task that is complete, or that is used for another task
 * by now.  What it reads is A, and it must check it before it relies on it.
 */
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

#include "cores.h"
#include "graph_nodes.h"
#include "group.h"
#include "leader.h"
#include "park.h"
#include "runtime_state.h"
#include "task_life.h"
#include "task_record.h"
#include "task_sched.h"
#include "visit.h"
#include "wait_search.h"
#include "worker.h"

#endif /* RUNTIME_RT_H */
