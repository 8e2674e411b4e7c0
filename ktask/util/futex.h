/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Futexes by raw system call: private, no cancellation point, no errno.
 *
 * Every wait may return early; callers check their word again.
 */
#ifndef KTASK_UTIL_FUTEX_H
#define KTASK_UTIL_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scoped.h"

/* Sleep while *@word is @value; @timeout_ns 0 waits for ever.
 * Return: 0 or -errno (-EAGAIN, -EINTR, -ETIMEDOUT). */
static inline int futex_wait(uint32_t *word, uint32_t value,
			     uint64_t timeout_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};
	keep_errno();
	int error = 0;

	if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
		    timeout_ns ? &ts : NULL, NULL, 0))
		error = -errno;
	return error;
}

static inline void futex_wake(uint32_t *word, int nr)
{
	keep_errno();

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr, NULL, NULL, 0);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif /* KTASK_UTIL_FUTEX_H */
