/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the devices of ktask/register.h share: their control block, and functions of
 * libraries that are loaded only when they are used.
 */
#ifndef OPS_REGISTER_DEVICE_H
#define OPS_REGISTER_DEVICE_H

#include <ktask/register.h>

/**
 * register_device_init - a fresh @ctl
 * @reserved: four fields of the device's structure
 *
 * Return: 0; -EINVAL: NULL, or a reserved field is not 0.
 */
int register_device_init(struct ktask_register_ctl *ctl,
			 const uint64_t *reserved, ktask_register_func add,
			 ktask_register_func take, void *arg);

/**
 * register_device_load - find two functions of one library
 * @named: the library's name; NULL: the one that the program has loaded, or one of
 * @libraries: names to try, the last one NULL
 *
 * The library stays loaded.
 *
 * Return: 0; -ELIBACC.
 */
int register_device_load(void *funcs[2], const char *const names[2],
			 const char *named, const char *const *libraries);

#endif /* OPS_REGISTER_DEVICE_H */
