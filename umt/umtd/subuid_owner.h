/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose a user id is: a user may be given thousands of subordinate ones
 * (subuid(5)), which are to have together what the user may have.
 */
#ifndef UMT_UMTD_SUBUID_OWNER_H
#define UMT_UMTD_SUBUID_OWNER_H

#include <sys/types.h>

/* owner_of - who was given @uid in /etc/subuid; @uid itself if nobody was, or
 * root, which gives each of its containers a range of its own */
uid_t owner_of(uid_t uid);

#endif /* UMT_UMTD_SUBUID_OWNER_H */
