/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Users: the helpers that jobs of all other users want, from their registries.
 */
#ifndef KTASK_USER_USERS_H
#define KTASK_USER_USERS_H

#include <stdint.h>

#define USERS_MAX 63 /* that count */

/* users_refresh - read the registries again if that is due; @now_ns 0: never */
void users_refresh(uint64_t now_ns);

/*
 * users_want - helpers that each user wants, the others' as last found
 * @wants: filled in the order of user ids, up to USERS_MAX + 1
 * @own: what the jobs of this user want
 * @self: set to this user's index
 *
 * Return: how many users there are, this one included.
 */
uint32_t users_want(uint32_t *wants, uint32_t own, uint32_t *self);

#endif /* KTASK_USER_USERS_H */
