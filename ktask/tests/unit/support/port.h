/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host of core/ in the unit tests: core/deps.h answered by the test.
 *
 * Owns the clock, which stands still unless the test moves it, and the
 * distances between nodes.  Does not own threads (turns.h) or jobs (work.h).
 */
#ifndef UNIT_PORT_H
#define UNIT_PORT_H

#include "core/deps.h"

/* What kt_now_ns() returns; each thread has its own time. */
extern __thread uint64_t port_now_ns;

/* What kt_node_distance() asks; NULL: 10 local, 20 remote. */
extern unsigned (*port_distance)(int a, int b);

#endif /* UNIT_PORT_H */
