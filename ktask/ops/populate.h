/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The two ways in which a chunk of populate makes pages.
 *
 * MADV_POPULATE_* holds the lock of the process's mappings (mmap_lock) for reading until
 * all pages of the call are there.  A touch takes an exception for each page, but since
 * Linux 6.4 only the lock of its own mapping.
 */
#ifndef OPS_POPULATE_H
#define OPS_POPULATE_H

/** populate_chunk - by MADV_POPULATE_*, which the kernel must have */
int populate_chunk(void *start, void *end, void *arg);

/** populate_touch_chunk - by touching; between fault_get() and fault_put() */
int populate_touch_chunk(void *start, void *end, void *arg);

#endif /* OPS_POPULATE_H */
