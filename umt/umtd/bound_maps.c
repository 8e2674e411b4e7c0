/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See bound_maps.h.
 *
 * Behaves badly: maps that a user bound before its next request stay bound.  They cannot
 * be more than the user had descriptors of.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lib/bpf_program.h"
#include "bound_maps.h"

/* The newest maps; as many as can be handed out in half a day. */
#define HANDED_MAX (1u << 20)
#define REFUSED_MAX 64

static struct handed {
	uint32_t map;
	uid_t uid;
} handed_maps[HANDED_MAX];

static uint64_t nr_handed;

static uid_t refused_uids[REFUSED_MAX];
static unsigned int nr_refused;

/* Maps of the program that were checked. */
static unsigned int nr_seen;

void bound_maps_reset(void)
{
	int nr = program_maps(NULL, 0);

	nr_seen = nr > 0 ? (unsigned int)nr : 0;
	nr_handed = 0;
	nr_refused = 0;
}

void bound_maps_add(int fd, uid_t uid)
{
	handed_maps[nr_handed++ % HANDED_MAX] =
		(struct handed){ program_map_number(fd), uid };
}

static bool is_refused(uid_t uid)
{
	unsigned int i;

	for (i = 0; i < nr_refused && i < REFUSED_MAX; i++)
		if (refused_uids[i] == uid)
			return true;
	return false;
}

/* Only once, however many maps it has bound, so that it does not push out others. */
static void refuse_uid(uid_t uid)
{
	if (!is_refused(uid))
		refused_uids[nr_refused++ % REFUSED_MAX] = uid;
}

static void check_map(uint32_t map)
{
	uint64_t nr = nr_handed < HANDED_MAX ? nr_handed : HANDED_MAX;
	uint64_t i;

	for (i = 0; i < nr; i++)
		if (handed_maps[i].map == map)
			refuse_uid(handed_maps[i].uid);
}

/* The kernel keeps the program's maps in order: the newest are the last. */
static void refresh_maps(void)
{
	int nr = program_maps(NULL, 0);
	uint32_t *maps;

	if (nr <= 0 || (unsigned int)nr <= nr_seen)
		return;
	maps = calloc((size_t)nr, sizeof(*maps));
	if (maps && program_maps(maps, (unsigned int)nr) >= nr)
		for (; nr_seen < (unsigned int)nr; nr_seen++)
			check_map(maps[nr_seen]);
	free(maps);
}

bool bound_maps_by(uid_t uid)
{
	if (!program_loaded())
		return false;
	refresh_maps();
	return is_refused(uid);
}
