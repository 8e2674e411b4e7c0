/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where files begin that lie one behind another in one range of positions.
 *
 * Owns some of these positions, the marks; between two marks sizes are added up.  Does
 * not own the files, whose sizes must stay the same.
 */
#ifndef OPS_FILE_LAYOUT_H
#define OPS_FILE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many need no memory. */
#define FILE_LAYOUT_OWN_MARKS 128
/* As far apart as marks are where there is memory for them, in files. */
#define FILE_LAYOUT_STRIDE 32

/** Bytes of file @index, rounded up as the range has them. */
typedef uint64_t (*file_layout_size_func)(const void *arg, size_t index);

/** Constant between its begin and its end, so that any thread may read it. */
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
 * Return: false where positions do not suffice, below @limit, for so much.
 */
bool file_layout_begin(struct file_layout *layout, size_t nr_files,
		       file_layout_size_func size, const void *arg,
		       uint64_t pos, uint64_t limit, uint64_t *end);
void file_layout_end(struct file_layout *layout);

/**
 * file_layout_find - the last file that begins at @pos or before it
 * @begin: set to where it does
 *
 * Asks for the sizes of fewer than @layout->stride files.
 */
size_t file_layout_find(const struct file_layout *layout, uint64_t pos,
			uint64_t *begin);

#endif /* OPS_FILE_LAYOUT_H */
