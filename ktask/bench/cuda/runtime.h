/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What bench-cuda calls of CUDA: libraries that are loaded when it runs, so that it is
 * built without them.  Handles are addresses in both.
 */
#ifndef BENCH_CUDA_RUNTIME_H
#define BENCH_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

/* libcudart; each returns 0 or a cudaError_t. */
struct cuda_runtime {
	const char *library; /* its name, as dlopen(3) takes it */
	int (*host_register)(void *start, size_t len, unsigned flags);
	int (*host_unregister)(void *start);
	int (*count_devices)(int *nr);
	int (*set_device)(int device);
	int (*allocate)(void **at, size_t len);
	int (*free)(void *at);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_synchronize)(void *stream);
	int (*memset_async)(void *at, int value, size_t len, void *stream);
	const char *(*tell_error)(int error);
};

/* Ends the program with what failed, and why. */
void __attribute__((noreturn)) end_with(const char *what, const char *why);

/**
 * runtime_load - the library of that name, or one that is found if it is NULL
 *
 * Ends the program where there is none, or no GPU.
 */
void runtime_load(struct cuda_runtime *runtime, const char *named);

/* runtime_check - ends the program with what failed unless @error is 0 */
void runtime_check(const struct cuda_runtime *runtime, int error,
		   const char *what);

/* An empty kernel, of which the driver makes code: libcuda, and no compiler. */
struct cuda_kernel {
	int (*launch)(void *func, unsigned, unsigned, unsigned, unsigned,
		      unsigned, unsigned, unsigned, void *stream, void **args,
		      void **extra);
	void *func;
};

/* kernel_load - in a thread that has set its device; false: there is none */
bool kernel_load(struct cuda_kernel *kernel);

#endif /* BENCH_CUDA_RUNTIME_H */
