/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See subuid_owner.h.
 *
 * Behaves badly: ranges that only a directory service knows (subid in nsswitch.conf) are
 * not found.  Each of their ids then counts as a user of its own.
 */
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subuid_owner.h"

#define RANGES "/etc/subuid"
#define PASSWD "/etc/passwd"
#define LINE_MAX_BYTES 256

/* getpwnam() is not used, because it may wait for a server, and all clients with it. */
static bool find_name(const char *name, uid_t *uid)
{
	FILE *file = fopen(PASSWD, "re");
	const struct passwd *user = NULL;
	bool found = false;

	while (file && !found && (user = fgetpwent(file)))
		found = !strcmp(user->pw_name, name);
	if (found)
		*uid = user->pw_uid;
	if (file)
		fclose(file);
	return found;
}

/* @name is a login name or a number.  For a user that only a server knows, the first
 * subordinate id stands for the user. */
static uid_t find_user(const char *name, uid_t first)
{
	char *end;
	uid_t uid = (uid_t)strtoul(name, &end, 10);

	if (end > name && !*end)
		return uid;
	return find_name(name, &uid) ? uid : first;
}

/* NAME:FIRST:COUNT */
static bool parse_subid_line(const char *line, uid_t uid, uid_t *owner)
{
	unsigned long first, count;
	char name[65];

	if (sscanf(line, "%64[^:]:%lu:%lu", name, &first, &count) != 3 ||
	    uid < first || uid - first >= count)
		return false;
	*owner = find_user(name, (uid_t)first);
	return true;
}

uid_t owner_of(uid_t uid)
{
	FILE *file = fopen(RANGES, "re");
	char line[LINE_MAX_BYTES];
	uid_t owner, found = uid;

	while (file && found == uid && fgets(line, sizeof(line), file))
		if (parse_subid_line(line, uid, &owner) && owner)
			found = owner;
	if (file)
		fclose(file);
	return found;
}
