/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stands in for syscall(2), which the library makes its memory calls by: a test
 * says what a call returns, or lets it pass.  Included by one file of a test,
 * as it defines the function.
 */
#ifndef TEST_SYSCALLS_H
#define TEST_SYSCALLS_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * The test's own: whether it answers call @number, and what with: a result, or
 * -errno.  NULL: every call passes.  Called by helpers, too.
 */
typedef bool (*syscalls_func)(long number, const long args[6], long *result);

static _Atomic(syscalls_func) syscalls_answer;

static long syscalls_pass(long number, const long args[6])
{
	static __thread long (*real)(long number, ...);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, args[0], args[1], args[2], args[3], args[4],
		    args[5]);
}

/* Mostly there are fewer arguments: what is read beyond is the caller's stack. */
__attribute__((noinline, no_sanitize_address)) long syscall(long number, ...)
{
	syscalls_func answer = syscalls_answer;
	long args[6], result;
	va_list list;

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (!answer || !answer(number, args, &result))
		return syscalls_pass(number, args);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

#endif /* TEST_SYSCALLS_H */
