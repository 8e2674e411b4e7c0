/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: when a job begins and ends, chunks that succeeded, priorities
 * that are lent.  For perf, bpftrace and /sys/kernel/tracing/events/ktask.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ktask

#if !defined(KTASK_KERNEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KTASK_KERNEL_TRACE_H

#include <linux/tracepoint.h>

/* clang-format off */
TRACE_EVENT(ktask_job_start,
	TP_PROTO(void *func, u64 units, unsigned int threads),
	TP_ARGS(func, units, threads),
	TP_STRUCT__entry(
		__field(void *, func)
		__field(u64, units)
		__field(unsigned int, threads)
	),
	TP_fast_assign(
		__entry->func = func;
		__entry->units = units;
		__entry->threads = threads;
	),
	TP_printk("func=%ps units=%llu threads=%u", __entry->func,
		  __entry->units, __entry->threads)
);

TRACE_EVENT(ktask_job_end,
	TP_PROTO(void *func, int error, u64 units, u64 ns,
		 unsigned int threads),
	TP_ARGS(func, error, units, ns, threads),
	TP_STRUCT__entry(
		__field(void *, func)
		__field(int, error)
		__field(u64, units)
		__field(u64, ns)
		__field(unsigned int, threads)
	),
	TP_fast_assign(
		__entry->func = func;
		__entry->error = error;
		__entry->units = units;
		__entry->ns = ns;
		__entry->threads = threads;
	),
	TP_printk("func=%ps error=%d units=%llu ns=%llu threads=%u",
		  __entry->func, __entry->error, __entry->units, __entry->ns,
		  __entry->threads)
);

TRACE_EVENT(ktask_chunk,
	TP_PROTO(void *start, u64 units, u64 ns),
	TP_ARGS(start, units, ns),
	TP_STRUCT__entry(
		__field(void *, start)
		__field(u64, units)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->start = start;
		__entry->units = units;
		__entry->ns = ns;
	),
	TP_printk("start=%p units=%llu ns=%llu", __entry->start,
		  __entry->units, __entry->ns)
);

TRACE_EVENT(ktask_lend,
	TP_PROTO(int pid, int rt, int nice),
	TP_ARGS(pid, rt, nice),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(int, rt)
		__field(int, nice)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->rt = rt;
		__entry->nice = nice;
	),
	TP_printk("helper=%d rt=%d nice=%d", __entry->pid, __entry->rt,
		  __entry->nice)
);
/* clang-format on */

#endif /* KTASK_KERNEL_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH kernel
#define TRACE_INCLUDE_FILE kernel_trace
#include <trace/define_trace.h>
