/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See held_maps.h.  The kernel tells how many hold a map, but not who.  Umtd closes the
 * descriptors that it has sent, so each holder besides the program's own tables is a
 * client.  Counting holders reads all maps of the kernel.  So it is done only if a user
 * would hold too much, supposing that the user still holds all that it was ever handed.
 *
 * Behaves badly: a umtd that is started again knows nothing of what the one before handed
 * out.  It could find the maps by their names, but not their users.  To keep the users in
 * a file, it would have to trust that file after a crash.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/bpf_program.h"
#include "ebpf/shared.h"
#include "held_maps.h"

#define CAPACITY_MIN 256
#define CAPACITY_MAX (1u << 22)
/* Pages of a ring besides its data: two for positions, and the kernel's own. */
#define RING_MORE_PAGES 4

struct held {
	uint32_t map;
	uid_t uid;
	size_t bytes;
	bool in_program; /* the program holds it too, under @kind and @key */
	enum held_kind kind;
	unsigned int key;
};

static struct held *held_maps;
static size_t nr_all, capacity_all;

static size_t round_to_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

size_t held_table_bytes(int nr_cores)
{
	return round_to_pages((size_t)(nr_cores + 1) * sizeof(struct umt_core));
}

size_t held_ring_bytes(size_t bytes)
{
	return round_to_pages(bytes) + RING_MORE_PAGES * round_to_pages(1);
}

void held_maps_reset(void)
{
	size_t i;

	for (i = 0; i < nr_all; i++)
		held_maps[i].in_program = false;
}

void held_maps_release(enum held_kind kind, unsigned int key)
{
	size_t i;

	for (i = 0; i < nr_all; i++)
		if (held_maps[i].in_program && held_maps[i].kind == kind &&
		    held_maps[i].key == key)
			held_maps[i].in_program = false;
}

static bool reserve_capacity(void)
{
	size_t capacity = capacity_all ? 2 * capacity_all : CAPACITY_MIN;
	struct held *more;

	if (nr_all < capacity_all)
		return true;
	more = realloc(held_maps, capacity * sizeof(*held_maps));
	if (!more)
		return false;
	held_maps = more;
	capacity_all = capacity;
	return true;
}

bool held_maps_add(int fd, uid_t uid, size_t bytes, enum held_kind kind,
		   unsigned int key)
{
	held_maps_release(kind, key);
	if (!uid)
		return true;
	if (!reserve_capacity())
		return false;
	held_maps[nr_all++] = (struct held){
		program_map_number(fd), uid, bytes, true, kind, key
	};
	return true;
}

/* ---- what is still there ---- */

static int by_id(const void *a, const void *b)
{
	const struct umt_map *one = a, *two = b;

	return one->id < two->id ? -1 : one->id > two->id;
}

/* All maps of the kernel; NULL if they cannot be listed. */
static struct umt_map *list_maps(size_t *nr)
{
	size_t capacity = CAPACITY_MIN;
	struct umt_map *maps;
	ssize_t came;

	for (; capacity <= CAPACITY_MAX; capacity *= 2) {
		maps = malloc(capacity * sizeof(*maps));
		came = maps ? program_list_maps(maps, capacity) : -1;
		if (came >= 0 && (size_t)came < capacity) {
			*nr = (size_t)came;
			return maps;
		}
		free(maps);
		if (came < 0)
			return NULL;
	}
	return NULL;
}

static int64_t holders_of(uint32_t map, const struct umt_map *maps, size_t nr)
{
	const struct umt_map key = { .id = map };
	const struct umt_map *found =
		bsearch(&key, maps, nr, sizeof(*maps), by_id);

	return found ? found->holders : 0;
}

/* Doorbells are counted apart, because there may be one for each core. */
static bool is_of(const struct held *held, uid_t uid, enum held_kind kind)
{
	return held->uid == uid &&
	       (held->kind == HELD_DOORBELL) == (kind == HELD_DOORBELL);
}

/* Forgets maps that are gone.  Return: the bytes that @uid holds. */
static size_t count_held(uid_t uid, enum held_kind kind,
			 const struct umt_map *maps, size_t nr)
{
	size_t bytes = 0, kept = 0, i;

	for (i = 0; i < nr_all; i++) {
		struct held held = held_maps[i];
		int64_t holders = holders_of(held.map, maps, nr);

		if (!holders)
			continue;
		held_maps[kept++] = held;
		if (is_of(&held, uid, kind) && holders > held.in_program)
			bytes += held.bytes;
	}
	nr_all = kept;
	return bytes;
}

static size_t handed_to(uid_t uid, enum held_kind kind)
{
	size_t bytes = 0, i;

	for (i = 0; i < nr_all; i++)
		if (is_of(&held_maps[i], uid, kind))
			bytes += held_maps[i].bytes;
	return bytes;
}

bool held_maps_allow(uid_t uid, enum held_kind kind, size_t bytes, size_t most)
{
	struct umt_map *maps;
	size_t nr, held;

	if (handed_to(uid, kind) + bytes <= most)
		return true;
	maps = list_maps(&nr);
	if (!maps)
		return false;
	held = count_held(uid, kind, maps, nr);
	free(maps);
	return held + bytes <= most;
}
