/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds libcudart and libcuda, and their functions: see runtime.h.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

/* Older targets are unknown to the newest drivers, newer ones to older GPUs. */
static const char *const kernel_targets[] = { "sm_75", "sm_52", NULL };

#define KERNEL_TEXT                 \
	".version 6.4\n"            \
	".target %s\n"              \
	".address_size 64\n"        \
	".visible .entry nothing()" \
	"{ ret; }\n"

void end_with(const char *what, const char *why)
{
	fprintf(stderr, "bench-cuda: %s: %s\n", what, why);
	exit(1);
}

void runtime_check(const struct cuda_runtime *runtime, int error,
		   const char *what)
{
	if (error)
		end_with(what, runtime->tell_error(error));
}

static void *open_any(const char *const *names, const char **found)
{
	void *library = NULL;

	for (; *names && !library; names++) {
		library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
		*found = *names;
	}
	return library;
}

static void find_functions(struct cuda_runtime *runtime, void *library)
{
	const struct {
		const char *name;
		void *func;
	} functions[] = {
		{ "cudaHostRegister", &runtime->host_register },
		{ "cudaHostUnregister", &runtime->host_unregister },
		{ "cudaGetDeviceCount", &runtime->count_devices },
		{ "cudaSetDevice", &runtime->set_device },
		{ "cudaMalloc", &runtime->allocate },
		{ "cudaFree", &runtime->free },
		{ "cudaStreamCreateWithFlags", &runtime->stream_create },
		{ "cudaStreamSynchronize", &runtime->stream_synchronize },
		{ "cudaMemsetAsync", &runtime->memset_async },
		{ "cudaGetErrorString", &runtime->tell_error },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *func = dlsym(library, functions[i].name);

		if (!func)
			end_with("finding functions of CUDA",
				 functions[i].name);
		memcpy(functions[i].func, &func, sizeof(func));
	}
}

void runtime_load(struct cuda_runtime *runtime, const char *named)
{
	static const char *const known[] = { "libcudart.so.13",
					     "libcudart.so.12",
					     "libcudart.so.11.0",
					     "libcudart.so", NULL };
	const char *const only[] = { named, NULL };
	void *library = open_any(named ? only : known, &runtime->library);
	int nr = 0, error;

	if (!library)
		end_with("loading libcudart", dlerror());
	find_functions(runtime, library);
	error = runtime->count_devices(&nr);
	runtime_check(runtime, error, "looking for a GPU");
	if (!nr)
		end_with("looking for a GPU", "there is none");
	runtime_check(runtime, runtime->set_device(0), "taking the first GPU");
	/* The context is made by the first call that needs one. */
	runtime_check(runtime, runtime->free(NULL), "making a context");
}

static bool load_for(struct cuda_kernel *kernel, void *library,
		     const char *target)
{
	int (*load)(void **module, const void *text);
	int (*find)(void **func, void *module, const char *name);
	char text[256];
	void *module;

	*(void **)&load = dlsym(library, "cuModuleLoadData");
	*(void **)&find = dlsym(library, "cuModuleGetFunction");
	*(void **)&kernel->launch = dlsym(library, "cuLaunchKernel");
	if (!load || !find || !kernel->launch)
		return false;
	snprintf(text, sizeof(text), KERNEL_TEXT, target);
	return !load(&module, text) && !find(&kernel->func, module, "nothing");
}

bool kernel_load(struct cuda_kernel *kernel)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	for (unsigned i = 0; library && kernel_targets[i]; i++)
		if (load_for(kernel, library, kernel_targets[i]))
			return true;
	return false;
}
