/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Guards blocks through which no C++ exception, nor the end of the thread, may unwind:
 * other threads still use data on this stack.
 *
 * A file that includes this needs libgcc_s, and must not be part of the shim.
 */
#ifndef OPS_UNWINDING_H
#define OPS_UNWINDING_H

#include <stdbool.h>
#include <stdlib.h>

static inline void unwinding_end_program(const bool *forbidden)
{
	if (*forbidden)
		abort();
}

/* unwinding_guard - declares what is true as long as nothing may pass */
#define unwinding_guard(name) \
	__attribute__((cleanup(unwinding_end_program))) bool name

#endif /* OPS_UNWINDING_H */
