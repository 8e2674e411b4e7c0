// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/ktask: checks requests from user space and passes them on.
 *
 * Locking: there is no lock here.  A request is the calling thread's, copied once;
 * several threads may have one in work on the same file.  What these share is a struct
 * pins, made by device_open() and freed by device_release(), which the kernel calls
 * when no request is in work (kernel/client/device_memory.h).
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kernel/client/device_memory.h"

static u32 flags_of(unsigned int command)
{
	switch (command) {
	case KTASK_IOC_POPULATE:
		return KTASK_MEM_WRITE | KTASK_MEM_FD | KTASK_MEM_AHEAD;
	case KTASK_IOC_CLEAR:
		return KTASK_MEM_FD;
	default:
		return 0;
	}
}

/* Is the start a memory address?  Else it is an offset in a file, which mmap() checks. */
static bool is_address(unsigned int command, u32 flags)
{
	return command != KTASK_IOC_CLEAR || !(flags & KTASK_MEM_FD);
}

/* KTASK_MEM_AHEAD needs the two others: a process makes no memory ahead for itself, and to
 * make zero pages ahead would gain nothing. */
static bool is_alone(u32 flags)
{
	const u32 with = KTASK_MEM_WRITE | KTASK_MEM_FD;

	return flags & KTASK_MEM_AHEAD && (flags & with) != with;
}

static int check_request(unsigned int command, const struct ktask_mem *request)
{
	if (request->flags & ~flags_of(command) || is_alone(request->flags))
		return -EINVAL;
	if (request->fd && !(request->flags & KTASK_MEM_FD))
		return -EINVAL;
	if (memchr_inv(request->reserved, 0, sizeof(request->reserved)))
		return -EINVAL;
	if (!PAGE_ALIGNED(request->addr) || !PAGE_ALIGNED(request->len))
		return -EINVAL;
	if (is_address(command, request->flags) &&
	    !access_ok((void __user *)request->addr, request->len))
		return -EFAULT;
	return 0;
}

static int get_request(struct ktask_mem *request, void __user *from)
{
	u32 size;
	int error;

	if (get_user(size, (u32 __user *)from))
		return -EFAULT;
	/* It must have all required fields, which end with len. */
	if (size < offsetofend(struct ktask_mem, len))
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	error = copy_struct_from_user(request, sizeof(*request), from, size);
	/* Use the size that was checked: another thread may have changed it since. */
	request->size = size;
	return error;
}

/* Results for which a shorter structure has no field are not copied. */
static int tell_result(void __user *to, const struct ktask_mem *request)
{
	struct ktask_mem __user *user = to;

	if (request->size >= offsetofend(struct ktask_mem, failed) &&
	    put_user(request->failed, &user->failed))
		return -EFAULT;
	if (request->size >= offsetofend(struct ktask_mem, threads) &&
	    put_user(request->threads, &user->threads))
		return -EFAULT;
	return 0;
}

static int serve_request(struct pins *pins, unsigned int command,
			 struct ktask_mem *request)
{
	switch (command) {
	case KTASK_IOC_POPULATE:
		return memory_populate(request);
	case KTASK_IOC_CLEAR:
		return memory_clear(request);
	case KTASK_IOC_PIN:
		return memory_pin(pins, request);
	default:
		return memory_unpin(pins, request);
	}
}

static long device_ioctl(struct file *file, unsigned int command,
			 unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct ktask_mem request;
	int error;

	if (command != KTASK_IOC_POPULATE && command != KTASK_IOC_PIN &&
	    command != KTASK_IOC_UNPIN && command != KTASK_IOC_CLEAR)
		return -ENOTTY;
	error = get_request(&request, user);
	if (!error)
		error = check_request(command, &request);
	if (error || !request.len)
		return error;
	request.failed = 0;
	request.threads = 0;
	error = serve_request(file->private_data, command, &request);
	if (!tell_result(user, &request))
		return error;
	/* If the result could not be copied, the program does not know of the pin: undo it. */
	if (command == KTASK_IOC_PIN && !error)
		memory_unpin(file->private_data, &request);
	return -EFAULT;
}

static int device_open(struct inode *inode, struct file *file)
{
	struct pins *pins = kzalloc(sizeof(*pins), GFP_KERNEL_ACCOUNT);

	if (!pins)
		return -ENOMEM;
	mutex_init(&pins->lock);
	INIT_LIST_HEAD(&pins->list);
	file->private_data = pins;
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	memory_unpin_all(file->private_data);
	kfree(file->private_data);
	return 0;
}

static const struct file_operations device_ops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* udev sets the group that may use it (packaging/). */
static struct miscdevice ktask_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ktask",
	.fops = &device_ops,
	.mode = 0660,
};

int device_init(void)
{
	return misc_register(&ktask_device);
}

void device_exit(void)
{
	misc_deregister(&ktask_device);
}
