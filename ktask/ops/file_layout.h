/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lays out files one behind another in one range of positions.
 *
 * Owns the marks: the positions at which some of the files begin.  Between two marks it
 * adds up sizes.  Does not own the files, whose sizes must stay the same.
 */
#ifndef OPS_FILE_LAYOUT_H
#define OPS_FILE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks that need no allocation. */
#define FILE_LAYOUT_OWN_MARKS 128
/* Files from one mark to the next, if there is memory for the marks. */
#define FILE_LAYOUT_STRIDE 32

/** Bytes of file @index, rounded up as in the range. */
typedef uint64_t (*file_layout_size_func)(const void *arg, size_t index);

/** Constant from file_layout_begin() to file_layout_end(); any thread may read it. */
struct file_layout {
	file_layout_size_func size;
	const void *arg;
	size_t nr_files;
	size_t stride; /* files from one mark to the next */
	uint64_t *marks; /* own_marks, or allocated */
	uint64_t own_marks[FILE_LAYOUT_OWN_MARKS];
};

/**
 * file_layout_begin - lay out @nr_files files from position @pos on
 * @end: set to the end of the last one
 *
 * Return: false if the files would reach beyond @limit.
 */
bool file_layout_begin(struct file_layout *layout, size_t nr_files,
		       file_layout_size_func size, const void *arg,
		       uint64_t pos, uint64_t limit, uint64_t *end);
void file_layout_end(struct file_layout *layout);

/**
 * file_layout_find - find the last file that begins at or before @pos
 * @begin: set to where that file begins
 *
 * Asks for the sizes of fewer than @layout->stride files.
 */
size_t file_layout_find(const struct file_layout *layout, uint64_t pos,
			uint64_t *begin);

#endif /* OPS_FILE_LAYOUT_H */
