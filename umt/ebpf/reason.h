/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a thread blocks, as far as its state and its system call tell.  Part of umt.bpf.c.
 *
 * Behaves badly: on architectures other than these two, every wait that is not for I/O is
 * "other".  32-bit programs have other numbers of system calls.
 */
#ifndef UMT_REASON_H
#define UMT_REASON_H

#include <asm/unistd.h>

#include "kernel.h"
#include "shared.h"

/* The system call that a thread is in; -1: it faulted or was interrupted. */
static __always_inline __s32 syscall_of(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct pt_regs___arm64 *arm = (void *)regs;

	if (bpf_core_field_exists(regs->orig_ax))
		return regs->orig_ax;
	if (bpf_core_field_exists(arm->syscallno))
		return BPF_CORE_READ(arm, syscallno);
	return -2;
}

static __always_inline bool is_waiting(__s32 nr)
{
	switch (nr) {
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_ppoll:
	case __NR_pselect6:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_wait4:
	case __NR_waitid:
	case __NR_rt_sigtimedwait:
	case __NR_rt_sigsuspend:
#ifdef __NR_poll
	case __NR_poll:
	case __NR_select:
	case __NR_epoll_wait:
	case __NR_pause:
#endif
		return true;
	}
	return false;
}

static __always_inline __u8 reason_of(struct task_struct *task,
				      unsigned int state)
{
	__s32 nr;

	if (state & TASK_STOPPED_OR_TRACED)
		return UMT_STOPPED;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return UMT_IO;
	nr = syscall_of(task);
	if (nr == -1)
		return UMT_FAULT;
	if (nr == __NR_futex)
		return UMT_FUTEX;
	return is_waiting(nr) ? UMT_WAITING : UMT_OTHER;
}

#endif /* UMT_REASON_H */
