/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Public structures whose first field is their size, a size_t.  The program that
 * passes one may have been built with an older or a newer header.
 *
 * The rules are those of the kernel's copy_struct_from_user() and
 * copy_struct_to_user().  Reading: fields that a shorter structure lacks are
 * zero; a longer structure is accepted if its unknown fields are zero.  Writing:
 * a shorter structure gets the fields that it has; the unknown fields of a longer
 * one become zero.  Nothing behind the structure's own size is touched.
 *
 * A structure that is read must not end in padding: programs do not clear it, and
 * a longer version may have a field there.
 *
 * Of an array of structures the size of the first one counts for all.
 *
 * Does not know which fields are required: the caller says how far they reach.
 */
#ifndef COMMON_STRUCT_SIZE_H
#define COMMON_STRUCT_SIZE_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* A page, more than any structure will need.  A larger size is garbage. */
#define STRUCT_SIZE_MAX ((size_t)4096)

/* Bytes of @type up to the end of @field, the last required one. */
#define STRUCT_SIZE_TO(type, field) \
	(offsetof(type, field) + sizeof(((type *)NULL)->field))

/* Only the size is required. */
#define STRUCT_SIZE_ONLY sizeof(size_t)

static inline size_t struct_size_of(const void *any)
{
	size_t size;

	memcpy(&size, any, sizeof(size));
	return size;
}

/*
 * struct_size_check - check the size of a structure
 * @least: bytes up to the end of the last required field
 *
 * Return: 0, -EINVAL: too short, -E2BIG: too long.
 */
static inline int struct_size_check(size_t size, size_t least)
{
	if (size < least)
		return -EINVAL;
	return size > STRUCT_SIZE_MAX ? -E2BIG : 0;
}

/*
 * struct_size_check_rest - is what follows the @known bytes of a structure zero?
 * @size: of the structure; has passed struct_size_check()
 *
 * Return: 0, -E2BIG.
 */
static inline int struct_size_check_rest(const void *from, size_t size,
					 size_t known)
{
	for (size_t i = known; i < size; i++)
		if (((const unsigned char *)from)[i])
			return -E2BIG;
	return 0;
}

/*
 * struct_size_read - copy the structure @from that a program passed
 * @to: gets @known bytes, with @known as its size
 * @least: as for struct_size_check()
 *
 * Return: 0, -EINVAL: too short, -E2BIG: too long, or not zero where it is
 * longer than @known.
 */
static inline int struct_size_read(void *to, size_t known, const void *from,
				   size_t least)
{
	size_t size = struct_size_of(from);
	size_t copied = size < known ? size : known;
	int error = struct_size_check(size, least);

	if (!error)
		error = struct_size_check_rest(from, size, known);
	if (error)
		return error;
	memcpy(to, from, copied);
	memset((char *)to + copied, 0, known - copied);
	memcpy(to, &known, sizeof(known));
	return 0;
}

/*
 * struct_size_write - fill the structure @to that a program passed
 * @from: has @known bytes
 *
 * @to keeps its size, which must have passed struct_size_check().
 */
static inline void struct_size_write(void *to, const void *from, size_t known)
{
	size_t size = struct_size_of(to);
	size_t copied = size < known ? size : known;

	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
	       copied - sizeof(size));
	memset((char *)to + copied, 0, size - copied);
}

/*
 * struct_size_write_at - fill element @index of the array @first
 *
 * The size of the first one, which must have passed struct_size_check(), becomes
 * that of this one.
 */
static inline void struct_size_write_at(void *first, size_t index,
					const void *from, size_t known)
{
	size_t size = struct_size_of(first);
	char *to = (char *)first + index * size;

	memcpy(to, &size, sizeof(size));
	struct_size_write(to, from, known);
}

#endif /* COMMON_STRUCT_SIZE_H */
