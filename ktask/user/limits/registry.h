/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The shared registry of a user: what lies in /dev/shm, and how it is found.
 *
 * Does not know what permits and entries are for; user/limits/permits.h does, and has the
 * threat model.  Every process of the user may write anything into the registry.
 *
 * Locking: processes that follow the rules write as follows.  But a reader must not rely
 * on anything that it reads here.
 *
 *	M: the thread that holds the permit's mutex
 *	E: the process that took the entry, until it sets seen_ns to 0.  It takes an entry
 *	   by compare-and-swap on a seen_ns that is 0 or long ago.  In that process only
 *	   the job's caller writes, except for seen_ns
 *	I: before the file has its name
 *	A: written by any thread, read by any process: kt_load() and kt_store()
 */
#ifndef KTASK_USER_REGISTRY_H
#define KTASK_USER_REGISTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REGISTRY_DIR "/dev/shm"
#define REGISTRY_PERMITS 1024
#define REGISTRY_ENTRIES 512
/* Anybody may fill the directory.  So at most so many names are read, and at most so many
 * names of registries.  Not only valid files count: whoever fills the directory can make
 * any number of these too. */
#define REGISTRY_NAMES_MOST 65536
#define REGISTRIES_MOST 1024

struct registry_entry {
	uint64_t seen_ns; /* CLOCK_MONOTONIC; 0 free; E, A */
	uint32_t wanted; /* E, A */
	uint32_t pid; /* E */
	/* For people; E: readers may see half of it. */
	uint32_t helpers; /* A */
	char name[16]; /* may lack its end */
	uint64_t start_ns;
	uint64_t units_done, units_total;
};

struct permit {
	pthread_mutex_t mutex;
	uint32_t holder; /* hint: this thread; the mutex decides; M, A */
	uint32_t yielded_by; /* the holder for which another may work; A */
};

/* What other users read. */
struct registry_head {
	uint64_t magic; /* I */
	uint32_t mutex_bytes; /* of this C library; I */
	uint32_t nr_entries; /* entries that were ever used; A */
	uint32_t changes; /* of entries, counted; A */
	struct registry_entry entries[REGISTRY_ENTRIES];
};

struct registry {
	struct registry_head head;
	struct permit permits[REGISTRY_PERMITS];
};

/* registry_open - the registry of this user, made if need be; NULL without one */
struct registry *registry_open(void);

/* registry_owner - the user that this process was when it opened its registry */
uid_t registry_owner(void);

/*
 * registry_for_each - go through the names of registries
 * @use: gets a name, the user whose registry that should be, and @arg
 *
 * Return: false if there are more names than are read.
 */
bool registry_for_each(void (*use)(const char *name, uid_t uid, void *arg),
		       void *arg);

/* Gets a copy of an entry. */
typedef void (*registry_entry_func)(const struct registry_entry *entry,
				    void *arg);

/*
 * registry_read - go through the entries of registry @name of @uid that were ever used
 *
 * Neither allocates nor maps memory.
 *
 * Return: false if the registry is not valid; @use may have got entries before that shows.
 */
bool registry_read(const char *name, uid_t uid, registry_entry_func use,
		   void *arg);

/* registry_entry_silent - was an entry last written more than @bound_ns ago? */
bool registry_entry_silent(uint64_t seen_ns, uint64_t now_ns,
			   uint64_t bound_ns);

/* registry_nr_entries - entries to read, whatever other processes write */
uint32_t registry_nr_entries(const struct registry_head *head);

/* registry_entry_wanted - the helpers that an entry's job wants; 0 of a silent one */
uint32_t registry_entry_wanted(const struct registry_entry *entry,
			       uint64_t now_ns);

/* registry_wanted - sum of the helpers that jobs want, silent ones left out */
uint32_t registry_wanted(const struct registry_head *head, uint64_t now_ns);

#endif /* KTASK_USER_REGISTRY_H */
