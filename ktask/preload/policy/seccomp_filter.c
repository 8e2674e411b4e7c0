/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * System call filters (seccomp).
 *
 * The library makes system calls that the plain call does not make, and a filter may
 * kill the process for one of them.  So guarded_calls.c intercepts the setting of a
 * filter.  The shim first runs the filter's program on each of these calls.  If the
 * filter would neither allow a call nor refuse it with an error, the shim ends its
 * helpers and does nothing from then on.
 *
 * A filter from before the start of the program cannot be read.  `ktask run` tries it
 * out, and reports in KTASK_RUN_OPS that it is harmless.  Without that report the shim
 * does nothing.
 *
 * Locking: there is no lock, because a filter may kill for a futex.  Any thread writes
 * filter_state, which is atomic.  A thread that finds it UNKNOWN asks the kernel, and the
 * first answer counts.  A flag guards the copy of a program: a thread that finds the flag
 * set assumes that the filter is harmful.
 *
 * Not seen: filters that are set without the C library.  A filter holds for one thread;
 * here it counts for all.
 *
 * Behaves badly where a child of vfork() sets a filter.  The child runs on the stack of
 * the thread that made it, and the shim cannot tell the two apart without a system
 * call, for which the filter may kill.  So:
 *  - _exit() by the child must make no such call.  The shim no longer handles any
 *    _exit() of that thread, not even the parent's own.
 *  - A second filter or an unshare() by the child is handled as if the child had set no
 *    filter.  Its first filter may kill it for that.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/large_static.h"
#include "util/raw_syscalls.h"
#include "util/scoped.h"

enum { UNKNOWN, CLEAR, FORBIDDEN };

static _Atomic int filter_state;
static bool inherited_ok;
/* A child of vfork(), which has this thread's memory, has set one. */
static __thread bool in_child;

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCH AUDIT_ARCH_RISCV64
#endif

/*
 * Every call that a job, its helpers and the report may make, with the arguments that
 * filters test.  ktask/tests/preload/filters-and-signals-are-respected finds missing
 * ones.
 */
static const struct {
	int number;
	uint64_t args[6];
} needed_calls[] = {
#ifdef SYS_access
	{ SYS_access, { 0 } },
#endif
	{ SYS_brk, { 0 } },
	{ SYS_capget, { 0 } },
	{ SYS_clock_gettime, { CLOCK_THREAD_CPUTIME_ID } },
	{ SYS_clock_gettime, { (uint64_t)-10 } }, /* of another thread */
	{ SYS_clock_nanosleep, { 0 } },
	{ SYS_clone, { RAW_THREAD_FLAGS } },
#ifdef SYS_close_range
	{ SYS_close_range, { 0, UINT32_MAX, 2 } },
#endif
#ifdef SYS_clone3
	{ SYS_clone3, { 0 } },
#endif
	{ SYS_close, { 3 } },
	{ SYS_exit, { 0 } },
	{ SYS_fallocate, { 3 } },
	{ SYS_fchmod, { 3 } },
	{ SYS_fcntl, { 3, 1 } },
	{ SYS_fstatfs, { 3 } },
	{ SYS_futex, { 0, 128 } },
	{ SYS_futex, { 0, 1 } },
	{ SYS_futex, { 0, 129 } },
	{ SYS_futex, { 0, 265 } }, /* pthread_join() */
	{ SYS_get_mempolicy, { 0 } },
	{ SYS_getdents64, { 3 } },
	{ SYS_get_robust_list, { 0 } },
	{ SYS_geteuid, { 0 } },
	{ SYS_getpid, { 0 } },
	{ SYS_getrandom, { 0 } },
	{ SYS_getrusage, { 0 } },
	{ SYS_getrusage, { 1 } },
	{ SYS_gettid, { 0 } },
	{ SYS_ioctl, { 3, 0xc0686611 } },
	{ SYS_ioctl, { 3, 0xc0606610 } }, /* PAGEMAP_SCAN */
	{ SYS_ioctl, { 3, 0xc0406ba0 } }, /* KTASK_IOC_POPULATE */
	{ SYS_linkat, { (uint64_t)-100 } },
	{ SYS_lseek, { 3 } },
	{ SYS_madvise, { 0, 0, MADV_POPULATE_WRITE } },
	{ SYS_madvise, { 0, 0, MADV_DONTNEED } },
	{ SYS_madvise, { 0, 0, MADV_HUGEPAGE } },
	{ SYS_madvise, { 0, 0, MADV_NOHUGEPAGE } },
	{ SYS_mincore, { 0 } },
	{ SYS_mlock, { 0 } },
	{ SYS_mlock2, { 0, 0, 1 } },
	{ SYS_mmap, { 0, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS } },
	{ SYS_mmap, { 0, 4096, 1, MAP_SHARED, 3 } },
	{ SYS_mmap, { 0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS } },
	{ SYS_mmap, { 0, 4096, 3, MAP_SHARED | MAP_FIXED, 3 } },
	{ SYS_mprotect, { 0, 4096, 3 } },
	{ SYS_munlock, { 0 } },
	{ SYS_munmap, { 0 } },
	{ SYS_newfstatat, { 3 } },
	{ SYS_openat, { (uint64_t)-100 } },
	{ SYS_prctl, { PR_SET_NAME } },
	{ SYS_pread64, { 3 } },
	{ SYS_prlimit64, { 0 } },
	{ SYS_process_vm_readv, { 0 } },
	{ SYS_read, { 3 } },
#ifdef SYS_readlink
	{ SYS_readlink, { 0 } },
#else
	{ SYS_readlinkat, { (uint64_t)-100 } },
#endif
#ifdef SYS_rseq
	{ SYS_rseq, { 0 } },
#endif
	{ SYS_rt_sigaction, { 33 } },
	{ SYS_rt_sigpending, { 0 } },
	{ SYS_rt_sigprocmask, { 2 } },
	{ SYS_rt_sigtimedwait, { 0 } },
	{ SYS_sched_get_priority_max, { 0 } },
	{ SYS_sched_get_priority_min, { 0 } },
	{ SYS_sched_getaffinity, { 0 } },
	{ SYS_sched_getattr, { 0 } },
	{ SYS_sched_getscheduler, { 0 } },
	{ SYS_sched_setaffinity, { 1 } },
	{ SYS_sched_setattr, { 0 } },
	{ SYS_sched_setscheduler, { 1, SCHED_OTHER } },
	{ SYS_sched_yield, { 0 } },
	{ SYS_set_mempolicy, { 0 } },
	{ SYS_set_robust_list, { 0 } },
	{ SYS_setpriority, { 0 } },
#ifdef SYS_shmctl
	{ SYS_shmctl, { 0, 2 } },
#endif
	{ SYS_statx, { (uint64_t)-100 } },
	{ SYS_sysinfo, { 0 } },
	{ SYS_tgkill, { 0 } },
	{ SYS_write, { 2 } },
};

/* The library copes with every call that fails (ERRNO).  LOG allows the call. */
static bool is_harmless(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_ERRNO ||
	       action == SECCOMP_RET_LOG;
}

static bool lets_work(const struct sock_fprog *program)
{
#ifdef ARCH
	for (size_t i = 0; i < sizeof(needed_calls) / sizeof(*needed_calls);
	     i++) {
		struct seccomp_data data = { .nr = needed_calls[i].number,
					     .arch = ARCH };

		for (int arg = 0; arg < 6; arg++)
			data.args[arg] = needed_calls[i].args[arg];
		if (!is_harmless(shim_bpf_run(program, &data)))
			return false;
	}
	return true;
#else
	return false;
#endif
}

/*
 * The address may be invalid: libseccomp passes NULL to find out what the kernel
 * supports.  The kernel itself shall refuse it.
 *
 * Return: 0; -EFAULT, as the kernel will return; another -errno.
 */
int shim_copy_in(void *to, const void *from, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)from, len };
	long copied = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local,
			      1, &remote, 1, 0);

	if (copied == (long)len)
		return 0;
	return copied < 0 ? -errno : -EFAULT;
}

/* Called before any filter is set: a filter might kill for this prctl(). */
static void check_inherited(void)
{
	int expected = UNKNOWN, found;

	if (atomic_load(&filter_state) != UNKNOWN)
		return;
	found = syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) > 0 &&
				!inherited_ok
			? FORBIDDEN
			: CLEAR;
	atomic_compare_exchange_strong(&filter_state, &expected, found);
}

void shim_filter_init(bool harmless_one)
{
	inherited_ok = harmless_one;
}

bool shim_filter_allows(void)
{
	keep_errno();

	check_inherited();
	return atomic_load(&filter_state) == CLEAR;
}

static bool program_lets_work(const void *program)
{
	static struct sock_filter code[BPF_MAXINSNS] LARGE_STATIC;
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	struct sock_fprog copy;
	int error = shim_copy_in(&copy, program, sizeof(copy));
	bool answer;

	if (error)
		return error == -EFAULT;
	if (!copy.len || copy.len > BPF_MAXINSNS)
		return true; /* the kernel refuses it */
	if (atomic_flag_test_and_set(&taken))
		return false;
	error = shim_copy_in(code, copy.filter, copy.len * sizeof(*code));
	copy.filter = code;
	answer = error ? error == -EFAULT : lets_work(&copy);
	atomic_flag_clear(&taken);
	return answer;
}

/*
 * Does this process share the memory of the one that loaded the shim?  A child of vfork()
 * does, and must not decide for its parent.  A child of a bare clone() has its own memory
 * and decides for itself.  If this is not known, the answer is no, and the parent may step
 * aside as well.
 */
static bool shares_owners_memory(void)
{
	static volatile long mark;
	long seen = 0;
	struct iovec local = { &seen, sizeof(seen) };
	struct iovec remote = { (void *)&mark, sizeof(mark) };

	mark = syscall(SYS_getpid);
	return syscall(SYS_process_vm_readv, shim_owner(), &local, 1, &remote,
		       1, 0) == sizeof(seen) &&
	       seen == mark;
}

bool shim_filter_seen(bool strict, const void *program)
{
	keep_errno();
	bool ours;

	/* First: once a filter is set, no system call is safe. */
	if (!shim_filter_allows())
		return false;
	if (!strict && program_lets_work(program))
		return false;
	ours = shim_is_ours();
	if (ours) {
		if (shim_prefaults)
			shim_prefault_end();
		shim_ahead_end();
		shim_trim();
		shim_report_now("it set a system call filter (seccomp), behind "
				"which nothing is taken over");
	}
	if (!ours && shares_owners_memory())
		in_child = true;
	else
		atomic_store(&filter_state, FORBIDDEN);
	return true;
}

void shim_filter_refused(void)
{
	bool ours = !in_child;

	in_child = false;
	atomic_store(&filter_state, CLEAR);
	if (!ours)
		return;
	shim_report_again();
	shim_record_again();
}

bool shim_filter_in_child(void)
{
	return in_child;
}
