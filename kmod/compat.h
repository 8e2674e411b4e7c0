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

/* 6.5 (ca5e863233e8) took away the array of mappings that nobody asked for. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define compat_get_user_pages_remote(mm, addr, nr, flags, pages, locked) \
	get_user_pages_remote(mm, addr, nr, flags, pages, NULL, locked)
#else
#define compat_get_user_pages_remote get_user_pages_remote
#endif

/*
 * 6.4 (e297cd54b3f8) has threads that the kernel adds to a process.  With 6.9
 * (db5247d9bf5c) it says when they are killed, and since 6.15 (cb380909ae3b) an
 * error is a pointer; the versions between are not served.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0) && \
	IS_ENABLED(CONFIG_VHOST_TASK)
#define COMPAT_WORKERS 1
#else
#define COMPAT_WORKERS 0
#endif

#endif /* KTASK_KMOD_COMPAT_H */
