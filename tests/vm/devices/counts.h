/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is registered with devices now, as the kernel tells it: nothing here asks the
 * library.  Owns memory to register, and children that hold some.
 */
#ifndef TESTS_VM_DEVICES_COUNTS_H
#define TESTS_VM_DEVICES_COUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "ktest.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

/* counts_pinned - pages that are pinned on this machine */
long counts_pinned(void);

/* counts_of_status - KiB behind @name, "VmPin:", in /proc/@pid/status; 0: its own */
long counts_of_status(pid_t pid, const char *name);

/* counts_present - pages of the range that are there */
size_t counts_present(const char *at, size_t len);

/* counts_frame - the physical page behind @at, 0 for none */
uint64_t counts_frame(const char *at);

/* counts_return_to - the number that @count tells is @wanted now or before long */
bool counts_return_to(long (*count)(void), long wanted);

/* map_absent - memory of small pages, of which none is there */
char *map_absent(size_t len);

/* limit_locking - may lock @bytes from now on, for good; false: cannot be limited */
bool limit_locking(size_t bytes);

/*
 * hold_in_child - a child that calls @hold, which says by tell_parent() when it has
 * come to where the child is to be killed, and does not return
 *
 * Return once it has said so: the child.
 */
pid_t hold_in_child(void (*hold)(void *arg), void *arg);
void tell_parent(void);

/* kill_child - by SIGKILL, until it is gone */
void kill_child(pid_t pid);

#endif /* TESTS_VM_DEVICES_COUNTS_H */
