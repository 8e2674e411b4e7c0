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
 * @nid: node on which its struct helper is allocated
 *
 * Return: NULL if this kernel cannot make such threads, or if it failed: no memory, a limit
 * on processes, or a pending signal.
 */
struct helper *process_helper_make(int nid);

/* process_helper_wake - wake it, because an item was submitted to it */
void process_helper_wake(struct helper *h);

/*
 * process_helper_end - tell it to end; it has no item
 * process_helper_wait - wait until it has ended, or a signal comes; do not use it afterwards
 *
 * When the process is stopped (SIGSTOP) its helpers are stopped, too, and end when it
 * continues.  So the caller does not wait for them, because it must be able to stop as well.
 */
void process_helper_end(struct helper *h);
void process_helper_wait(struct helper *h);

#endif /* KTASK_KERNEL_WORKER_H */
