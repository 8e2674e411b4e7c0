// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of another process, for those who may ptrace it.
 *
 * The kernel does not export its own check (mm_access), and a copy of it would miss
 * what security modules say.  Whoever has opened /proc/PID/mem has passed the check.
 * The file keeps the address space, so it never stands for a process that gets the
 * same number later.
 *
 * Such a file is recognised by its operations.  They are compared with those of a file
 * that was opened through a mount of proc which nobody else can see or cover.
 *
 * Only a process can open its file.  If ktask is built in, no process exists yet when
 * the device is made, so the first request finds the operations.
 *
 * Locking: remote_init() sets mem_ops once, under find_ops_lock; all others read it by
 * READ_ONCE().  The module calls remote_init() before it makes the device.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>

#include "kernel/compat.h"
#include "kernel/client/device_memory.h"

/* NULL: not found yet, or there is no proc, so nobody has such a file. */
static const struct file_operations *mem_ops;
static DEFINE_MUTEX(find_ops_lock);

/* Mappings whose pages are not made ahead: those that are shared, that cannot be
 * swapped out, that grow by faults, or that the program does not mean to fill. */
#define NEVER_AHEAD                                                        \
	(VM_SHARED | VM_MAYSHARE | VM_LOCKED | VM_GROWSDOWN | VM_GROWSUP | \
	 VM_IO | VM_PFNMAP | VM_MIXEDMAP | VM_NORESERVE)
/* How many pages are made while the address space is locked once.  With more, a thread
 * that waits to change the address space would be slower than without help. */
#define AHEAD_PAGES 64ul

struct mm_struct *remote_mm(int fd, bool write)
{
	struct mm_struct *mm = ERR_PTR(-EINVAL);
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (!READ_ONCE(mem_ops))
		remote_init();
	if (!(file->f_mode & (write ? FMODE_WRITE : FMODE_READ))) {
		mm = ERR_PTR(-EBADF);
	} else if (READ_ONCE(mem_ops) && file->f_op == mem_ops) {
		mm = file->private_data;
		if (!mm || !mmget_not_zero(mm))
			mm = ERR_PTR(-ESRCH);
	}
	fput(file);
	return mm;
}

bool remote_in_use(const struct mm_struct *mm)
{
	return atomic_read(&mm->mm_users) > 1;
}

/* The last user frees the memory.  A caller of low priority must not do that: the
 * parent of the process, or whoever needs the memory, would wait for it. */
void remote_put(struct mm_struct *mm)
{
	mmput_async(mm);
}

/* How many of these pages may be made ahead now, from the first on. */
static unsigned long count_ordinary(struct mm_struct *mm, unsigned long addr,
				    unsigned long nr)
{
	struct vm_area_struct *vma;

	mmap_assert_locked(mm);
	vma = find_vma(mm, addr);
	if (!vma || vma->vm_start > addr || vma->vm_ops || vma->vm_file ||
	    !(vma->vm_flags & VM_WRITE) || vma->vm_flags & NEVER_AHEAD ||
	    userfaultfd_armed(vma))
		return 0;
	nr = min(nr, AHEAD_PAGES);
	return min(nr, (vma->vm_end - addr) >> PAGE_SHIFT);
}

/*
 * The lock is held from the check to the last page, because another mapping may take
 * the place of ordinary memory once the lock is dropped.  FOLL_NOWAIT keeps it held: a
 * page that must be read from swap is not waited for, although its read begins.  Such a
 * page ends the request, as memory that is not ordinary does.
 */
static long fault_in_ahead(struct mm_struct *mm, unsigned long addr,
			   unsigned long nr, unsigned int gup_flags)
{
	long done = 0;

	mmap_assert_locked(mm);
	nr = count_ordinary(mm, addr, nr);
	if (nr)
		done = compat_get_user_pages_remote(
			mm, addr, nr, gup_flags | FOLL_NOWAIT, NULL, NULL);
	return done ? done : -EFAULT;
}

long remote_fault_in(struct mm_struct *mm, unsigned long addr, unsigned long nr,
		     unsigned int gup_flags, bool ahead)
{
	int locked = 1;
	long done;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	if (ahead)
		done = fault_in_ahead(mm, addr, nr, gup_flags);
	else
		done = compat_get_user_pages_remote(mm, addr, nr, gup_flags,
						    NULL, &locked);
	if (locked)
		mmap_read_unlock(mm);
	return done;
}

static int find_mem_ops(void)
{
	struct file_system_type *type = get_fs_type("proc");
	struct vfsmount *proc;
	struct file *file;

	if (!type)
		return 0;
	proc = kern_mount(type);
	module_put(type->owner);
	if (IS_ERR(proc))
		return PTR_ERR(proc);
	/* The process that loads the module, or that asks, may open its own file. */
	file = file_open_root_mnt(proc, "self/mem", O_RDONLY, 0);
	if (!IS_ERR(file)) {
		WRITE_ONCE(mem_ops, file->f_op);
		fput(file);
	}
	kern_unmount(proc);
	return PTR_ERR_OR_ZERO(file);
}

int remote_init(void)
{
	int error = 0;

	mutex_lock(&find_ops_lock);
	if (!mem_ops)
		error = find_mem_ops();
	mutex_unlock(&find_ops_lock);
	return error;
}
