/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A machine of MANY_CPUS CPUs, as far as the library can tell: jobs get more
 * threads than there are CPUs, which shows races and budgets that one helper
 * cannot.  Include in one file of a program, after defining MANY_CPUS.
 *
 * Works by standing before the C library's sysconf() and syscall().  Threads
 * are really bound to the CPUs there are; a machine of one CPU gets no helper.
 */
#ifndef TESTS_API_SUPPORT_MANY_CPUS_H
#define TESTS_API_SUPPORT_MANY_CPUS_H

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

long sysconf(int name)
{
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
	long value = real(name);

	if (name == _SC_NPROCESSORS_ONLN && value > 1)
		return MANY_CPUS;
	return value;
}

/* CPUs [0, MANY_CPUS) in a mask of @size bytes. */
static inline void many_cpus_mask(unsigned char *mask, size_t size)
{
	memset(mask, 0, size);
	for (unsigned cpu = 0; cpu < MANY_CPUS && cpu / 8 < size; cpu++)
		mask[cpu / 8] |= (unsigned char)(1 << cpu % 8);
}

/* What is read beyond the arguments is the caller's stack. */
__attribute__((noinline, no_sanitize_address)) long syscall(long number, ...)
{
	long (*real)(long, ...) =
		(long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long args[6], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	result = real(number, args[0], args[1], args[2], args[3], args[4],
		      args[5]);
	if (number == SYS_sched_getaffinity && result > 0)
		many_cpus_mask((unsigned char *)args[2], (size_t)args[1]);
	return result;
}

#endif /* TESTS_API_SUPPORT_MANY_CPUS_H */
