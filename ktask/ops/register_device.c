/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What devices share: see register_device.h.
 *
 * Owns the list of libraries that have been loaded.  It only grows, by one entry for
 * each library that programs name, since these stay loaded as well.
 *
 * Locking: there is no lock.
 *
 *	L: entries are added at the front by compare-and-swap, constant from then on
 *	   and never freed; any thread reads the list
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/struct_size.h"
#include "register_device.h"

/* Devices set fields up to this one. */
#define CTL_LEAST STRUCT_SIZE_TO(struct ktask_register_ctl, max_piece_bytes)

struct device_library {
	struct device_library *next;
	const char *const *names; /* of the functions; tell the device */
	char *named; /* NULL: none was, and this one was found */
	void *funcs[2];
};

static struct device_library *_Atomic loaded_libraries; /* L */

int register_device_init(struct ktask_register_ctl *ctl, void *device,
			 size_t least, size_t known, ktask_register_func add,
			 ktask_register_func take)
{
	const struct ktask_register_ctl fresh = {
		.register_func = add,
		.unregister_func = take,
		.func_arg = device,
	};
	int error;

	if (!ctl || !device)
		return -EINVAL;
	error = struct_size_check(ctl->struct_size, CTL_LEAST);
	if (!error)
		error = struct_size_check(struct_size_of(device), least);
	if (!error)
		error = struct_size_check_rest(device, struct_size_of(device),
					       known);
	if (!error)
		struct_size_write(ctl, &fresh, sizeof(fresh));
	return error;
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

static int load_any(void *funcs[2], const char *const names[2],
		    const char *named, const char *const *libraries)
{
	if (named)
		return load_named(funcs, names, named);
	/* The one that the program uses holds its devices.  It stays, since dlsym()
	 * makes this library depend on it. */
	if (!find_both(RTLD_DEFAULT, funcs, names))
		return 0;
	for (; *libraries; libraries++)
		if (!load_named(funcs, names, *libraries))
			return 0;
	return -ELIBACC;
}

static bool is_named(const struct device_library *library, const char *named)
{
	if (!named || !library->named)
		return !named && !library->named;
	return !strcmp(library->named, named);
}

static struct device_library *find_loaded(const char *const names[2],
					  const char *named)
{
	struct device_library *library = atomic_load(&loaded_libraries);

	while (library &&
	       (library->names != names || !is_named(library, named)))
		library = library->next;
	return library;
}

/* Two threads may add the same one: either serves. */
static void add_loaded(struct device_library *library)
{
	library->next = atomic_load(&loaded_libraries);
	while (!atomic_compare_exchange_weak(&loaded_libraries, &library->next,
					     library))
		;
}

static int load_library(struct device_library *library, const char *named,
			const char *const *libraries)
{
	if (named) {
		library->named = strdup(named);
		if (!library->named)
			return -ENOMEM;
	}
	return load_any(library->funcs, library->names, named, libraries);
}

/* Return: a new entry, or NULL and the reason. */
static struct device_library *make_library(const char *const names[2],
					   const char *named,
					   const char *const *libraries,
					   int *error)
{
	struct device_library *library = calloc(1, sizeof(*library));

	*error = -ENOMEM;
	if (!library)
		return NULL;
	library->names = names;
	*error = load_library(library, named, libraries);
	if (!*error) {
		add_loaded(library);
		return library;
	}
	free(library->named);
	free(library);
	return NULL;
}

int register_device_load(const char *const names[2], const char **named,
			 const char *const *libraries)
{
	struct device_library *library = find_loaded(names, *named);
	int error = 0;

	if (!library)
		library = make_library(names, *named, libraries, &error);
	if (library)
		*named = library->named;
	return error;
}

void *register_device_func(const char *const names[2], const char *named,
			   unsigned index)
{
	const struct device_library *library = find_loaded(names, named);

	return library ? library->funcs[index] : NULL;
}
