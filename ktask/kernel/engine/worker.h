/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers: helpers that are threads of the caller's process.
 */
#ifndef KTASK_KERNEL_WORKER_H
#define KTASK_KERNEL_WORKER_H

struct helper;

int workers_init(void);
void workers_exit(void);

/*
 * worker_make - a new thread of the calling process, for one item
 * @nid: node of what the module keeps of it
 *
 * Return: NULL if the kernel cannot make such threads, or not now: no memory, a
 * limit on processes, a signal that waits.
 */
struct helper *worker_make(int nid);

/* worker_wake - there is an item for it */
void worker_wake(struct helper *h);

/*
 * worker_end - let it end; it has no item
 * worker_wait - wait until it has ended, unless a signal comes; the last call
 *
 * A process that is being stopped stops its workers too, and they end when it
 * goes on; the caller must get to its own stop.
 */
void worker_end(struct helper *h);
void worker_wait(struct helper *h);

#endif /* KTASK_KERNEL_WORKER_H */
