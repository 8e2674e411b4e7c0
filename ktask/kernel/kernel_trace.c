// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints of kernel/kernel_trace.h, for the module and for a kernel that has ktask
 * built in.
 */
#define CREATE_TRACE_POINTS
#include "kernel/kernel_trace.h"
