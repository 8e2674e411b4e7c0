/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * VFIO's type1 driver of a kernel as it is, and the one that uses ktask.ko: the same
 * facts of both, one after the other in one guest.  The kernel's own comes last, since
 * it must be back when the other one is gone.
 *
 * A process of its own tells the facts of each, so that nothing keeps the driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "facts.h"

#define DRIVER "vfio_iommu_type1"

static bool load_module(const char *name)
{
	char path[100];
	int fd, error;

	snprintf(path, sizeof(path), "/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	error = fd < 0 || syscall(SYS_finit_module, fd, "", 0) ? errno : 0;
	if (error)
		note_line("loading %s: %s", name, strerror(error));
	close(fd);
	return !error;
}

static bool unload_module(const char *name)
{
	return !syscall(SYS_delete_module, name, O_NONBLOCK);
}

static void tell_or_measure(void *arg)
{
	long rounds = read_option("bench", 0);

	(void)arg;
	if (rounds)
		measure_vfio((int)(rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX));
	else
		tell_vfio_facts();
}

/* tell_facts_of - a driver that is loaded already, and unload it */
static void tell_facts_of(const char *set, bool patched)
{
	char version[40];

	begin_set(set);
	read_text("/sys/module/" DRIVER "/version", version, sizeof(version));
	note_line("driver %.*s", (int)strcspn(version, "\n"), version);
	check_that(version[0] && patched == !!strstr(version, "+ktask"),
		   "the driver is the %s one", set);
	check_that(run_child(tell_or_measure, NULL) == 0, "its facts are told");
	check_that(unload_module(DRIVER), "the driver can be unloaded");
}

void tell_driver_facts(void)
{
	bool loaded = load_module("irqbypass") && load_module("vfio") &&
		      load_module("vfio-pci-core") && load_module("vfio-pci");

	check_that(loaded, "the kernel's modules for VFIO are loaded");
	loaded = loaded && load_module("ktask") && load_module("patched");
	check_that(loaded, "the driver that uses ktask.ko is loaded");
	if (loaded) {
		check_that(!unload_module("ktask"),
			   "ktask.ko stays while it is used");
		tell_facts_of("patched", true);
		note_line("helpers that worked in jobs: %ld", helpers_worked());
		check_that(unload_module("ktask"), "ktask.ko can be unloaded");
	}
	loaded = load_module("stock");
	check_that(loaded, "the kernel's own driver is loaded");
	if (loaded)
		tell_facts_of("stock", false);
}
