/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Learning: the best number of threads and length of chunks of each operation
 * on this machine, as `ktask tune` measured them, in a small file.  Jobs read the
 * file and never write it.
 *
 * An operation is whatever jobs of one name do.  Three parts: the words of the
 * file (learn_text.c), the file (learn_file.c), and what this process knows
 * (learn.c).  Without a file that can be had all of it is silently less.
 *
 * Threat model.  The file is the user's own: it and its directory must belong to
 * the user and be writable by nobody else, no link is followed, and what does
 * not read as a whole counts as not there.  The worst that its contents can do
 * is a job that begins with the wrong number of threads, within all caps.
 * Root's file is read by everybody, for operations that the own one lacks.
 */
#ifndef KTASK_LIB_LEARN_H
#define KTASK_LIB_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LEARN_NAME 16 /* bytes, with its end */
#define LEARN_MAX 64 /* operations in a file */
#define LEARN_BYTES 16384 /* of a file; longer ones are not read */
#define LEARN_MACHINE 256

#define LEARN_THREADS_MAX 4095
#define LEARN_CHUNK_US_MAX 1000000

struct learn_entry {
	char name[LEARN_NAME]; /* learn_name_ok() */
	unsigned threads; /* the best count, the caller included */
	unsigned max_threads; /* that could be had when it was found */
	unsigned chunk_us; /* 0: the default */
	uint64_t single_rate; /* units a second of one thread; 0 unknown */
};

struct learn_table {
	unsigned nr;
	struct learn_entry entries[LEARN_MAX]; /* the newest last */
};

/* ---- the words: learn_text.c ---- */

/* learn_name_ok - letters, digits, '.', '_' and '-', 1 to 15 of them */
bool learn_name_ok(const char *name);

/* learn_entry_ok - are all values within their bounds? */
bool learn_entry_ok(const struct learn_entry *entry);

/*
 * learn_parse - read a file's text of @len bytes
 * @machine: what the file must say it is about
 *
 * Lines that say "measured 0" are left out: earlier versions wrote there what jobs
 * had found by accident.
 *
 * Return: false, and an empty table, unless every line is as it should be.
 */
bool learn_parse(const char *text, size_t len, const char *machine,
		 struct learn_table *table);

/* learn_format - its reverse; returns the length, 0 if it would not fit */
size_t learn_format(const struct learn_table *table, const char *machine,
		    char *text, size_t size);

/* learn_put - make @entry the newest; the oldest of a full table goes */
void learn_put(struct learn_table *table, const struct learn_entry *entry);

/* ---- the file: learn_file.c ---- */

/* learn_machine - what the figures depend on, in one line */
void learn_machine(char machine[LEARN_MACHINE]);

/* learn_read - of the calling user, or root's; false: there is none */
bool learn_read(bool roots, const char *machine, struct learn_table *table);

/*
 * learn_write - put one entry into the calling user's file
 * @wait_ms: for another process that does the same
 * @path: NULL, or the file's name, also when it could not be written
 *
 * Others see the old file or the new one.  Return: 0, -EBUSY, -errno.
 */
int learn_write(const struct learn_entry *entry, const char *machine,
		unsigned wait_ms, char *path, size_t size);

/*
 * learn_verify - could learn_write() do that, as far as rights tell?
 *
 * Return: 0, -errno.
 */
int learn_verify(const char *machine, char *path, size_t size);

/* ---- this process: learn.c ---- */

/*
 * learn_find - what is known of jobs called @name
 * @may_read: read the file, if that was not done yet: 0.1 ms
 *
 * Return: false: nothing that jobs should begin with.
 */
bool learn_find(const char *name, bool may_read, struct learn_entry *entry);

#endif /* KTASK_LIB_LEARN_H */
