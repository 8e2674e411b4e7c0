/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sizes and thread lists as people write and read them.
 */
#ifndef KTASK_CLI_SIZE_H
#define KTASK_CLI_SIZE_H

#include <stdint.h>

#define SIZE_TEXT 32
#define MAX_THREADS 4096

/**
 * size_parse - "4096", "64K", "512M", "8G", "1T", also "8GiB"
 *
 * Suffixes are powers of 1024 in either case.
 *
 * Return: 0, -EINVAL (not a size, or 0), or -ERANGE.
 */
int size_parse(const char *text, uint64_t *bytes);

/** size_text - "8 GiB", "1.5 GiB", "17 bytes"; returns @buf */
const char *size_text(char buf[SIZE_TEXT], uint64_t bytes);

/** size_why - what size_parse() found wrong, for a message */
const char *size_why(int error);

/** count_parse - a number of threads, 1 to MAX_THREADS; 0 or -EINVAL */
int count_parse(const char *text, unsigned *count);

/**
 * list_parse - thread counts as "1-4", "1,2,8", "1,2,4-8"
 * @counts: room for MAX_THREADS; ascending, each once
 *
 * Return: how many there are, or -EINVAL.
 */
int list_parse(const char *text, unsigned *counts);

#endif /* KTASK_CLI_SIZE_H */
