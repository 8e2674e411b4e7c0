/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Codes that stand for objects: what a task of C++ throws is on its way to
 * whoever waits as a number.  A code is in one place at a time: a task's, a
 * group's, or whoever got it from a call; so is its object.  Where a code is not
 * kept, as another was first, ktrt_code_drop() lets go of the object.
 *
 * Owns the table of objects.  It outlives the runtime, as ktrt_stop() returns
 * codes too.  One lock: codes are for what fails.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"

/* A code is its place in the table and how often that was used before. */
#define INDEX_BITS 20
#define INDEX_MAX ((1u << INDEX_BITS) - 1)
#define USES_MASK 0xffu

_Static_assert(KTRT_CODE_FIRST + ((USES_MASK << INDEX_BITS) | INDEX_MAX) <=
		       INT_MAX,
	       "every place has a code");

struct place {
	void *object;
	void (*drop)(void *object); /* NULL: the place is free */
	const char *kind;
	unsigned uses;
	unsigned next_free; /* and 1; 0: none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;
static unsigned nr_places, capacity, first_free; /* and 1 */

void codes_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Under the lock; false without memory. */
static bool more_places(void)
{
	unsigned wanted = capacity ? capacity * 2 : 16;
	struct place *more;

	if (capacity > INDEX_MAX)
		return false;
	more = realloc(places, wanted * sizeof(*places));
	if (!more)
		return false;
	places = more;
	capacity = wanted;
	return true;
}

/* Under the lock; NULL without memory. */
static struct place *free_place(void)
{
	struct place *place;

	if (first_free) {
		place = &places[first_free - 1];
		first_free = place->next_free;
		return place;
	}
	if (nr_places == capacity && !more_places())
		return NULL;
	place = &places[nr_places++];
	memset(place, 0, sizeof(*place));
	return place;
}

static int code_of(const struct place *place)
{
	unsigned index = (unsigned)(place - places);

	return (int)(KTRT_CODE_FIRST +
		     (((place->uses & USES_MASK) << INDEX_BITS) | index));
}

/* Under the lock: where the object of a code is; NULL: it has none. */
static struct place *find_place(int code)
{
	struct place *place;
	unsigned index;

	if (code < (int)KTRT_CODE_FIRST)
		return NULL;
	index = ((unsigned)code - KTRT_CODE_FIRST) & INDEX_MAX;
	place = index < nr_places ? &places[index] : NULL;
	return place && place->drop && code_of(place) == code ? place : NULL;
}

static void leave_place(struct place *place)
{
	place->drop = NULL;
	place->uses++;
	place->next_free = first_free;
	first_free = (unsigned)(place - places) + 1;
}

int ktrt_code_new(const char *kind, void *object, void (*drop)(void *object))
{
	struct place *place;
	int code = -ENOMEM;

	if (!kind || !drop)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	place = free_place();
	if (place) {
		place->object = object;
		place->drop = drop;
		place->kind = kind;
		code = code_of(place);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

void *ktrt_code_take(int code, const char *kind)
{
	struct place *place;
	void *object = NULL;

	pthread_mutex_lock(&lock);
	place = find_place(code);
	if (place && !strcmp(place->kind, kind)) {
		object = place->object;
		leave_place(place);
	}
	pthread_mutex_unlock(&lock);
	return object;
}

void ktrt_code_drop(int code)
{
	void (*drop)(void *object) = NULL;
	struct place *place;
	void *object = NULL;

	if (code < (int)KTRT_CODE_FIRST)
		return;
	pthread_mutex_lock(&lock);
	place = find_place(code);
	if (place) {
		drop = place->drop;
		object = place->object;
		leave_place(place);
	}
	pthread_mutex_unlock(&lock);
	if (drop)
		drop(object);
}
