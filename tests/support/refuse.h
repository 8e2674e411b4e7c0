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
#include <unistd.h>

/* How a filter is set: programs use prctl(2) and seccomp(2). */
enum refuse_how {
	REFUSE_PRCTL,
	REFUSE_SECCOMP,
	REFUSE_SECCOMP_ALL, /* for all threads that there are */
};

static inline bool refuse_by(struct sock_filter *steps, unsigned nr,
			     enum refuse_how how)
{
	struct sock_fprog program = { (unsigned short)nr, steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (how == REFUSE_PRCTL)
		return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			how == REFUSE_SECCOMP_ALL ? SECCOMP_FILTER_FLAG_TSYNC
						  : 0,
			&program);
}

/*
 * refuse_with - call @number ends with the filter's @action, SECCOMP_RET_...
 *
 * Return: false where filters are not to be had; so all of these.
 */
static inline bool refuse_with(unsigned number, unsigned action,
			       enum refuse_how how)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return refuse_by(steps, sizeof(steps) / sizeof(steps[0]), how);
}

/* refuse_whole - call @number fails with @error, whatever its arguments are */
static inline bool refuse_whole(unsigned number, unsigned error)
{
	return refuse_with(number, SECCOMP_RET_ERRNO | error, REFUSE_PRCTL);
}

/*
 * refuse_call - call @number fails with @error where argument @index is one
 * of [@least, @most]
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

	return refuse_by(steps, sizeof(steps) / sizeof(steps[0]), REFUSE_PRCTL);
}

#endif /* TEST_REFUSE_H */
