/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plain calls, by system call.
 *
 * dlsym(RTLD_NEXT) is not used: it may allocate, takes the loader's lock, and
 * has no answer for calls made before this file's constructors ran.  The price
 * is that another preloaded library behind us that replaces the same calls is
 * not asked.
 *
 * The library inside the shim makes these calls in the same way, so that they
 * never come back through calls.c, in whichever thread.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

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

int real_madvise(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
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
