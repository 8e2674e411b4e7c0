/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Host memory for GPUs, by the runtime library of CUDA.  It is loaded at the first use,
 * unless the program has loaded it before.
 */
#include <errno.h>
#include <stddef.h>

#include "common/struct_size.h"
#include "register_device.h"

static const char *const cuda_names[2] = { "cudaHostRegister",
					   "cudaHostUnregister" };

typedef int (*host_register_func)(void *start, size_t len, unsigned flags);
typedef int (*host_unregister_func)(void *start);

/* Of cudaError_t; the same since CUDA 10.1. */
static int errno_of_cuda(int cuda_error)
{
	switch (cuda_error) {
	case 0:
		return 0;
	case 1: /* cudaErrorInvalidValue */
		return -EINVAL;
	case 2: /* cudaErrorMemoryAllocation */
		return -ENOMEM;
	case 100: /* cudaErrorNoDevice */
		return -ENODEV;
	case 712: /* cudaErrorHostMemoryAlreadyRegistered */
		return -EBUSY;
	case 713: /* cudaErrorHostMemoryNotRegistered */
		return -ENOENT;
	case 800: /* cudaErrorNotPermitted */
		return -EPERM;
	case 801: /* cudaErrorNotSupported */
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

static int note_error(struct ktask_cuda *cuda, int cuda_error)
{
	if (cuda_error)
		cuda->cuda_error = cuda_error;
	return errno_of_cuda(cuda_error);
}

static int add_host(void *start, void *end, void *arg)
{
	struct ktask_cuda *cuda = arg;
	host_register_func host_register =
		(host_register_func)register_device_func(cuda_names,
							 cuda->library, 0);

	if (!host_register)
		return -ELIBACC;
	return note_error(cuda,
			  host_register(start,
					(size_t)((char *)end - (char *)start),
					cuda->flags));
}

static int take_host(void *start, void *end, void *arg)
{
	struct ktask_cuda *cuda = arg;
	host_unregister_func host_unregister =
		(host_unregister_func)register_device_func(cuda_names,
							   cuda->library, 1);

	if (!host_unregister)
		return -ELIBACC;
	return note_error(cuda, host_unregister(start));
}

static int load_cuda(struct ktask_cuda *cuda)
{
	static const char *const libraries[] = { "libcudart.so.13",
						 "libcudart.so.12",
						 "libcudart.so.11.0",
						 "libcudart.so", NULL };

	return register_device_load(cuda_names, &cuda->library, libraries);
}

int ktask_register_cuda(struct ktask_register_ctl *ctl, struct ktask_cuda *cuda)
{
	int saved_errno = errno;
	int error = register_device_init(
		ctl, cuda, STRUCT_SIZE_TO(struct ktask_cuda, library),
		sizeof(*cuda), add_host, take_host);

	if (error)
		return error;
	cuda->cuda_error = 0;
	error = load_cuda(cuda);
	errno = saved_errno;
	return error;
}
