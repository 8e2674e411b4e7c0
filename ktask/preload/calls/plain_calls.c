/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plain calls, by system call.
 *
 * dlsym(RTLD_NEXT) is not used: it may allocate, takes the loader's lock, and does not
 * work for calls that are made before the constructors of the shim have run.  The price
 * is that another preloaded library that replaces the same calls is bypassed if it comes
 * after the shim.  (There are two exceptions: posix_fallocate() on file systems that
 * cannot allocate, where libc writes to the file; and fallocate() where registers have 32
 * bits, since libc knows in which order the halves of an offset go.)
 *
 * The library inside the shim makes its system calls in the same way, so that they never
 * come back through the shim's functions, in whichever thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/raw_syscalls.h"
#include "util/scoped.h"

void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		int64_t offset)
{
#ifdef SYS_mmap2
	/* Offset in units of 4096 bytes, whatever the page size. */
	if (offset & 4095) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap2, addr, len, prot, flags, fd,
			       (unsigned long)(offset >> 12));
#else
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
#endif
}

int real_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

void *real_mremap(void *old, size_t old_len, size_t new_len, int flags,
		  void *addr)
{
	return (void *)syscall(SYS_mremap, old, old_len, new_len, flags, addr);
}

int real_madvise(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

bool real_knows_advice(int advice)
{
	keep_errno();
	int rc = real_madvise(NULL, 0, advice);

	return rc == 0;
}

int real_mlock(const void *addr, size_t len)
{
	return (int)syscall(SYS_mlock, addr, len);
}

int real_mlock2(const void *addr, size_t len, unsigned flags)
{
	/* As libc: mlock2() without flags works on kernels before 4.4. */
	if (!flags)
		return real_mlock(addr, len);
	return (int)syscall(SYS_mlock2, addr, len, flags);
}

void real_sleep(long ns)
{
	const struct timespec time = { .tv_nsec = ns };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

int real_munlock(const void *addr, size_t len)
{
	return (int)syscall(SYS_munlock, addr, len);
}

void *real_shmat(int id, const void *addr, int flags)
{
	return (void *)syscall(SYS_shmat, id, addr, flags);
}

int real_shmdt(const void *addr)
{
	return (int)syscall(SYS_shmdt, addr);
}

ssize_t real_process_madvise(int pidfd, const struct iovec *ranges, size_t nr,
			     int advice, unsigned flags)
{
	return syscall(SYS_process_madvise, pidfd, ranges, nr, advice, flags);
}

/* Past our own syscall(), which looks at this one. */
void real_exit_group(int status)
{
#ifdef SHIM_RAW
	raw_call3(SYS_exit_group, status, 0, 0);
#else
	syscall(SYS_exit_group, status);
#endif
}

int real_mlockall(int flags)
{
	return (int)syscall(SYS_mlockall, flags);
}

static int call_fallocate(int fd, int mode, int64_t offset, int64_t len)
{
#if __SIZEOF_LONG__ == 8
	return (int)syscall(SYS_fallocate, fd, mode, offset, len);
#else
	/* Halves of a 64-bit argument: libc knows in which order. */
	int (*next)(int, int, off64_t, off64_t) =
		(int (*)(int, int, off64_t, off64_t))dlsym(RTLD_NEXT,
							   "fallocate64");

	return next(fd, mode, offset, len);
#endif
}

/* As libc does it: cancellable at any moment, but only inside the call. */
int real_fallocate(int fd, int mode, int64_t offset, int64_t len)
{
	int type, rc;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	rc = call_fallocate(fd, mode, offset, len);
	pthread_setcanceltype(type, NULL);
	return rc;
}

int real_posix_fallocate(int fd, int64_t offset, int64_t len)
{
	int (*next)(int, off64_t, off64_t);
	int saved_errno = errno;
	int error = call_fallocate(fd, 0, offset, len) ? errno : 0;

	errno = saved_errno;
	if (error != EOPNOTSUPP)
		return error;
	next = (int (*)(int, off64_t, off64_t))dlsym(RTLD_NEXT,
						     "posix_fallocate64");
	return next ? next(fd, offset, len) : error;
}
