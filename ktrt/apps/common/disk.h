/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files that are written and read around the page cache, whole blocks at a
 * time, and the checksum of what is in them (XXH3, 64 bits).
 */
#ifndef APPS_DISK_H
#define APPS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* What direct I/O wants memory, offsets and lengths to be multiples of. */
#define DISK_ALIGN 4096

/** disk_round - @bytes, rounded up to whole blocks */
static inline size_t disk_round(size_t bytes)
{
	return (bytes + DISK_ALIGN - 1) & ~(size_t)(DISK_ALIGN - 1);
}

/** disk_alloc - aligned memory, zeroed; NULL when there is none */
void *disk_alloc(size_t bytes);

/**
 * disk_open - open @path to be written and read; @create: if there is none
 *
 * A file system without direct I/O gets a buffered file.
 *
 * Return: a file descriptor, or -errno.
 */
int disk_open(const char *path, bool direct, bool create);

/**
 * disk_reserve - make a file so long, all of it with room on the disk
 *
 * Then writes may go on at the same time: one that makes a file longer, or
 * fills a hole, has the file to itself on ext4 and xfs until it is on the disk.
 *
 * Return: 0, also where the file system cannot; -ENOSPC, -EFBIG, -EIO.
 */
int disk_reserve(int fd, uint64_t bytes);

/** disk_write, disk_read - all of it, at @offset; 0 or -errno (-ENODATA where
 * the file ends) */
int disk_write(int fd, const void *buf, size_t bytes, uint64_t offset);
int disk_read(int fd, void *buf, size_t bytes, uint64_t offset);

/** disk_write_parts - the same of @nr parts, one after the other in the file,
 * by one system call; @parts are used up */
int disk_write_parts(int fd, struct iovec *parts, int nr, uint64_t offset);

/**
 * disk_swap - @from becomes @to, also after a crash
 *
 * What was @to becomes @from, where the file system can: a file that is used
 * again needs no new room, and none is given back, which costs as much as
 * writing it where the disk is told of it.
 *
 * Return: 0 or -errno.
 */
int disk_swap(const char *from, const char *to);

uint64_t disk_sum(const void *buf, size_t bytes);

#endif /* APPS_DISK_H */
