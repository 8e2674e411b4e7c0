/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Static tracepoints (USDT) of provider "ktask", for perf, bpftrace and
 * SystemTap.  One no-op instruction each while nobody traces; nothing at all
 * where the build had no <sys/sdt.h> (KTASK_SDT, mk/features.mk).
 *
 *	job_start   name, units, threads wanted
 *	chunk       start position, units, nanoseconds; by the thread that did it
 *	lend        helper's thread id, policy, nice
 *	job_end     name, error, units done, nanoseconds, threads
 *
 *	bpftrace -e 'usdt:./build/libktask.so:ktask:chunk { @ns = hist(arg2); }'
 */
#ifndef KTASK_USER_TRACE_H
#define KTASK_USER_TRACE_H

#ifdef KTASK_SDT
#include <sys/sdt.h>
#define trace_job_start(name, units, threads) \
	DTRACE_PROBE3(ktask, job_start, name, units, threads)
#define trace_chunk(start, units, ns) \
	DTRACE_PROBE3(ktask, chunk, start, units, ns)
#define trace_lend(tid, policy, nice) \
	DTRACE_PROBE3(ktask, lend, tid, policy, nice)
#define trace_job_end(name, error, units, ns, threads) \
	DTRACE_PROBE5(ktask, job_end, name, error, units, ns, threads)
#else
#define trace_job_start(name, units, threads) ((void)0)
#define trace_chunk(start, units, ns) ((void)0)
#define trace_lend(tid, policy, nice) ((void)0)
#define trace_job_end(name, error, units, ns, threads) ((void)0)
#endif

#endif /* KTASK_USER_TRACE_H */
