/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Maps that clients have bound to the program.
 *
 * Whoever has descriptors of a program and a map may bind the map to the program
 * (BPF_PROG_BIND_MAP).  The map then exists as long as the program, even if all
 * have closed it.  The kernel cannot be told to refuse that.  So umtd checks at each
 * request, and no longer serves a user who did it.
 */
#ifndef UMT_UMTD_BOUND_MAPS_H
#define UMT_UMTD_BOUND_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

/* bound_maps_reset - the program was loaded: nobody has bound anything */
void bound_maps_reset(void);

/* bound_maps_add - a client of @uid is to be handed map @fd */
void bound_maps_add(int fd, uid_t uid);

/* bound_maps_by - has a client of @uid bound a map since the program was loaded? */
bool bound_maps_by(uid_t uid);

#endif /* UMT_UMTD_BOUND_MAPS_H */
