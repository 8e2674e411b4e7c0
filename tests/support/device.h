/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device that keeps what is registered with it: each piece once, none that
 * overlaps another, taken back with the same ends and in descending order.  A test
 * says where it fails and what else a call does.  Needs ktest.h before it.
 */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <ktask/register.h>

#include "pages.h"

#define DEVICE_PIECES 20000

struct device {
	pthread_mutex_t lock;
	struct {
		char *start;
		char *end;
	} pieces[DEVICE_PIECES]; /* that are registered now */
	unsigned nr;
	unsigned calls; /* to register, also those that failed */
	unsigned takes; /* to unregister */
	unsigned wrong; /* what a device may not see */
	size_t largest;
	char *last_taken;
	bool any_order; /* else it is wrong */

	/* The test's own. */
	unsigned fail_call; /* that fails; 0: none */
	int fail_error;
	int take_error;
	int (*before)(struct device *device, char *start, char *end);
	/* What unregistering answers; NULL: take_error. */
	int (*answer_take)(struct device *device, char *start, char *end);
	void *arg;
};

static inline void device_init(struct device *device)
{
	memset(device, 0, sizeof(*device));
	pthread_mutex_init(&device->lock, NULL);
	device->fail_error = -ENODEV;
}

/* With the lock held. */
static inline int device_add(struct device *device, char *start, char *end)
{
	for (unsigned i = 0; i < device->nr; i++)
		device->wrong += start < device->pieces[i].end &&
				 end > device->pieces[i].start;
	device->wrong += start >= end || device->nr == DEVICE_PIECES;
	device->wrong += !device->any_order && device->nr &&
			 start != device->pieces[device->nr - 1].end;
	if ((size_t)(end - start) > device->largest)
		device->largest = (size_t)(end - start);
	device->pieces[device->nr].start = start;
	device->pieces[device->nr++].end = end;
	return 0;
}

static inline int device_register(void *start, void *end, void *arg)
{
	struct device *device = arg;
	int error = 0;
	unsigned call;

	pthread_mutex_lock(&device->lock);
	call = ++device->calls;
	pthread_mutex_unlock(&device->lock);
	if (device->before)
		error = device->before(device, start, end);
	if (!error && call == device->fail_call)
		error = device->fail_error;
	if (error)
		return error;
	pthread_mutex_lock(&device->lock);
	device_add(device, start, end);
	pthread_mutex_unlock(&device->lock);
	return 0;
}

static inline int device_unregister(void *start, void *end, void *arg)
{
	struct device *device = arg;
	unsigned i = 0;

	pthread_mutex_lock(&device->lock);
	device->takes++;
	while (i < device->nr && (device->pieces[i].start != (char *)start ||
				  device->pieces[i].end != (char *)end))
		i++;
	if (i == device->nr)
		device->wrong++;
	else
		device->pieces[i] = device->pieces[--device->nr];
	device->wrong += !device->any_order && device->last_taken &&
			 (char *)end != device->last_taken;
	device->last_taken = start;
	pthread_mutex_unlock(&device->lock);
	return device->answer_take ? device->answer_take(device, start, end)
				   : device->take_error;
}

static inline struct ktask_register_ctl device_ctl(struct device *device,
						   unsigned flags)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	ctl.register_func = device_register;
	ctl.unregister_func = device_unregister;
	ctl.func_arg = device;
	ctl.flags = flags;
	return ctl;
}

/* Bytes that are registered. */
static inline size_t device_bytes(const struct device *device)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < device->nr; i++)
		bytes += (size_t)(device->pieces[i].end -
				  device->pieces[i].start);
	return bytes;
}

#endif /* TEST_DEVICE_H */
