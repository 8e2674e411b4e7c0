/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where a C++ exception, or the end of its thread, must not pass: other threads still
 * use what lies on the stack.
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
