/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the devices of ktask/register.h share: their control block, and functions of
 * libraries that are loaded only when they are used.
 */
#ifndef OPS_REGISTER_DEVICE_H
#define OPS_REGISTER_DEVICE_H

#include <ktask/register.h>

/**
 * register_device_init - set @ctl, as far as its size goes, with @device as its
 * argument
 * @device: the program's structure, which begins with its size; used where it is, so
 *	fields behind @least must not be read unless that size reaches them
 * @least: bytes up to the end of the last required field
 * @known: bytes of the structure here
 *
 * Return: 0; -EINVAL: NULL, or too short; -E2BIG.
 */
int register_device_init(struct ktask_register_ctl *ctl, void *device,
			 size_t least, size_t known, ktask_register_func add,
			 ktask_register_func take);

/**
 * register_device_load - find two functions of one library
 * @names: of the functions; the same array for the same device
 * @named: the library's name, which is then set to a copy that is never freed;
 *	NULL: the one that the program has loaded, or one of
 * @libraries: names to try, the last one NULL
 *
 * The library stays loaded, whatever the program does, and what was found is kept.
 *
 * Return: 0; -ELIBACC; -ENOMEM.
 */
int register_device_load(const char *const names[2], const char **named,
			 const char *const *libraries);

/** register_device_func - function @index of a library that has been loaded; NULL if
 * it has not: the program changed its structure */
void *register_device_func(const char *const names[2], const char *named,
			   unsigned index);

#endif /* OPS_REGISTER_DEVICE_H */
