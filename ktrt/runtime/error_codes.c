/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Error codes that stand for objects.  If a task of C++ throws an object, the thread that
 * waits for the task gets a number that stands for the object.  A code has one owner at a
 * time: a task, a group, or the caller to which it was returned.  Its object has the same
 * owner.  If only the first of several codes is kept, ktrt_code_drop() destroys the objects
 * of the others.
 *
 * Owns the table of objects.  The table outlives the runtime, because
 * ktrt_stop() too returns codes.  One lock protects all of it: codes exist only
 * where something failed.
 *
 * Locking: Q, codes_lock, an innermost one (rt.h).  It is held across a fork, so that
 * the child finds a table that nobody was changing.  Objects are destroyed without it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"

/* A code holds the index of its entry and how often that was used before. */
#define INDEX_BITS 20
#define INDEX_MAX ((1u << INDEX_BITS) - 1)
#define USES_MASK 0xffu

_Static_assert(KTRT_CODE_FIRST + ((USES_MASK << INDEX_BITS) | INDEX_MAX) <=
		       INT_MAX,
	       "every entry has a code");

/* Q */
struct code_entry {
	void *object;
	void (*drop)(void *object); /* NULL: the entry is free */
	const char *kind;
	unsigned uses;
	unsigned next_free; /* its index plus 1; 0: none */
};

static pthread_mutex_t codes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct code_entry *code_entries; /* Q */
static unsigned nr_entries, entry_capacity; /* Q */
static unsigned first_free; /* its index plus 1; 0: none; Q */

void codes_before_fork(void)
{
	mutex_take(&codes_lock, RANK_INNER);
}

void codes_after_fork(void)
{
	mutex_drop(&codes_lock, RANK_INNER);
}

/* Return: false without memory. */
static bool grow_entries(void)
{
	unsigned wanted = entry_capacity ? entry_capacity * 2 : 16;
	struct code_entry *more;

	rt_assert_locked(RANK_INNER);
	if (entry_capacity > INDEX_MAX)
		return false;
	more = realloc(code_entries, wanted * sizeof(*code_entries));
	if (!more)
		return false;
	code_entries = more;
	entry_capacity = wanted;
	return true;
}

/* Return: NULL without memory. */
static struct code_entry *take_entry(void)
{
	struct code_entry *entry;

	rt_assert_locked(RANK_INNER);
	if (first_free) {
		entry = &code_entries[first_free - 1];
		first_free = entry->next_free;
		return entry;
	}
	if (nr_entries == entry_capacity && !grow_entries())
		return NULL;
	entry = &code_entries[nr_entries++];
	memset(entry, 0, sizeof(*entry));
	return entry;
}

static int code_of(const struct code_entry *entry)
{
	unsigned index = (unsigned)(entry - code_entries);

	return (int)(KTRT_CODE_FIRST +
		     (((entry->uses & USES_MASK) << INDEX_BITS) | index));
}

/* Return: the entry of a code, NULL if it has no object. */
static struct code_entry *find_entry(int code)
{
	struct code_entry *entry;
	unsigned index;

	rt_assert_locked(RANK_INNER);
	if (code < (int)KTRT_CODE_FIRST)
		return NULL;
	index = ((unsigned)code - KTRT_CODE_FIRST) & INDEX_MAX;
	entry = index < nr_entries ? &code_entries[index] : NULL;
	return entry && entry->drop && code_of(entry) == code ? entry : NULL;
}

static void release_entry(struct code_entry *entry)
{
	rt_assert_locked(RANK_INNER);
	entry->drop = NULL;
	entry->uses++;
	entry->next_free = first_free;
	first_free = (unsigned)(entry - code_entries) + 1;
}

int ktrt_code_new(const char *kind, void *object, void (*drop)(void *object))
{
	struct code_entry *entry;
	int code = -ENOMEM;

	if (!kind || !drop)
		return -EINVAL;
	mutex_take(&codes_lock, RANK_INNER);
	entry = take_entry();
	if (entry) {
		entry->object = object;
		entry->drop = drop;
		entry->kind = kind;
		code = code_of(entry);
	}
	mutex_drop(&codes_lock, RANK_INNER);
	return code;
}

void *ktrt_code_take(int code, const char *kind)
{
	struct code_entry *entry;
	void *object = NULL;

	mutex_take(&codes_lock, RANK_INNER);
	entry = find_entry(code);
	if (entry && kind && !strcmp(entry->kind, kind)) {
		object = entry->object;
		release_entry(entry);
	}
	mutex_drop(&codes_lock, RANK_INNER);
	return object;
}

void ktrt_code_drop(int code)
{
	void (*drop)(void *object) = NULL;
	struct code_entry *entry;
	void *object = NULL;

	if (code < (int)KTRT_CODE_FIRST)
		return;
	mutex_take(&codes_lock, RANK_INNER);
	entry = find_entry(code);
	if (entry) {
		drop = entry->drop;
		object = entry->object;
		release_entry(entry);
	}
	mutex_drop(&codes_lock, RANK_INNER);
	if (drop)
		drop(object);
}
