/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of another process: see process.h.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "process.h"
#include "say.h"

/* The kernel's ABI since 6.7, for headers that are older. */
struct scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

struct scan_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};

#define SCAN _IOWR('f', 16, struct scan_arg)
#define SCAN_PRESENT (1u << 3)
#define SCAN_HUGE (1u << 6)
#define SCAN_REGIONS 512

static FILE *open_proc(int pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

static int add(struct regions *regions, uint64_t start, uint64_t end)
{
	struct region *last =
		regions->nr ? &regions->at[regions->nr - 1] : NULL;

	if (last && start <= last->end) {
		last->end = end > last->end ? end : last->end;
		return 0;
	}
	if (regions->nr == regions->room) {
		size_t room = regions->room ? 2 * regions->room : 64;
		struct region *at = realloc(regions->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		regions->at = at;
		regions->room = room;
	}
	regions->at[regions->nr++] = (struct region){ start, end };
	return 0;
}

/* "[vdso]" and the like are the kernel's. */
static bool is_wanted(const char *line, unsigned only)
{
	char perms[5] = "", name[16] = "";
	unsigned long inode = 1;

	sscanf(line, "%*s %4s %*s %*s %lu %15s", perms, &inode, name);
	if (!strncmp(name, "[v", 2))
		return false;
	return !(only & REGIONS_ANON) ||
	       (!inode && perms[1] == 'w' && perms[3] == 'p');
}

int regions_of(int pid, unsigned only, struct regions *regions)
{
	FILE *file = open_proc(pid, "maps");
	uint64_t start, end;
	char line[512];
	int error = 0;

	*regions = (struct regions){ 0 };
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!error && fgets(line, sizeof(line), file)) {
		bool whole = strchr(line, '\n');

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) ==
			    2 &&
		    is_wanted(line, only))
			error = add(regions, start, end);
		/* The rest of a long name. */
		while (!whole && fgets(line, sizeof(line), file))
			whole = strchr(line, '\n');
	}
	fclose(file);
	return error;
}

void regions_within(struct regions *regions, uint64_t start, uint64_t end)
{
	size_t nr = 0;

	for (size_t i = 0; i < regions->nr; i++) {
		struct region region = regions->at[i];

		if (region.start < start)
			region.start = start;
		if (region.end > end)
			region.end = end;
		if (region.start < region.end)
			regions->at[nr++] = region;
	}
	regions->nr = nr;
}

/* Whole blocks of @from that [start, end) touches. */
static int add_blocks(struct regions *to, const struct region *from,
		      uint64_t block, uint64_t start, uint64_t end)
{
	uint64_t first = (from->start + block - 1) & ~(block - 1);
	uint64_t last = from->end & ~(block - 1);

	start &= ~(block - 1);
	end = (end + block - 1) & ~(block - 1);
	if (start < first)
		start = first;
	if (end > last)
		end = last;
	return start < end ? add(to, start, end) : 0;
}

/* Return: -errno where the kernel does not tell, and -ENOMEM. */
static int scan(int fd, const struct region *from, uint64_t block,
		struct regions *to)
{
	struct scan_region found[SCAN_REGIONS];
	struct scan_arg arg = { .size = sizeof(arg),
				.start = from->start,
				.end = from->end,
				.vec = (uintptr_t)found,
				.vec_len = SCAN_REGIONS,
				.category_inverted = SCAN_HUGE,
				.category_mask = SCAN_PRESENT | SCAN_HUGE,
				.return_mask = SCAN_PRESENT };

	while (arg.start < arg.end) {
		int nr = ioctl(fd, SCAN, &arg), error = 0;

		if (nr < 0)
			return -errno;
		for (int i = 0; i < nr && !error; i++)
			error = add_blocks(to, from, block, found[i].start,
					   found[i].end);
		if (error)
			return error;
		arg.start = arg.walk_end;
	}
	return 0;
}

int regions_small(int pid, uint64_t block, struct regions *regions)
{
	struct regions small = { 0 };
	char path[64];
	int fd, error = 0;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < regions->nr && error != -ENOMEM; i++) {
		const struct region *from = &regions->at[i];

		error = fd < 0 ? -errno : scan(fd, from, block, &small);
		if (error && error != -ENOMEM)
			error = add_blocks(&small, from, block, from->start,
					   from->end);
	}
	if (fd >= 0)
		close(fd);
	regions_free(regions);
	*regions = small;
	return error;
}

void regions_free(struct regions *regions)
{
	free(regions->at);
	*regions = (struct regions){ 0 };
}

/* "... N0=512 N1=3 kernelpagesize_kB=4" */
static void add_nodes(char *line, uint64_t bytes[PROCESS_NODES])
{
	char *size = strstr(line, "kernelpagesize_kB=");
	uint64_t page = 4096;
	char *save, *word;

	if (size)
		page = strtoull(size + 18, NULL, 10) * 1024;
	for (word = strtok_r(line, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		unsigned node;
		uint64_t nr;

		if (sscanf(word, "N%u=%" SCNu64, &node, &nr) == 2 &&
		    node < PROCESS_NODES)
			bytes[node] += nr * page;
	}
}

int process_nodes(int pid, uint64_t bytes[PROCESS_NODES])
{
	FILE *file = open_proc(pid, "numa_maps");
	char *line = NULL;
	size_t size = 0;

	memset(bytes, 0, PROCESS_NODES * sizeof(*bytes));
	if (!file)
		return -errno;
	while (getline(&line, &size, file) > 0)
		add_nodes(line, bytes);
	free(line);
	fclose(file);
	return 0;
}

int process_huge(int pid, uint64_t *huge, uint64_t *all)
{
	FILE *file = open_proc(pid, "smaps_rollup");
	uint64_t kib;
	char line[256];

	*huge = *all = 0;
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)
			*huge = kib * 1024;
		if (sscanf(line, "Anonymous: %" SCNu64, &kib) == 1)
			*all = kib * 1024;
	}
	fclose(file);
	return 0;
}

static int parse_pid(const char *command, const char *text, int *pid)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text) || number < 1 ||
	    number != (int)number)
		return say_usage(command, "'%s': not a process id", text);
	*pid = (int)number;
	return 0;
}

static int parse_range(const char *command, const char *text,
		       struct region *range)
{
	char *end;

	errno = 0;
	if (isxdigit((unsigned char)*text)) {
		range->start = strtoull(text, &end, 16);
		if (!errno && *end == '-' && isxdigit((unsigned char)end[1])) {
			range->end = strtoull(end + 1, &end, 16);
			if (!errno && !*end && range->start < range->end)
				return 0;
		}
	}
	return say_usage(command, "'%s': not a range START-END", text);
}

int process_operands(const char *command, int argc, char **argv, int *pid,
		     struct region *range)
{
	int status;

	if (argc < 1 || argc > 2)
		return say_usage(command,
				 "a process id is wanted, and perhaps a range");
	*range = (struct region){ 0, UINT64_MAX };
	status = parse_pid(command, argv[0], pid);
	if (!status && argc == 2)
		status = parse_range(command, argv[1], range);
	return status;
}
