/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <dlfcn.h>
#include <errno.h>

#include "register_device.h"

int register_device_init(struct ktask_register_ctl *ctl,
			 const uint64_t *reserved, ktask_register_func add,
			 ktask_register_func take, void *arg)
{
	const struct ktask_register_ctl fresh = {
		.struct_size = sizeof(*ctl),
		.register_func = add,
		.unregister_func = take,
		.func_arg = arg,
	};

	if (!ctl)
		return -EINVAL;
	for (unsigned i = 0; i < 4; i++)
		if (reserved[i])
			return -EINVAL;
	*ctl = fresh;
	return 0;
}

static int find_both(void *library, void *funcs[2], const char *const names[2])
{
	for (unsigned i = 0; i < 2; i++) {
		funcs[i] = dlsym(library, names[i]);
		if (!funcs[i])
			return -ELIBACC;
	}
	return 0;
}

static int load_named(void *funcs[2], const char *const names[2],
		      const char *named)
{
	void *library = dlopen(named, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -ELIBACC;
	if (!find_both(library, funcs, names))
		return 0;
	dlclose(library);
	return -ELIBACC;
}

int register_device_load(void *funcs[2], const char *const names[2],
			 const char *named, const char *const *libraries)
{
	if (named)
		return load_named(funcs, names, named);
	/* The one that the program uses holds its devices. */
	if (!find_both(RTLD_DEFAULT, funcs, names))
		return 0;
	for (; *libraries; libraries++)
		if (!load_named(funcs, names, *libraries))
			return 0;
	return -ELIBACC;
}
