/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The autotune cache in this process.
 *
 * The first job that is not small reads it from the file, once.  It contains only what
 * `ktask tune` measured.  Jobs keep nothing that they find out, not even for the next job
 * of their process: they ran beside other work, and most jobs are too short to find out
 * that the other work has ended.
 *
 * Locking: readers take no lock and make no system call.  Entries are only ever added,
 * and the counts of an entry are one word.  Two threads that add one name at the same
 * time make two entries, of which the first counts.
 *	A: written by any thread, read by any: kt_load() and kt_store()
 *	R: written before ready is set, constant from then on
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "user/history/autotune.h"
#include "util/large_static.h"
#include "util/scoped.h"
#include "common/struct_size.h"

/* How long `ktask tune` waits for another process that writes. */
#define WAIT_MS 2000

/* The counts of an entry as one word; 0: none. */
#define WORD_MAX 12
#define WORD_CHUNK 24

struct cached_entry {
	char name[AUTOTUNE_NAME]; /* R */
	uint64_t word; /* A */
	uint64_t single_rate; /* A */
	uint32_t ready; /* the name is written; A */
};

static struct cached_entry cached_entries[AUTOTUNE_MAX] LARGE_STATIC;
static uint32_t
	nr_cached; /* entries that were begun, AUTOTUNE_MAX at most; A */
static uint32_t files_loaded;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char this_machine[AUTOTUNE_MACHINE];

static uint64_t word_of(const struct autotune_entry *entry)
{
	return (uint64_t)entry->threads |
	       (uint64_t)entry->max_threads << WORD_MAX |
	       (uint64_t)entry->chunk_us << WORD_CHUNK;
}

static void entry_of(const struct cached_entry *from,
		     struct autotune_entry *entry)
{
	uint64_t word = kt_load(&from->word);

	memcpy(entry->name, from->name, AUTOTUNE_NAME);
	entry->threads = word & AUTOTUNE_THREADS_MAX;
	entry->max_threads = word >> WORD_MAX & AUTOTUNE_THREADS_MAX;
	entry->chunk_us = (unsigned)(word >> WORD_CHUNK);
	entry->single_rate = kt_load(&from->single_rate);
}

static struct cached_entry *find_cached(const char *name)
{
	uint32_t nr = KT_MIN(kt_load(&nr_cached), AUTOTUNE_MAX);

	for (uint32_t i = 0; i < nr; i++)
		if (kt_load_acquire(&cached_entries[i].ready) &&
		    !strcmp(cached_entries[i].name, name))
			return &cached_entries[i];
	return NULL;
}

/* Return: NULL if the cache is full. */
static struct cached_entry *find_or_add(const char *name)
{
	struct cached_entry *entry = find_cached(name);
	uint32_t index = kt_load(&nr_cached);

	if (entry)
		return entry;
	do
		if (index >= AUTOTUNE_MAX)
			return NULL;
	while (!kt_cas(&nr_cached, &index, index + 1));
	entry = &cached_entries[index];
	strcpy(entry->name, name);
	kt_store_release(&entry->ready, 1u);
	return entry;
}

static void keep_entry(const struct autotune_entry *entry)
{
	struct cached_entry *to = find_or_add(entry->name);

	if (to) {
		kt_store(&to->single_rate, entry->single_rate);
		kt_store(&to->word, word_of(entry));
	}
}

static void read_machine(void)
{
	autotune_machine(this_machine);
}

static const char *find_machine(void)
{
	static pthread_once_t read_once = PTHREAD_ONCE_INIT;

	pthread_once(&read_once, read_machine);
	return this_machine;
}

/* The directory comes first: to open /proc/cpuinfo, which tells the machine, some older
 * kernels sleep for 10 ms on x86. */
static void load_from(bool roots, struct autotune_cache *cache)
{
	if (!autotune_has_directory(roots))
		return;
	autotune_read(roots, find_machine(), cache);
	for (unsigned i = 0; i < cache->nr; i++)
		keep_entry(&cache->entries[i]);
}

/* What the user measured replaces what root measured. */
static void load_files(void)
{
	struct autotune_cache *cache = malloc(sizeof(*cache));

	if (cache) {
		load_from(true, cache);
		load_from(false, cache);
	}
	free(cache);
	kt_store_release(&files_loaded, 1u);
}

bool autotune_find(const char *name, bool may_read,
		   struct autotune_entry *entry)
{
	const struct cached_entry *found;

	if (!autotune_name_ok(name))
		return false;
	if (!kt_load_acquire(&files_loaded)) {
		if (!may_read)
			return false;
		pthread_once(&load_once, load_files);
	}
	found = find_cached(name);
	if (!found)
		return false;
	entry_of(found, entry);
	return entry->threads;
}

/* ---- for people and `ktask tune` ---- */

int ktask_autotune_get(const char *name, struct ktask_autotune *tuned)
{
	struct ktask_autotune all = { 0 };
	struct autotune_entry entry;
	int saved = errno;
	int cancel_state;
	bool found;
	int error;

	if (!tuned || !autotune_name_ok(name))
		return -EINVAL;
	error = struct_size_check(tuned->struct_size, STRUCT_SIZE_ONLY);
	if (error)
		return error;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	found = autotune_find(name, true, &entry);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	if (!found)
		return -ENOENT;
	memcpy(all.name, entry.name, sizeof(all.name));
	all.threads = entry.threads;
	all.max_threads = entry.max_threads;
	all.chunk_us = entry.chunk_us;
	all.single_rate = entry.single_rate;
	struct_size_write(tuned, &all, sizeof(all));
	return 0;
}

static int take_tuned(const struct ktask_autotune *tuned,
		      struct autotune_entry *entry)
{
	struct ktask_autotune own;
	int error;

	if (!tuned)
		return -EINVAL;
	error = struct_size_read(
		&own, sizeof(own), tuned,
		STRUCT_SIZE_TO(struct ktask_autotune, max_threads));
	if (error)
		return error;
	*entry = (struct autotune_entry){ .threads = own.threads,
					  .max_threads = own.max_threads,
					  .chunk_us = own.chunk_us,
					  .single_rate = own.single_rate };
	memcpy(entry->name, own.name, sizeof(entry->name));
	return autotune_entry_ok(entry) ? 0 : -EINVAL;
}

int ktask_autotune_put(const struct ktask_autotune *tuned, char *path,
		       size_t size)
{
	struct autotune_entry entry;
	keep_errno();
	int error;

	if (path && size)
		path[0] = '\0';
	error = take_tuned(tuned, &entry);
	if (error)
		return error;
	block_cancellation();
	pthread_once(&load_once, load_files);
	keep_entry(&entry);
	return autotune_write(&entry, find_machine(), WAIT_MS, path, size);
}

int ktask_autotune_verify(char *path, size_t size)
{
	keep_errno();

	if (path && size)
		path[0] = '\0';
	block_cancellation();
	pthread_once(&load_once, load_files);
	return autotune_verify(find_machine(), path, size);
}
