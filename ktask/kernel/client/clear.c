// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clearing a range of the caller's memory, or of a file through a mapping.
 *
 * mmap() makes all checks that a file asks for: seals, its mode, the size of huge pages.
 * write() would take the file's lock for each chunk, so that only one thread could work at
 * a time.
 *
 * Behaves badly if another thread of the program replaces the mapping meanwhile: then the
 * memory of the new mapping is cleared.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "kernel/client/device_memory.h"

/* Cleared between two checks for signals and for a reschedule. */
#define STEP_BYTES (256ul << 10)

static int clear_chunk(void *start, void *end, void *arg)
{
	unsigned long addr = (unsigned long)start;

	while (addr < (unsigned long)end) {
		unsigned long len = min((unsigned long)end - addr, STEP_BYTES);
		unsigned long left = clear_user((void __user *)addr, len);

		if (left) {
			addr = (addr + len - left) & PAGE_MASK;
			memory_failed(arg, addr);
			return fatal_signal_pending(current) ? -EINTR : -EFAULT;
		}
		addr += len;
		cond_resched();
	}
	return 0;
}

static int clear_file(struct file *file, struct ktask_mem *request)
{
	struct ktask_mem mapped = *request;
	struct memory_job job = {};
	unsigned long addr =
		vm_mmap(file, 0, request->len, PROT_READ | PROT_WRITE,
			MAP_SHARED, request->addr);
	int error;

	if (IS_ERR_VALUE(addr))
		return (int)addr;
	mapped.addr = addr;
	error = memory_run(&mapped, &job, clear_chunk, NULL);
	request->threads = mapped.threads;
	if (mapped.failed)
		request->failed = mapped.failed - addr + request->addr;
	/* This fails only if the process is being killed, and then all is unmapped anyway. */
	vm_munmap(addr, request->len);
	return error;
}

int memory_clear(struct ktask_mem *request)
{
	struct memory_job job = {};
	struct file *file;
	int error;

	if (!(request->flags & KTASK_MEM_FD))
		return memory_run(request, &job, clear_chunk, NULL);
	file = fget(request->fd);
	if (!file)
		return -EBADF;
	error = clear_file(file, request);
	fput(file);
	return error;
}
