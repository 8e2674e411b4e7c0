/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of the program that depend on the library having no threads, or that restrict
 * what these may do.
 *  - Changing namespaces: the kernel refuses that to a process with threads, so the
 *    helpers are ended first.
 *  - Setting a system call filter: the shim checks it first (seccomp_filter.c).
 *  - Limiting the address space or the data: the stacks of helpers would count.
 *  - userfaultfd: the handler of the process's faults would see each chunk that is made
 *    or discarded.  So no call is taken over from then on.
 *
 * syscall() is here for all of these, and for calls that say how memory is made.  It makes
 * the system call without the C library, because the shim's own functions hide those of
 * libc, and so does prctl(), which is here for the filters.  What the shim calls itself is
 * not looked at.
 *
 * ioctl() is here for userfaultfd too, since the descriptor may come from a device or
 * from another process.  When a range is registered, pages that --prefault made of it
 * are given back first: the program waits for faults on them.  ioctl() also registers
 * memory with devices: register_calls.c.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"
#include "util/raw_syscalls.h"
#include "util/scoped.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#define MODE_MISSING ((uint64_t)1 << 0)
#define MODE_MINOR ((uint64_t)1 << 2)

/* Behind a filter there are none, and nothing must be asked. */
static void end_helpers(void)
{
	block_cancellation();

	if (!shim_filter_allows() || !shim_is_ours())
		return;
	shim_ahead_end();
	shim_trim();
}

static void leave_namespaces(bool with_processes)
{
	keep_errno();

	end_helpers();
	if (with_processes)
		shim_record_leave_namespace();
}

static void leave_by_unshare(long flags)
{
	leave_namespaces(flags & CLONE_NEWPID);
}

static void leave_by_setns(long type)
{
	leave_namespaces(!type || type & CLONE_NEWPID);
}

KTASK_API int unshare(int flags)
{
	leave_by_unshare(flags);
	return (int)syscall(SYS_unshare, flags);
}

KTASK_API int setns(int fd, int type)
{
	leave_by_setns(type);
	return (int)syscall(SYS_setns, fd, type);
}

#ifdef SHIM_RAW
static bool check_filter(long number, const long *args)
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

static void check_registration(const void *from)
{
	keep_errno();
	struct uffdio_register range;

	if (shim_filter_allows() && shim_is_ours() &&
	    !shim_copy_in(&range, from, sizeof(range)) &&
	    range.mode & (MODE_MISSING | MODE_MINOR))
		shim_made_undo(range.range.start,
			       range.range.start + range.range.len,
			       !(range.mode & MODE_MISSING));
}

static bool is_for_faults(unsigned long request)
{
	return request == UFFDIO_REGISTER || request == USERFAULTFD_IOC_NEW;
}

static void check_request(const long *args)
{
	if (!is_for_faults((unsigned long)args[1])) {
		shim_register_request(args);
		return;
	}
	shim_memory_watched();
	if ((shim_prefaults || shim_ahead_min_bytes != SIZE_MAX) &&
	    (unsigned long)args[1] == UFFDIO_REGISTER)
		check_registration((const void *)args[2]);
}

/* Also if the kernel will refuse it. */
static void check_limit(long who, long resource, const void *limit)
{
	struct rlimit64 copy;
	keep_errno();

	if ((resource == RLIMIT_AS || resource == RLIMIT_DATA) && limit &&
	    shim_filter_allows() && shim_is_ours() &&
	    (!who || who == shim_owner()) &&
	    !shim_copy_in(&copy, limit, sizeof(copy)) &&
	    copy.rlim_cur != RLIM64_INFINITY)
		end_helpers();
}

static inline bool is_watched(long number)
{
	switch (number) {
	case SYS_ioctl:
	case SYS_seccomp:
	case SYS_prctl:
	case SYS_exit_group:
	case SYS_clone:
	case SYS_clone3:
	case SYS_mbind:
	case SYS_set_mempolicy:
	case SYS_mlock2:
	case SYS_mlockall:
	case SYS_munlockall:
	case SYS_prlimit64:
	case SYS_setrlimit:
	case SYS_move_pages:
	case SYS_migrate_pages:
	case SYS_userfaultfd:
	case SYS_io_uring_register:
	case SYS_exit:
	case SYS_unshare:
	case SYS_setns:
		return true;
	default:
		return false;
	}
}

/* struct clone_args begins with its flags.  Where they cannot be looked at the
 * kernel refuses them, or the memory counts as shared. */
static uint64_t clone_flags(long number, const long *args)
{
	keep_errno();
	uint64_t flags = 0;

	if (number == SYS_clone)
		return (uint64_t)args[0];
	if (args[1] < (long)sizeof(flags))
		return 0;
	if (!shim_filter_allows() || !shim_is_ours())
		return CLONE_VM;
	if (shim_copy_in(&flags, (const void *)args[0], sizeof(flags)))
		flags = 0;
	return flags;
}

/* Return: the shim steps aside if the call succeeds. */
static bool prepare_for_call(long number, const long *args)
{
	uint64_t flags;

	switch (number) {
	case SYS_seccomp:
	case SYS_prctl:
		return check_filter(number, args);
	case SYS_exit_group:
		shim_at_end((int)args[0], false);
		return false;
	case SYS_exit:
		shim_thread_ends();
		return false;
	case SYS_unshare:
		leave_by_unshare((int)args[0]);
		return false;
	case SYS_setns:
		leave_by_setns((int)args[1]);
		return false;
	case SYS_clone:
	case SYS_clone3:
		flags = clone_flags(number, args);
		if (flags & CLONE_VM && !(flags & (CLONE_THREAD | CLONE_VFORK)))
			shim_memory_shared();
		return false;
	case SYS_userfaultfd:
		return false;
	case SYS_ioctl:
		check_request(args);
		return false;
	case SYS_io_uring_register:
		shim_register_uring((unsigned)args[1], (const void *)args[2],
				    (unsigned)args[3], NULL);
		return false;
	case SYS_prlimit64:
		check_limit(args[0], args[1], (const void *)args[2]);
		return false;
	case SYS_setrlimit:
		check_limit(0, args[0], (const void *)args[1]);
		return false;
	case SYS_mlock2:
	case SYS_mlockall:
	case SYS_munlockall:
		shim_lock_call(number, args);
		return false;
	default:
		shim_policy_call(number, args);
		return false;
	}
}

/* Return: what libc's syscall() would. */
static long make_syscall(long number, const long *args, bool asks_first)
{
	bool aside = asks_first && is_watched(number) &&
		     prepare_for_call(number, args);
	long result = raw_syscall(number, args);

	if ((unsigned long)result <= -4096ul) {
		if (number == SYS_userfaultfd)
			shim_memory_watched();
		return result;
	}
	if (asks_first && number == SYS_set_mempolicy)
		shim_ahead_policy_refused();
	if (aside)
		shim_filter_refused();
	errno = (int)-result;
	return -1;
}

static long checked_syscall(long number, const long *args)
{
	return make_syscall(number, args, true);
}

/* Where the code of this library begins and ends, as the linker says it. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_own(const void *from)
{
	return (const char *)from >= __ehdr_start && (const char *)from < etext;
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
	return make_syscall(number, args, !is_own(__builtin_return_address(0)));
}

KTASK_API int ioctl(int fd, unsigned long request, ...)
{
	long args[6] = { fd, (long)request };
	va_list list;

	va_start(list, request);
	args[2] = va_arg(list, long);
	va_end(list);
	return (int)checked_syscall(SYS_ioctl, args);
}

KTASK_API int prctl(int option, ...)
{
	long args[6] = { option };
	va_list list;

	va_start(list, option);
	for (int i = 1; i < 5; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	return (int)checked_syscall(SYS_prctl, args);
}

/* By the same system call as libc. */
static int set_limit(pid_t who, int resource, const void *new, void *old)
{
	const long args[6] = { who, resource, (long)new, (long)old };

	return (int)checked_syscall(SYS_prlimit64, args);
}

KTASK_API int setrlimit(__rlimit_resource_t resource,
			const struct rlimit *limit)
{
	return set_limit(0, (int)resource, limit, NULL);
}

KTASK_API int setrlimit64(__rlimit_resource_t resource,
			  const struct rlimit64 *limit)
{
	return set_limit(0, (int)resource, limit, NULL);
}

KTASK_API int prlimit(pid_t who, enum __rlimit_resource resource,
		      const struct rlimit *new, struct rlimit *old)
{
	return set_limit(who, (int)resource, new, old);
}

KTASK_API int prlimit64(pid_t who, enum __rlimit_resource resource,
			const struct rlimit64 *new, struct rlimit64 *old)
{
	return set_limit(who, (int)resource, new, old);
}
#endif
