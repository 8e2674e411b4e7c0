// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of another process, for those who may ptrace it.
 *
 * The kernel's own check (mm_access) is not there for modules, and a copy of it
 * would miss what security modules say.  Whoever has opened /proc/PID/mem has
 * passed it, and the file keeps the address space, so that no process that
 * later has the same number is meant.
 *
 * How such a file is known: its operations are those of one that was opened
 * through a mount of proc which nobody else can see or cover.
 *
 * Only a process can open its file.  Where ktask is built in there is none yet when
 * the device is made, so that the first request finds the operations.
 *
 * Locking: mem_ops is set by remote_init(), which the module calls before the device
 * is there, under find_ops_lock, and constant from then: READ_ONCE().
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

/* NULL: there is no proc, and nobody has such a file. */
static const struct file_operations *mem_ops;
static DEFINE_MUTEX(find_ops_lock);

/* Memory whose pages are not made ahead: what is not the process's alone, cannot be
 * taken back, grows by faults, or was never meant to be used up. */
#define NEVER_AHEAD                                                        \
	(VM_SHARED | VM_MAYSHARE | VM_LOCKED | VM_GROWSDOWN | VM_GROWSUP | \
	 VM_IO | VM_PFNMAP | VM_MIXEDMAP | VM_NORESERVE)
/* Made ahead with the address space locked once: whoever waits to change it would be
 * slower than without. */
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

/* To free gigabytes is not for a caller of low priority: the process's parent, or
 * whoever needs the memory, would wait for it. */
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
 * The lock is held throughout: what was found to be ordinary memory may be another
 * mapping as soon as it is not.  So a page that must be read from a disk is not waited
 * for.  It was touched once, and ends the request, as a mapping does that is not ordinary.
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
	/* Of the process that loads the module, or asks, which may do that. */
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
