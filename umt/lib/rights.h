/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Do this process's rights hold for the whole machine? */
#ifndef UMT_LIB_RIGHTS_H
#define UMT_LIB_RIGHTS_H

#include <stdbool.h>

/* rights_are_whole - does the process have its rights in the initial user namespace? */
bool rights_are_whole(void);

/* rights_of_root - is the process root in the initial user namespace, so that no limit
 * applies to it? */
bool rights_of_root(void);

#endif /* UMT_LIB_RIGHTS_H */
