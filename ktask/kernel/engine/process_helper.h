/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Process helpers: helpers that are threads of the caller's process.
 */
#ifndef KTASK_KERNEL_WORKER_H
#define KTASK_KERNEL_WORKER_H

struct helper;

int process_helpers_init(void);
void process_helpers_exit(void);

/*
 * process_helper_make - a new thread of the calling process, for one item
 * @nid: node of what the module keeps of it
 *
 * Return: NULL if the kernel cannot make such threads, or not now: no memory, a
 * limit on processes, a signal that waits.
 */
struct helper *process_helper_make(int nid);

/* process_helper_wake - there is an item for it */
void process_helper_wake(struct helper *h);

/*
 * process_helper_end - let it end; it has no item
 * process_helper_wait - wait until it has ended, unless a signal comes; the last call
 *
 * A process that is being stopped stops its helpers too, and they end when it
 * goes on; the caller must get to its own stop.
 */
void process_helper_end(struct helper *h);
void process_helper_wait(struct helper *h);

#endif /* KTASK_KERNEL_WORKER_H */
