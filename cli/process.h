/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of another process, as /proc tells of it.
 */
#ifndef KTASK_CLI_PROCESS_H
#define KTASK_CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region {
	uint64_t start;
	uint64_t end;
};

struct regions {
	struct region *at;
	size_t nr;
	size_t room;
};

#define REGIONS_ANON 0x1u /* private memory that can be written, no file */

/**
 * regions_of - the mappings of @pid, ascending, without those of the kernel
 * @only: REGIONS_*
 *
 * Return: 0 or -errno.
 */
int regions_of(int pid, unsigned only, struct regions *regions);

/** regions_within - leave of them what lies in [start, end) */
void regions_within(struct regions *regions, uint64_t start, uint64_t end);

/**
 * regions_small - leave the aligned blocks in which there are small pages
 * @block: bytes, a power of two
 *
 * Where the kernel (before 6.7) cannot tell, all whole blocks stay.
 *
 * Return: 0 or -ENOMEM.
 */
int regions_small(int pid, uint64_t block, struct regions *regions);

void regions_free(struct regions *regions);

#define PROCESS_NODES 64

/** process_nodes - bytes on each node; 0 or -errno */
int process_nodes(int pid, uint64_t bytes[PROCESS_NODES]);

/** process_huge - bytes of private memory in huge pages, and all; 0, -errno */
int process_huge(int pid, uint64_t *huge, uint64_t *all);

/**
 * process_operands - "1234", or "1234 7f0000000000-7f0040000000" with a range
 * as in /proc/PID/maps; all addresses without one
 *
 * Return: 0, or 2 after a message of @command.
 */
int process_operands(const char *command, int argc, char **argv, int *pid,
		     struct region *range);

#endif /* KTASK_CLI_PROCESS_H */
