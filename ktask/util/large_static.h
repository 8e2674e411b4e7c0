/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where large static data lies.  A program that starts under the shim and does no large
 * call touches only small variables of the shim.  With large arrays between them each is
 * on a page of its own, which the kernel must make.  So the linker puts these arrays behind
 * all others: it sorts sections by name (Makefile).  Where it does not, the order is
 * as usual and nothing else changes.
 */
#ifndef KTASK_UTIL_LARGE_STATIC_H
#define KTASK_UTIL_LARGE_STATIC_H

/* ASan guards no variable that is in a section of its own. */
#ifdef __SANITIZE_ADDRESS__
#define LARGE_STATIC
#define LARGE_STATIC_BEGUN
#else
/* Of zeros, 2 KiB or more. */
#define LARGE_STATIC __attribute__((section(".bss.z_large")))
/* Of zeros, and only its beginning is used by most programs: before the others. */
#define LARGE_STATIC_BEGUN __attribute__((section(".bss.y_begun")))
#endif

#endif /* KTASK_UTIL_LARGE_STATIC_H */
