/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The autotune cache: the best number of threads and length of chunks of each operation
 * on this machine, as `ktask tune` measured them, in a small file.  Jobs read the file
 * and never write it.
 *
 * An operation is whatever jobs of one name do.  There are three parts: the text of
 * the file (autotune_text.c), the file (autotune_file.c), and the cache in this process
 * (autotune.c).  Without a file jobs begin as if nothing had been measured.
 *
 * Threat model.  The file and its directory must belong to the user, and nobody else may
 * write them.  No link is followed.  A file that cannot be read as a whole counts as
 * missing.  The worst effect of its contents is a job that begins with a wrong number of
 * threads, within all caps.  Everybody reads root's file for operations that the user's
 * own file lacks.
 */
#ifndef KTASK_USER_AUTOTUNE_H
#define KTASK_USER_AUTOTUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AUTOTUNE_NAME 16 /* bytes, with its end */
#define AUTOTUNE_MAX 64 /* operations in a file */
#define AUTOTUNE_BYTES 16384 /* of a file; longer ones are not read */
#define AUTOTUNE_MACHINE 256

#define AUTOTUNE_THREADS_MAX 4095
#define AUTOTUNE_CHUNK_US_MAX 1000000

struct autotune_entry {
	char name[AUTOTUNE_NAME]; /* autotune_name_ok() */
	unsigned threads; /* the best count, the caller included */
	unsigned max_threads; /* that could be had when it was found */
	unsigned chunk_us; /* 0: the default */
	uint64_t single_rate; /* units a second of one thread; 0 unknown */
};

struct autotune_cache {
	unsigned nr;
	struct autotune_entry entries[AUTOTUNE_MAX]; /* the newest last */
};

/* ---- the text: autotune_text.c ---- */

/* autotune_name_ok - letters, digits, '.', '_' and '-', 1 to 15 of them */
bool autotune_name_ok(const char *name);

/* autotune_entry_ok - are all values within their bounds? */
bool autotune_entry_ok(const struct autotune_entry *entry);

/*
 * autotune_parse - read a file's text of @len bytes
 * @machine: what the file must say it is about
 *
 * Lines with "measured 0" are left out: earlier versions wrote what jobs had found by
 * themselves.
 *
 * Return: false, and an empty cache, unless every line is as it should be.
 */
bool autotune_parse(const char *text, size_t len, const char *machine,
		    struct autotune_cache *cache);

/* autotune_format - its reverse; returns the length, 0 if it would not fit */
size_t autotune_format(const struct autotune_cache *cache, const char *machine,
		       char *text, size_t size);

/* autotune_put - make @entry the newest; the oldest of a full cache goes */
void autotune_put(struct autotune_cache *cache,
		  const struct autotune_entry *entry);

/* ---- the file: autotune_file.c ---- */

/* autotune_machine - what the counts depend on, in one line */
void autotune_machine(char machine[AUTOTUNE_MACHINE]);

/* autotune_has_directory - where root's file, or the calling user's, may be */
bool autotune_has_directory(bool roots);

/* autotune_read - of the calling user, or root's; false: there is none */
bool autotune_read(bool roots, const char *machine,
		   struct autotune_cache *cache);

/*
 * autotune_write - put one entry into the calling user's file
 * @wait_ms: for another process that does the same
 * @path: NULL, or the file's name, also when it could not be written
 *
 * Others see the old file or the new one.  Return: 0, -EBUSY, -errno.
 */
int autotune_write(const struct autotune_entry *entry, const char *machine,
		   unsigned wait_ms, char *path, size_t size);

/*
 * autotune_verify - could autotune_write() do that, as far as rights tell?
 *
 * Return: 0, -errno.
 */
int autotune_verify(const char *machine, char *path, size_t size);

/* ---- in this process: autotune.c ---- */

/*
 * autotune_find - find what was measured for jobs called @name
 * @may_read: read the file, if that was not done yet: 0.1 ms
 *
 * Return: false if nothing was.
 */
bool autotune_find(const char *name, bool may_read,
		   struct autotune_entry *entry);

#endif /* KTASK_USER_AUTOTUNE_H */
