/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device behind an IOMMU (QEMU's edu and intel-iommu): loads what it takes, and
 * runs the test that is a program (tests/vm/vfio).
 */
#include <stdio.h>
#include <string.h>

#include "guest.h"

static void a_device_maps_what_ktask_has_populated_or_pinned(void)
{
	char nr[12];
	int status;

	snprintf(nr, sizeof(nr), "%u", scale_rounds(5));
	status = run_program("/vfio", nr);
	say_verdict(status == 0, __func__, status ? "status %d" : NULL, status);
}

void test_vfio(void)
{
	static const char *const modules[] = {
		"/irqbypass.ko",     "/vfio.ko",     "/vfio_iommu_type1.ko",
		"/vfio-pci-core.ko", "/vfio-pci.ko", "/ktask.ko",
	};

	for (unsigned i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		int error = load_module(modules[i], "");

		if (error) {
			say_verdict(false, __func__, "%s: %s", modules[i],
				    strerror(error));
			return;
		}
	}
	a_device_maps_what_ktask_has_populated_or_pinned();
}
