/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where files begin: see file_layout.h.
 *
 * Behaves badly without memory for marks: with a million files it then adds up to 7800
 * sizes for each chunk.
 */
#include <stdlib.h>

#include "file_layout.h"

static size_t count_marks(const struct file_layout *layout)
{
	return (layout->nr_files - 1) / layout->stride + 1;
}

static void choose_marks(struct file_layout *layout)
{
	layout->stride = FILE_LAYOUT_STRIDE;
	layout->marks = layout->own_marks;
	if (!layout->nr_files || count_marks(layout) <= FILE_LAYOUT_OWN_MARKS)
		return;
	layout->marks = calloc(count_marks(layout), sizeof(*layout->marks));
	if (layout->marks)
		return;
	layout->marks = layout->own_marks;
	layout->stride = layout->nr_files / FILE_LAYOUT_OWN_MARKS + 1;
}

bool file_layout_begin(struct file_layout *layout, size_t nr_files,
		       file_layout_size_func size, const void *arg,
		       uint64_t pos, uint64_t limit, uint64_t *end)
{
	layout->size = size;
	layout->arg = arg;
	layout->nr_files = nr_files;
	choose_marks(layout);
	for (size_t i = 0; i < nr_files; i++) {
		uint64_t bytes = size(arg, i);

		if (i % layout->stride == 0)
			layout->marks[i / layout->stride] = pos;
		if (bytes > limit - pos) {
			file_layout_end(layout);
			return false;
		}
		pos += bytes;
	}
	*end = pos;
	return true;
}

void file_layout_end(struct file_layout *layout)
{
	if (layout->marks != layout->own_marks)
		free(layout->marks);
	layout->marks = layout->own_marks;
}

/* The last mark at @pos or before it; files of no bytes have equal ones. */
static size_t find_mark(const struct file_layout *layout, uint64_t pos)
{
	size_t first = 0, behind = count_marks(layout);

	while (behind - first > 1) {
		size_t middle = first + (behind - first) / 2;

		if (layout->marks[middle] > pos)
			behind = middle;
		else
			first = middle;
	}
	return first;
}

size_t file_layout_find(const struct file_layout *layout, uint64_t pos,
			uint64_t *begin)
{
	size_t mark = find_mark(layout, pos);
	size_t i = mark * layout->stride;
	size_t last = i + layout->stride - 1;

	if (last > layout->nr_files - 1)
		last = layout->nr_files - 1;
	*begin = layout->marks[mark];
	while (i < last) {
		uint64_t next = *begin + layout->size(layout->arg, i);

		if (next > pos)
			break;
		*begin = next;
		i++;
	}
	return i;
}
