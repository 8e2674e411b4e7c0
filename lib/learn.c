/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What this process knows of its operations.
 *
 * Read from the file once, by the first job that is not small; from then on
 * looked up without a lock or a system call: names are only ever added, and
 * the figures of a name are one word.  Two threads that add one name at once
 * make two entries, of which the first counts.
 *
 * Only what was measured on request is known.  What a job finds out by itself
 * is not kept, not even for the next job of its process: it ran beside other
 * work, and most jobs are too short to find out that the work has gone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "lib/file.h"
#include "lib/learn.h"
#include "util/struct_size.h"

/* By `ktask tune`, for another process that writes. */
#define WAIT_MS 2000

/* An entry's figures as one word; 0: none. */
#define WORD_MAX 12
#define WORD_CHUNK 24

struct known {
	char name[LEARN_NAME];
	uint64_t word;
	uint64_t single_rate;
	uint32_t ready; /* the name is written */
};

static struct known known[LEARN_MAX];
static uint32_t nr_known; /* entries that were begun; may exceed LEARN_MAX */
static uint32_t loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char this_machine[LEARN_MACHINE];

static uint64_t word_of(const struct learn_entry *entry)
{
	return (uint64_t)entry->threads |
	       (uint64_t)entry->max_threads << WORD_MAX |
	       (uint64_t)entry->chunk_us << WORD_CHUNK;
}

static void entry_of(const struct known *from, struct learn_entry *entry)
{
	uint64_t word = kt_load(&from->word);

	memcpy(entry->name, from->name, LEARN_NAME);
	entry->threads = word & LEARN_THREADS_MAX;
	entry->max_threads = word >> WORD_MAX & LEARN_THREADS_MAX;
	entry->chunk_us = (unsigned)(word >> WORD_CHUNK);
	entry->single_rate = kt_load(&from->single_rate);
}

static struct known *find(const char *name)
{
	uint32_t nr = KT_MIN(kt_load(&nr_known), LEARN_MAX);

	for (uint32_t i = 0; i < nr; i++)
		if (kt_load_acquire(&known[i].ready) &&
		    !strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

/* Return: NULL when the table is full. */
static struct known *find_or_add(const char *name)
{
	struct known *entry = find(name);
	uint32_t index = kt_load(&nr_known);

	if (entry)
		return entry;
	do
		if (index >= LEARN_MAX)
			return NULL;
	while (!kt_cas(&nr_known, &index, index + 1));
	entry = &known[index];
	strcpy(entry->name, name);
	kt_store_release(&entry->ready, 1u);
	return entry;
}

static void keep_entry(const struct learn_entry *entry)
{
	struct known *to = find_or_add(entry->name);

	if (to) {
		kt_store(&to->single_rate, entry->single_rate);
		kt_store(&to->word, word_of(entry));
	}
}

static void load_from(bool roots, struct learn_table *table)
{
	learn_read(roots, this_machine, table);
	for (unsigned i = 0; i < table->nr; i++)
		keep_entry(&table->entries[i]);
}

/* What the user measured replaces what root did. */
static void load_files(void)
{
	struct learn_table *table = malloc(sizeof(*table));

	learn_machine(this_machine);
	if (table) {
		load_from(true, table);
		load_from(false, table);
	}
	free(table);
	kt_store_release(&loaded, 1u);
}

bool learn_find(const char *name, bool may_read, struct learn_entry *entry)
{
	const struct known *found;

	if (!learn_name_ok(name))
		return false;
	if (!kt_load_acquire(&loaded)) {
		if (!may_read)
			return false;
		pthread_once(&once, load_files);
	}
	found = find(name);
	if (!found)
		return false;
	entry_of(found, entry);
	return entry->threads;
}

/* ---- for people and `ktask tune` ---- */

int ktask_learnt_get(const char *name, struct ktask_learnt *learnt)
{
	struct ktask_learnt all = { 0 };
	struct learn_entry entry;
	int saved = errno;
	int cancel_state;
	bool found;
	int error;

	if (!learnt || !learn_name_ok(name))
		return -EINVAL;
	error = struct_size_check(learnt->struct_size, STRUCT_SIZE_ONLY);
	if (error)
		return error;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	found = learn_find(name, true, &entry);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	if (!found)
		return -ENOENT;
	memcpy(all.name, entry.name, sizeof(all.name));
	all.threads = entry.threads;
	all.max_threads = entry.max_threads;
	all.chunk_us = entry.chunk_us;
	all.single_rate = entry.single_rate;
	struct_size_write(learnt, &all, sizeof(all));
	return 0;
}

static int take_learnt(const struct ktask_learnt *learnt,
		       struct learn_entry *entry)
{
	struct ktask_learnt own;
	int error;

	if (!learnt)
		return -EINVAL;
	error = struct_size_read(
		&own, sizeof(own), learnt,
		STRUCT_SIZE_TO(struct ktask_learnt, max_threads));
	if (error)
		return error;
	*entry = (struct learn_entry){ .threads = own.threads,
				       .max_threads = own.max_threads,
				       .chunk_us = own.chunk_us,
				       .single_rate = own.single_rate };
	memcpy(entry->name, own.name, sizeof(entry->name));
	return learn_entry_ok(entry) ? 0 : -EINVAL;
}

int ktask_learnt_put(const struct ktask_learnt *learnt, char *path, size_t size)
{
	struct learn_entry entry;
	int saved = errno;
	int cancel_state;
	int error;

	if (path && size)
		path[0] = '\0';
	error = take_learnt(learnt, &entry);
	if (error)
		return error;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, load_files);
	keep_entry(&entry);
	error = learn_write(&entry, this_machine, WAIT_MS, path, size);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}

int ktask_learnt_verify(char *path, size_t size)
{
	int saved = errno;
	int cancel_state;
	int error;

	if (path && size)
		path[0] = '\0';
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, load_files);
	error = learn_verify(this_machine, path, size);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}
