/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Structures as programs of other versions have them: cut short or with more
 * behind, and always right before memory that cannot be read, but for the bytes
 * by which a size misses a multiple of 8: those are not zero.
 */
#ifndef TEST_VERSION_H
#define TEST_VERSION_H

#include "ktest.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As the library has it. */
#define VERSION_SIZE_MAX ((size_t)4096)

/* A structure that is read must not end in padding, which may be anything. */
#define VERSION_NO_PADDING(type, last)                                   \
	_Static_assert(sizeof(struct type) ==                            \
			       offsetof(struct type, last) +             \
				       sizeof(((struct type *)0)->last), \
		       #type " ends in padding")

static char *version_end; /* of what can be read and written */

/* Room for one structure, before a page that faults. */
static inline int version_begin(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *guarded = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (guarded == MAP_FAILED ||
	    mprotect(guarded + 2 * page, page, PROT_NONE))
		return 1;
	version_end = guarded + 2 * page;
	return 0;
}

/*
 * @from, of @known bytes, as a program has it whose own is of @size bytes; what
 * is behind the known ones is zero.
 */
static inline void *version_of(const void *from, size_t known, size_t size)
{
	char *to = version_end - (size + 7) / 8 * 8;

	memset(version_end - 2 * VERSION_SIZE_MAX, 0xa5, 2 * VERSION_SIZE_MAX);
	memset(to, 0, size);
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &size, size < sizeof(size) ? size : sizeof(size));
	return to;
}

/* What stands around the structure is as it was. */
static inline void version_was_kept_to(const void *at, size_t size)
{
	const unsigned char *byte = (const unsigned char *)at;

	for (size_t i = 1; i <= 64; i++)
		assert_int_equal(byte[-(ptrdiff_t)i], 0xa5);
	for (byte += size; byte < (unsigned char *)version_end; byte++)
		assert_int_equal(*byte, 0xa5);
}

/* version_use - the call that is tested; 0 or a negative errno */
typedef int (*version_use)(void *any);

static inline int version_try(version_use use, const void *from, size_t known,
			      size_t size)
{
	void *it = version_of(from, known, size);
	int error = use(it);

	version_was_kept_to(it, size);
	return error;
}

/* Sizes that no version has: none, half a size, garbage. */
static inline void version_refuses_garbage(version_use use, const void *from,
					   size_t known, size_t least)
{
	size_t sizes[] = { VERSION_SIZE_MAX + 1, VERSION_SIZE_MAX * 1000,
			   SIZE_MAX };
	size_t *it;

	/* The size itself can be read in all of them. */
	for (size_t size = 0; size < least; size++) {
		size_t readable = size < sizeof(size) ? sizeof(size) : size;

		it = version_of(from, known, readable);
		memcpy(it, &size, sizeof(size));
		assert_int_equal(use(it), -EINVAL);
	}
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(sizes); i++) {
		it = version_of(from, known, known);
		*it = sizes[i];
		assert_int_equal(use(it), -E2BIG);
	}
}

/*
 * version_check_read - a structure that the library reads
 * @from: valid, @known bytes, zero behind the @least that must be there
 * @step: between the sizes that are tried
 */
static inline void version_check_read(version_use use, const void *from,
				      size_t known, size_t least, size_t step)
{
	size_t longer[] = { known, known + 1, known + 100, VERSION_SIZE_MAX };

	version_refuses_garbage(use, from, known, least);
	for (size_t size = least; size <= known; size += step)
		assert_int_equal(version_try(use, from, known, size), 0);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(longer); i++) {
		char *it;

		assert_int_equal(version_try(use, from, known, longer[i]), 0);
		if (longer[i] == known)
			continue;
		/* The first and the last byte that is not known. */
		it = version_of(from, known, longer[i]);
		it[known] = 1;
		assert_int_equal(use(it), -E2BIG);
		it = version_of(from, known, longer[i]);
		it[longer[i] - 1] = 1;
		assert_int_equal(use(it), -E2BIG);
	}
}

/*
 * version_check_filled - a structure that the library fills, always the same
 * @filled: by the library, @known bytes
 * @step: between the sizes that are tried
 */
static inline void version_check_filled(version_use use, const void *filled,
					size_t known, size_t step)
{
	size_t longer[] = { known, known + 1, known + 100, VERSION_SIZE_MAX };
	char zero[VERSION_SIZE_MAX] = { 0 };
	const size_t head = sizeof(size_t);

	version_refuses_garbage(use, filled, known, head);
	for (size_t size = head; size <= known; size += step) {
		char *it = version_of(zero, sizeof(zero), size);

		memset(it + head, 0x5a, size - head);
		assert_int_equal(use(it), 0);
		assert_int_equal(*(size_t *)it, size);
		assert_memory_equal(it + head, (const char *)filled + head,
				    size - head);
		version_was_kept_to(it, size);
	}
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(longer); i++) {
		char *it = version_of(zero, sizeof(zero), longer[i]);

		memset(it + head, 0x5a, longer[i] - head);
		assert_int_equal(use(it), 0);
		assert_int_equal(*(size_t *)it, longer[i]);
		assert_memory_equal(it + head, (const char *)filled + head,
				    known - head);
		assert_memory_equal(it + known, zero, longer[i] - known);
	}
}

#endif /* TEST_VERSION_H */
