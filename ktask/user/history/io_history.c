/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See io_history.h.
 *
 * Locking: one try-lock, history_locked.  A thread that does not get it finds no
 * entry, or adds none; no thread waits.  In the child of a fork the lock may stay
 * taken for ever.  Then each job of the child finds its I/O concurrency anew.
 *
 *	L: history_locked
 */
#include <string.h>

#include "user/history/io_history.h"
#include "user/history/autotune.h"
#include "util/large_static.h"

/* Kinds of jobs; a new one replaces the oldest. */
#define NR_ENTRIES 16

struct entry {
	char name[AUTOTUNE_NAME];
	uint64_t min_chunk;
	struct kt_io io;
};

static struct entry io_history[NR_ENTRIES] LARGE_STATIC; /* L */
static unsigned nr_entries; /* that were ever added; L */
static uint32_t history_locked; /* the lock */

static bool lock_history(void)
{
	uint32_t no = 0;

	return kt_cas(&history_locked, &no, 1);
}

static void unlock_history(void)
{
	kt_store_release(&history_locked, 0);
}

static struct entry *find_entry(const char *name, uint64_t min_chunk,
				unsigned extra)
{
	kt_assert(kt_load(&history_locked));
	for (unsigned i = 0; i < KT_MIN(nr_entries, NR_ENTRIES); i++) {
		struct entry *entry = &io_history[i];

		if (!strcmp(entry->name, name) &&
		    entry->min_chunk == min_chunk &&
		    entry->io.most - entry->io.least == extra)
			return entry;
	}
	return NULL;
}

static bool copy_entry(const char *name, uint64_t min_chunk, unsigned extra,
		       struct kt_io *io)
{
	const struct entry *entry;

	if (!autotune_name_ok(name) || !lock_history())
		return false;
	entry = find_entry(name, min_chunk, extra);
	if (entry)
		*io = entry->io;
	unlock_history();
	return entry;
}

void io_history_begin(struct kt_io *io, const char *name, uint64_t min_chunk,
		      unsigned least, unsigned most)
{
	if (copy_entry(name, min_chunk, most - least, io))
		kt_io_resume(io, least, most);
	else
		kt_io_begin(io, least, most, KT_MAX(KT_IO_START, 2 * least));
}

void io_history_end(const struct kt_io *io, const char *name,
		    uint64_t min_chunk)
{
	struct entry *entry;

	if (!io->windows || !autotune_name_ok(name) || !lock_history())
		return;
	entry = find_entry(name, min_chunk, io->most - io->least);
	if (!entry) {
		entry = &io_history[nr_entries++ % NR_ENTRIES];
		memset(entry->name, 0, sizeof(entry->name));
		strcpy(entry->name, name);
		entry->min_chunk = min_chunk;
	}
	entry->io = *io;
	unlock_history();
}
