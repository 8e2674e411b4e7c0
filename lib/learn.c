/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What this process knows of its operations.
 *
 * Read from the file once, by the first job that is not small; from then on
 * looked up without a lock or a system call: names are only ever added, and
 * the figures of a name are one word.  Two threads that add one name at once
 * make two entries, of which the first counts.
 *
 * What jobs find themselves counts only when several agree: one that ran in a
 * bad moment must not hold back those after it, of which many are too short to
 * find out better.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "core/tune.h"
#include "lib/file.h"
#include "lib/learn.h"
#include "lib/pool.h"

/* Between two writes of one operation by one process. */
#define WRITE_NS 60000000000ull
/* By `ktask tune`, for another process that writes. */
#define WAIT_MS 2000
/* So far into /proc/thread-self/status the state of filters is looked for. */
#define STATUS_BYTES 4096

/* An entry's figures as one word; 0: none. */
#define WORD_SEEN 12
#define WORD_MEASURED 14
#define WORD_MAX 15
#define WORD_CHUNK 27

struct known {
	char name[LEARN_NAME];
	uint64_t word;
	uint64_t single_rate;
	uint64_t next_write_ns;
	uint32_t ready; /* the name stands */
};

static struct known known[LEARN_MAX];
static uint32_t nr_known; /* entries that were begun; may exceed LEARN_MAX */
static uint32_t loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char this_machine[LEARN_MACHINE];
static uint32_t first_generation;

static uint64_t word_of(const struct learn_entry *entry)
{
	return (uint64_t)entry->threads | (uint64_t)entry->seen << WORD_SEEN |
	       (uint64_t)entry->measured << WORD_MEASURED |
	       (uint64_t)entry->max_threads << WORD_MAX |
	       (uint64_t)entry->chunk_us << WORD_CHUNK;
}

static void entry_of(const struct known *from, struct learn_entry *entry)
{
	uint64_t word = kt_load(&from->word);

	memcpy(entry->name, from->name, LEARN_NAME);
	entry->threads = word & LEARN_THREADS_MAX;
	entry->seen = word >> WORD_SEEN & LEARN_SEEN_MAX;
	entry->measured = word >> WORD_MEASURED & 1;
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

static struct known *keep(const struct learn_entry *entry)
{
	struct known *to = find_or_add(entry->name);

	if (to) {
		kt_store(&to->single_rate, entry->single_rate);
		kt_store(&to->word, word_of(entry));
	}
	return to;
}

/* What the user's jobs found does not stand above what root measured. */
static void load_from(bool roots, struct learn_table *table)
{
	learn_read(roots, this_machine, table);
	for (unsigned i = 0; i < table->nr; i++) {
		const struct learn_entry *entry = &table->entries[i];
		struct learn_entry before = { .measured = false };
		struct known *there = find(entry->name);

		if (there)
			entry_of(there, &before);
		if (!before.measured || entry->measured)
			keep(entry);
	}
}

static void load(void)
{
	struct learn_table *table = malloc(sizeof(*table));

	first_generation = pool_generation();
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
		pthread_once(&once, load);
	}
	found = find(name);
	if (!found)
		return false;
	entry_of(found, entry);
	return entry->threads &&
	       (entry->measured || entry->seen >= LEARN_SEEN_ENOUGH);
}

/* ---- from jobs ---- */

static bool agree(unsigned a, unsigned b)
{
	return KT_MAX(a, b) - KT_MIN(a, b) <= KT_MAX(a, b) / 4;
}

/* Does a count that is the most there was say nothing about @threads? */
static bool silent_on(unsigned most, unsigned max_threads, unsigned threads)
{
	return most == max_threads && threads > most;
}

/* Return: false if there is nothing new. */
static bool learn_from(struct learn_entry *entry, unsigned threads,
		       unsigned max_threads)
{
	struct learn_entry before = *entry;

	if (entry->measured)
		return false;
	/* A small job may not have more, and does not contradict. */
	if (silent_on(threads, max_threads, entry->threads))
		return false;
	if (entry->threads && agree(entry->threads, threads)) {
		entry->seen = KT_MIN(entry->seen + 1, LEARN_SEEN_MAX);
		if (entry->seen < LEARN_SEEN_ENOUGH)
			entry->threads = threads;
	} else if (entry->seen > 1 &&
		   !silent_on(entry->threads, entry->max_threads, threads)) {
		entry->seen--;
	} else {
		entry->seen = 1;
		entry->threads = threads;
	}
	entry->max_threads = KT_MAX(max_threads, entry->threads);
	return word_of(&before) != word_of(entry);
}

/*
 * A filter of system calls may end the process for one that only writing needs,
 * and nobody expects of a job.  A forked child knows nothing better, and at the
 * exit nobody shall wait.
 */
static bool may_write(void)
{
	char path[FILE_PATH], *status;
	bool none;

	if (pool_generation() != first_generation || pool_closing())
		return false;
	status = malloc(STATUS_BYTES);
	if (!status)
		return false;
	snprintf(path, sizeof(path), "%s/proc/thread-self/status", file_root);
	none = file_text(path, status, STATUS_BYTES) > 0 &&
	       strstr(status, "\nSeccomp:\t0\n");
	free(status);
	return none;
}

static void learn(const struct learn_entry *found, uint64_t now_ns)
{
	struct known *to = find_or_add(found->name);
	struct learn_entry entry;
	uint64_t due_ns;

	if (!to)
		return;
	entry_of(to, &entry);
	if (!learn_from(&entry, found->threads, found->max_threads))
		return;
	if (found->single_rate)
		entry.single_rate = found->single_rate;
	kt_store(&to->single_rate, entry.single_rate);
	kt_store(&to->word, word_of(&entry));
	due_ns = kt_load(&to->next_write_ns);
	if (now_ns < due_ns ||
	    !kt_cas(&to->next_write_ns, &due_ns, now_ns + WRITE_NS))
		return;
	if (may_write())
		learn_write(&entry, this_machine, 0, NULL, 0);
}

void learn_job(const char *name, unsigned threads, unsigned max_threads,
	       uint64_t now_ns)
{
	struct learn_entry found = { .threads = threads,
				     .max_threads = max_threads };

	if (!learn_name_ok(name) || !kt_load_acquire(&loaded) ||
	    max_threads > LEARN_THREADS_MAX)
		return;
	/* What a job begins with anyway need not be known. */
	if (threads == KT_MIN(KT_TUNE_START, max_threads) && !find(name))
		return;
	strcpy(found.name, name);
	learn(&found, now_ns);
}

/* ---- for people and `ktask tune` ---- */

int ktask_learnt_get(const char *name, struct ktask_learnt *learnt)
{
	struct learn_entry entry;
	int saved = errno;
	int cancel_state;
	bool found;

	if (!learnt || learnt->struct_size < sizeof(*learnt) ||
	    !learn_name_ok(name))
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	found = learn_find(name, true, &entry);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	if (!found)
		return -ENOENT;
	memcpy(learnt->name, entry.name, sizeof(learnt->name));
	learnt->threads = entry.threads;
	learnt->max_threads = entry.max_threads;
	learnt->chunk_us = entry.chunk_us;
	learnt->measured = entry.measured;
	learnt->single_rate = entry.single_rate;
	return 0;
}

static bool take_learnt(const struct ktask_learnt *learnt,
			struct learn_entry *entry)
{
	if (!learnt || learnt->struct_size < sizeof(*learnt))
		return false;
	*entry = (struct learn_entry){ .threads = learnt->threads,
				       .max_threads = learnt->max_threads,
				       .chunk_us = learnt->chunk_us,
				       .seen = LEARN_SEEN_ENOUGH,
				       .measured = learnt->measured,
				       .single_rate = learnt->single_rate };
	memcpy(entry->name, learnt->name, sizeof(entry->name));
	return learn_entry_ok(entry);
}

int ktask_learnt_add(const struct ktask_learnt *learnt)
{
	struct learn_entry found;
	int saved = errno;
	int cancel_state;

	if (!take_learnt(learnt, &found))
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, load);
	learn(&found, kt_now_ns());
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return 0;
}

int ktask_learnt_put(const struct ktask_learnt *learnt, char *path, size_t size)
{
	struct learn_entry entry;
	int saved = errno;
	int cancel_state;
	int error;

	if (path && size)
		path[0] = '\0';
	if (!take_learnt(learnt, &entry))
		return -EINVAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, load);
	keep(&entry);
	error = learn_write(&entry, this_machine, WAIT_MS, path, size);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}
