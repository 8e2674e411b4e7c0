/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files of the kernel that hold one number.
 */
#ifndef TESTS_SUPPORT_NUMBER_H
#define TESTS_SUPPORT_NUMBER_H

#include <stdbool.h>
#include <stdio.h>

/* number_read - what @path holds; -1 if it cannot be read */
static inline long number_read(const char *path)
{
	FILE *file = fopen(path, "re");
	long nr = -1;

	if (file && fscanf(file, "%ld", &nr) != 1)
		nr = -1;
	if (file)
		fclose(file);
	return nr;
}

/* number_write - false if the kernel refuses it */
static inline bool number_write(const char *path, long nr)
{
	FILE *file = fopen(path, "we");
	bool done;

	if (!file)
		return false;
	done = fprintf(file, "%ld\n", nr) > 0;
	return !fclose(file) && done;
}

#endif /* TESTS_SUPPORT_NUMBER_H */
