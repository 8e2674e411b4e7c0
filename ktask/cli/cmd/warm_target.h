/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thing that `ktask populate` can warm, mapped: a file, or plain memory.
 */
#ifndef KTASK_CLI_WARM_TARGET_H
#define KTASK_CLI_WARM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

enum warm_kind { WARM_ANON, WARM_FILE, WARM_TMPFS, WARM_HUGETLBFS };

struct warm {
	const char *path; /* NULL: memory */
	enum warm_kind kind;
	void *addr;
	uint64_t size_bytes;
	uint64_t page_bytes;
	unsigned flags; /* for ktask_populate() */

	/* private */
	int fd;
	bool created;
	uint64_t grown_bytes; /* to this length, by us; 0: it was not */
	uint64_t former_bytes;
};

/* Both map, and return 0, or 1 after a message; then nothing has changed. */
int warm_open_memory(struct warm *warm, uint64_t size_bytes);

/** warm_open_file - @allocate_bytes: 0, or make the file at least that long */
int warm_open_file(struct warm *warm, const char *path,
		   uint64_t allocate_bytes);

/** warm_undo - give a file that was created or made longer its former state */
void warm_undo(struct warm *warm);

/** warm_close - unmap; the file keeps its pages */
void warm_close(struct warm *warm);

/** warm_why - why populating failed with @error (-errno); returns @buf */
const char *warm_why(const struct warm *warm, int error, char buf[160]);

#endif /* KTASK_CLI_WARM_TARGET_H */
