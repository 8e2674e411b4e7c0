/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * System calls and threads without the C library: for calls that must not enter the
 * shim's own functions, and for the end of a process, when libc may no longer be used.
 *
 * SHIM_RAW is defined on the machines that this is written for.
 */
#ifndef KTASK_UTIL_RAW_SYSCALLS_H
#define KTASK_UTIL_RAW_SYSCALLS_H

#include <sched.h>

/* As libc makes threads: filters look at these. */
#define RAW_THREAD_FLAGS                                                    \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
	 CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |               \
	 CLONE_CHILD_CLEARTID)

#if defined(__x86_64__)
#define SHIM_RAW 1

/* Return: what the kernel returns, -errno included. */
static inline long raw_syscall(long number, const long *args)
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

static inline char *raw_thread_pointer(void)
{
	char *pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/*
 * raw_thread - start a thread that calls @func
 * @stack: its upper end
 * @tid: where its number is written
 *
 * @func must not return.  It must not use what libc keeps for each thread: it has the
 * caller's.
 */
static inline long raw_thread(void *stack, void (*func)(void *), void *arg,
			      int *tid)
{
	register int *r10 __asm__("r10") = tid;
	register char *r8 __asm__("r8") = raw_thread_pointer();
	void **top = (void **)stack - 2;
	long result = 56; /* clone */

	top[0] = (void *)func;
	top[1] = arg;
	__asm__ volatile(
		"syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\t"
		"pop %%rax\n\tpop %%rdi\n\tcall *%%rax\n\tud2\n"
		"1:"
		: "+a"(result)
		: "D"(RAW_THREAD_FLAGS), "S"(top), "d"(tid), "r"(r10), "r"(r8)
		: "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)
#define SHIM_RAW 1

static inline long raw_syscall(long number, const long *args)
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

static inline char *raw_thread_pointer(void)
{
	char *pointer;

	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

static inline long raw_thread(void *stack, void (*func)(void *), void *arg,
			      int *tid)
{
	register long x8 __asm__("x8") = 220; /* clone */
	register long x0 __asm__("x0") = RAW_THREAD_FLAGS;
	register void **x1 __asm__("x1") = (void **)stack - 2;
	register int *x2 __asm__("x2") = tid;
	register char *x3 __asm__("x3") = raw_thread_pointer();
	register int *x4 __asm__("x4") = tid;

	x1[0] = (void *)func;
	x1[1] = arg;
	__asm__ volatile(
		"svc 0\n\tcbnz x0, 1f\n\tmov x29, xzr\n\tldp x9, x0, [sp], #16\n\t"
		"blr x9\n\tbrk #0\n"
		"1:"
		: "+r"(x0)
		: "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
		: "x9", "memory");
	return x0;
}

#endif

#ifdef SHIM_RAW
static inline long raw_call3(long number, long a, long b, long c)
{
	const long args[6] = { a, b, c };

	return raw_syscall(number, args);
}
#endif

#endif /* KTASK_UTIL_RAW_SYSCALLS_H */
