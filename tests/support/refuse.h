/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lets system calls fail in this process and what it starts, as they do on
 * kernels that lack them.  There is no way back: for child processes.
 */
#ifndef TEST_REFUSE_H
#define TEST_REFUSE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * refuse_call - call @number fails with @error where argument @index is one
 * of [@least, @most]
 *
 * Return: false where filters are not to be had.
 */
static inline bool refuse_call(unsigned number, unsigned index, unsigned least,
			       unsigned most, unsigned error)
{
	unsigned arg =
		(unsigned)offsetof(struct seccomp_data, args[0]) + index * 8;
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
		/* The low half of the argument, on little-endian machines. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, most, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(steps) / sizeof(steps[0]),
		.filter = steps,
	};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif /* TEST_REFUSE_H */
