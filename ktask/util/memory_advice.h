/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * <sys/mman.h>, with what the kernel knows and headers of older C libraries lack.
 */
#ifndef KTASK_UTIL_MEMORY_ADVICE_H
#define KTASK_UTIL_MEMORY_ADVICE_H

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#endif /* KTASK_UTIL_MEMORY_ADVICE_H */
