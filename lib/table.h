/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The shared table of a user: what lies in /dev/shm, and how it is found.
 *
 * Does not know what permits and demands are for (lib/permits.h).  Every process of
 * the user may write anything into it; see there for what that can do.
 */
#ifndef KTASK_LIB_TABLE_H
#define KTASK_LIB_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TABLE_DIR "/dev/shm"
#define TABLE_PERMITS 1024
#define TABLE_DEMANDS 512
/* Anybody may fill the folder: of it no more names are read, and of these no more
 * that are names of tables.  Names, not tables: whoever fills it can have any
 * number of either, and looking at a name takes as long whatever is behind it. */
#define TABLE_NAMES_MOST 65536
#define TABLES_MOST 1024

struct demand {
	uint64_t seen_ns; /* CLOCK_MONOTONIC; 0 free */
	uint32_t wanted;
	uint32_t pid;
	/* For people. */
	uint32_t helpers;
	char name[16]; /* may lack its end */
	uint64_t start_ns;
	uint64_t units_done, units_total;
};

struct permit {
	pthread_mutex_t mutex;
	uint32_t holder; /* hint: by this thread; the mutex decides */
	uint32_t yielded_by; /* the holder for which another may work */
};

/* What other users read. */
struct table_head {
	uint64_t magic;
	uint32_t mutex_bytes; /* of this C library */
	uint32_t nr_demands; /* entries that were ever used */
	uint32_t changes; /* of demands, counted */
	struct demand demands[TABLE_DEMANDS];
};

struct table {
	struct table_head head;
	struct permit permits[TABLE_PERMITS];
};

/* table_open - the table of this user, made if need be; NULL without one */
struct table *table_open(void);

/* table_owner - the user that this process was when it opened its table */
uid_t table_owner(void);

/*
 * table_each - go through the names of tables
 * @use: gets a name, the user whose table that should be, and @arg
 *
 * Return: false where there are more than are read.
 */
bool table_each(void (*use)(const char *name, uid_t uid, void *arg), void *arg);

/*
 * table_read - a copy of the head of table @name of @uid
 *
 * Return: to be freed; NULL if it is not in order.
 */
struct table_head *table_read(const char *name, uid_t uid);

/* table_silent - has a demand said nothing for longer than @bound_ns? */
bool table_silent(uint64_t seen_ns, uint64_t now_ns, uint64_t bound_ns);

/* table_nr_demands - entries to look at, whatever others write meanwhile */
uint32_t table_nr_demands(const struct table_head *head);

/* table_wanted - sum of what the jobs want that have spoken lately */
uint32_t table_wanted(const struct table_head *head, uint64_t now_ns);

#endif /* KTASK_LIB_TABLE_H */
