/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The user to whom a user id belongs.  A user may be given thousands of subordinate
 * ids (subuid(5)).  Together they may have what the user may have.
 */
#ifndef UMT_UMTD_SUBUID_OWNER_H
#define UMT_UMTD_SUBUID_OWNER_H

#include <sys/types.h>

/*
 * owner_of - the user to whom /etc/subuid gives @uid
 *
 * Return: @uid itself if nobody was given it, or if root was: root gives each of its
 * containers a range of its own.
 */
uid_t owner_of(uid_t uid);

#endif /* UMT_UMTD_SUBUID_OWNER_H */
