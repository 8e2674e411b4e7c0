/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Maps that clients have bound to the program.
 *
 * Whoever has a descriptor of a program and one of a map may bind them
 * (BPF_PROG_BIND_MAP), and the map is then kept for as long as the program,
 * whoever has closed it.  The kernel cannot be told to refuse that; so it is
 * looked for at each question, and who did it is served no more.
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
