/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of the program that would notice the library's threads, or that decide
 * what these may do: helpers are ended before namespaces are changed, which
 * the kernel refuses to programs with threads, and filters are looked at
 * before they are set.
 *
 * syscall() and prctl() are here for the filters alone.  They make the system
 * call without the C library, whose own functions of these names this library
 * has hidden from itself.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "shim.h"

KTASK_API int unshare(int flags)
{
	if (shim_is_ours() && !shim_busy())
		ktask_trim();
	return (int)syscall(SYS_unshare, flags);
}

KTASK_API int setns(int fd, int type)
{
	if (shim_is_ours() && !shim_busy())
		ktask_trim();
	return (int)syscall(SYS_setns, fd, type);
}

#if defined(__x86_64__)
static long raw_syscall(long number, const long *args)
{
	register long r10 __asm__("r10") = args[3];
	register long r8 __asm__("r8") = args[4];
	register long r9 __asm__("r9") = args[5];
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long raw_syscall(long number, const long *args)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = args[0];
	register long x1 __asm__("x1") = args[1];
	register long x2 __asm__("x2") = args[2];
	register long x3 __asm__("x3") = args[3];
	register long x4 __asm__("x4") = args[4];
	register long x5 __asm__("x5") = args[5];

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
static bool look(long number, const long *args)
{
	if (number == SYS_prctl) {
		bool filter = args[1] == SECCOMP_MODE_FILTER;

		return args[0] == PR_SET_SECCOMP &&
		       shim_filter_seen(!filter, (const void *)args[2]);
	}
	if (args[0] == SECCOMP_SET_MODE_STRICT)
		return shim_filter_seen(true, NULL);
	return args[0] == SECCOMP_SET_MODE_FILTER &&
	       shim_filter_seen(false, (const void *)args[2]);
}

static long looked_syscall(long number, const long *args)
{
	bool filters = number == SYS_seccomp || number == SYS_prctl;
	bool aside = filters && look(number, args);
	long result = raw_syscall(number, args);

	if ((unsigned long)result <= -4096ul)
		return result;
	if (aside)
		shim_filter_refused();
	errno = (int)-result;
	return -1;
}

/* Six are read, however many there are, as libc does it. */
KTASK_API long syscall(long number, ...)
{
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	return looked_syscall(number, args);
}

KTASK_API int prctl(int option, ...)
{
	long args[6] = { option };
	va_list list;

	va_start(list, option);
	for (int i = 1; i < 5; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	return (int)looked_syscall(SYS_prctl, args);
}
#endif
