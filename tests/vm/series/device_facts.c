/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Struct pages of a device's memory: "memmap=12G!4G" on the command line makes persistent
 * memory of RAM, whose driver is taken off and put on again.
 *
 * Not here: whether each struct page is right.  The kernel would complain of a wrong one
 * when the driver is taken off, and each page is freed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"

#define DRIVER "/sys/bus/nd/drivers/nd_pmem"
#define NAMESPACE "namespace0.0"
#define DISK "/sys/block/pmem0/size"
#define SECTOR 512

static void take_off(void)
{
	write_text(DRIVER "/unbind", NAMESPACE);
}

static void put_on(void)
{
	write_text(DRIVER "/bind", NAMESPACE);
}

/* The driver is put on by another thread while the kernel boots. */
static bool await_device(void)
{
	double until = seconds_now() + 60;

	while (access(DISK, F_OK) && seconds_now() < until)
		usleep(10000);
	return !access(DISK, F_OK);
}

static int write_and_read(off_t at)
{
	static const char text[] = "what is kept";
	char back[sizeof(text)] = "";
	int fd = open("/dev/pmem0", O_RDWR | O_CLOEXEC);
	int right;

	right = pwrite(fd, text, sizeof(text), at) == sizeof(text) &&
		!fsync(fd) && pread(fd, back, sizeof(back), at) == sizeof(back);
	close(fd);
	return right && !strcmp(text, back);
}

void tell_device_facts(void)
{
	bool there = await_device();
	long sectors;

	check_that(there, "there is persistent memory");
	if (!there)
		return;
	sectors = number_in(DISK, NULL);
	tell_fact_number(sectors, "device: sectors");
	for (int i = 0; i < 3; i++) {
		take_off();
		tell_fact_number(access(DISK, F_OK), "device: taken off");
		put_on();
		tell_fact_number(access(DISK, F_OK), "device: put on");
		tell_fact_number(number_in(DISK, NULL), "device: sectors");
		for (int part = 0; part < 4; part++)
			tell_fact_number(
				write_and_read((off_t)sectors / 4 * part *
					       SECTOR),
				"device: quarter %d is written and read", part);
	}
	check_helped(take_off, put_on,
		     "helpers initialise struct pages of a device");
}

void measure_device(int rounds)
{
	struct times on = { .name = "device memory, driver put on" };
	struct times off = { .name = "device memory, driver taken off" };
	struct timing timing;

	if (!await_device())
		return;
	while (on.nr < rounds) {
		timing = begin_timing();
		take_off();
		end_timing(&off, &timing);
		timing = begin_timing();
		put_on();
		end_timing(&on, &timing);
	}
	tell_times(&on);
	tell_times(&off);
}
