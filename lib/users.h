/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Users: what the jobs of all other users of the machine want, by their tables.
 */
#ifndef KTASK_LIB_USERS_H
#define KTASK_LIB_USERS_H

#include <stdint.h>

#define USERS_MAX 63 /* that count */

/* users_look - look again if that is due; @now_ns 0: not */
void users_look(uint64_t now_ns);

/*
 * users_want - helpers that each of them wants, as last found
 * @wants: room for USERS_MAX
 *
 * Return: how many there are.
 */
uint32_t users_want(uint32_t *wants);

#endif /* KTASK_LIB_USERS_H */
