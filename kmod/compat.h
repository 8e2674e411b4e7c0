/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place that knows kernel versions.  Each entry names the version
 * that changed the thing; ktask is built for 6.1 and later.
 */
#ifndef KTASK_KMOD_COMPAT_H
#define KTASK_KMOD_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "ktask needs Linux 6.1 or later"
#endif

#endif /* KTASK_KMOD_COMPAT_H */
