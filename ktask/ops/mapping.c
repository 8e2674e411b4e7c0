/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mappings of this process: see mapping.h for what this owns and costs.
 *
 * Behaves badly on kernels before 6.11 with a pool of gigantic pages: each large job
 * reads smaps.
 *
 * Locking: none.  Any thread stores what it has read of the machine, atomically; all
 * threads read the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapping.h"
#include "util/file.h"
#include "util/maps_line.h"

#define DEFAULT_HUGE_BYTES (2 * MIB)
/* A line takes 1 us, a second thread gains 30 us on 1 MiB of small pages that
 * are given back, and more on those that are made. */
#define BYTES_A_LINE (128 * KIB)
#define SYS_THP "/sys/kernel/mm/transparent_hugepage/"
#define SYS_HUGETLB "/sys/kernel/mm/hugepages"

/* The kernel's ABI since 6.11, for headers that are older. */
struct procmap_query_arg {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

#define QUERY_MAPPING _IOWR('f', 17, struct procmap_query_arg)
#define QUERY_READABLE 0x01
#define QUERY_WRITABLE 0x02
#define QUERY_SHARED 0x08
#define QUERY_OR_NEXT 0x10

/* A walk over the mappings, from whichever source. */
struct walk {
	uintptr_t start;
	uintptr_t end;
	mapping_visit visit;
	void *arg;
	bool visited;
	size_t lines_left; /* of a text, that may be read */
};

static int walk_step(struct walk *walk, const struct mapping *mapping)
{
	walk->visited = true;
	return walk->visit(mapping, walk->arg);
}

static int walk_query(struct walk *walk, int fd)
{
	uintptr_t pos = walk->start;

	while (pos < walk->end) {
		struct procmap_query_arg query = {
			.size = sizeof(query),
			.query_flags = QUERY_OR_NEXT,
			.query_addr = pos,
		};
		struct mapping mapping;
		int error;

		if (ioctl(fd, QUERY_MAPPING, &query))
			return errno == ENOENT ? 0 : -errno;
		if (query.vma_start >= walk->end)
			return 0;
		mapping = (struct mapping){
			.start = (uintptr_t)query.vma_start,
			.end = (uintptr_t)query.vma_end,
			.readable = query.vma_flags & QUERY_READABLE,
			.writable = query.vma_flags & QUERY_WRITABLE,
			.shared = query.vma_flags & QUERY_SHARED,
			.file = query.inode,
			.page_bytes = (size_t)query.vma_page_size,
		};
		error = walk_step(walk, &mapping);
		if (error)
			return error;
		pos = mapping.end;
	}
	return 0;
}

/* The first line of an entry, in maps and smaps alike. */
static bool parse_head(const char *line, struct mapping *mapping)
{
	struct maps_line head;

	if (!maps_line_parse(line, &head))
		return false;
	*mapping = (struct mapping){
		.start = head.start,
		.end = head.end,
		.readable = head.readable,
		.writable = head.writable,
		.shared = head.shared,
		.file = head.file,
	};
	return true;
}

static void parse_detail(const char *line, struct mapping *mapping)
{
	uint64_t kib;

	if (line_value(line, "KernelPageSize", &kib))
		mapping->page_bytes = (size_t)kib * KIB;
	else if (!strncmp(line, "VmFlags:", 8))
		mapping->locked = strstr(line, " lo") != NULL;
}

static int walk_lines(struct walk *walk, struct file_lines *lines)
{
	struct mapping mapping = { 0 }, next;
	bool past_end = false;
	const char *line;

	while (!past_end && (line = file_lines_next(lines))) {
		if (!walk->lines_left--)
			return -E2BIG;
		if (!parse_head(line, &next)) {
			parse_detail(line, &mapping);
			continue;
		}
		if (mapping.end > walk->start) {
			int error = walk_step(walk, &mapping);

			if (error)
				return error;
		}
		mapping = next;
		past_end = mapping.start >= walk->end;
	}
	if (!past_end && mapping.end > walk->start)
		return walk_step(walk, &mapping);
	return 0;
}

static int walk_file(struct walk *walk, const char *path)
{
	struct file_lines lines;
	int error;

	if (!file_lines_open(&lines, path))
		return -errno;
	lines.cuts = true;
	error = walk_lines(walk, &lines);
	file_lines_end(&lines);
	return error;
}

int mapping_each(uintptr_t start, uintptr_t end, unsigned want,
		 mapping_visit visit, void *arg)
{
	struct walk walk = { start, end, visit, arg, false, SIZE_MAX };
	bool details = want & (MAPPING_PAGE | MAPPING_LOCKED);
	bool cheap = want & MAPPING_CHEAP;

	if (!(want & MAPPING_LOCKED)) {
		int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
		int error;

		if (fd < 0)
			return -errno;
		error = walk_query(&walk, fd);
		close(fd);
		if (!error || walk.visited || (cheap && details))
			return error;
	}
	if (cheap)
		walk.lines_left = (end - start) / BYTES_A_LINE;
	return walk_file(&walk,
			 details ? "/proc/self/smaps" : "/proc/self/maps");
}

bool mapping_any_locked(void)
{
	uint64_t kib;

	return !file_value("/proc/self/status", "VmLck", &kib) || kib;
}

/* Bytes of a transparent huge page, asked for once: it never changes. */
static size_t huge_bytes(void)
{
	static _Atomic size_t known;
	size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
	uint64_t said;

	if (bytes)
		return bytes;
	bytes = DEFAULT_HUGE_BYTES;
	if (file_number(SYS_THP "hpage_pmd_size", &said) &&
	    said >= op_page_bytes() && !(said & (said - 1)))
		bytes = (size_t)said;
	atomic_store_explicit(&known, bytes, memory_order_relaxed);
	return bytes;
}

/*
 * May the machine give out transparent huge pages at all?  Read once: the setting is
 * usually changed at boot, and a wrong answer only costs time.
 */
static bool huge_possible(void)
{
	static _Atomic int known;
	int answer = atomic_load_explicit(&known, memory_order_relaxed);
	char line[96];

	if (answer)
		return answer > 0;
	answer = -1;
	if (file_text(SYS_THP "enabled", line, sizeof(line)) > 0 &&
	    !strstr(line, "[never]"))
		answer = 1;
	else if (file_text(SYS_THP "shmem_enabled", line, sizeof(line)) > 0 &&
		 !strstr(line, "[never]") && !strstr(line, "[deny]"))
		answer = 1;
	atomic_store_explicit(&known, answer, memory_order_relaxed);
	return answer > 0;
}

/* Whether there is a pool of hugetlb pages larger than @bytes. */
static bool hugetlb_above(size_t bytes)
{
	DIR *dir = opendir(SYS_HUGETLB);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		unsigned long long kib;
		uint64_t pages;
		char path[320];

		if (sscanf(entry->d_name, "hugepages-%llukB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), SYS_HUGETLB "/%s/nr_hugepages",
			 entry->d_name);
		found = kib * KIB > bytes && file_number(path, &pages) && pages;
	}
	closedir(dir);
	return found;
}

struct page_range {
	size_t least;
	size_t most;
};

static int visit_for_pages(const struct mapping *mapping, void *arg)
{
	struct page_range *pages = arg;

	if (mapping->page_bytes < pages->least)
		pages->least = mapping->page_bytes;
	if (mapping->page_bytes > pages->most)
		pages->most = mapping->page_bytes;
	return 0;
}

static size_t usual_align(const struct op_job *job)
{
	size_t huge = huge_bytes();

	/* In this order: each file of sysfs takes 40 us to read. */
	return job->len >= 4 * huge || huge_possible() ? huge : op_page_bytes();
}

void mapping_align_store(struct op_job *job)
{
	job->align = usual_align(job);
	job->step_bytes = op_page_bytes();
}

void mapping_align_range(struct op_job *job)
{
	struct page_range pages = { .least = SIZE_MAX, .most = 0 };
	uintptr_t start = (uintptr_t)job->addr;
	int error;

	mapping_align_store(job);
	if (op_is_small(job))
		return;
	error = mapping_each(start, start + job->len,
			     MAPPING_PAGE | MAPPING_CHEAP, visit_for_pages,
			     &pages);
	if (error && hugetlb_above(huge_bytes()))
		error = mapping_each(start, start + job->len, MAPPING_PAGE,
				     visit_for_pages, &pages);
	if (error || !pages.most || !pages.least) {
		job->align = huge_bytes();
		return;
	}
	job->step_bytes = pages.least;
	if (pages.most > job->align)
		job->align = pages.most;
}

static int refuse_other(const struct mapping *mapping, void *unused)
{
	return !mapping_is_private(mapping);
}

bool mapping_all_private(uintptr_t start, uintptr_t end, unsigned want)
{
	return !mapping_each(start, end, want, refuse_other, NULL);
}

bool mapping_present(const char *pos)
{
	uintptr_t page = op_page_bytes();
	unsigned char there = 1;

	mincore((void *)((uintptr_t)pos & ~(page - 1)), page, &there);
	return there & 1;
}

/* Two threads populating 16 MiB in 2 MiB pages need 221 us, one 241; 8 MiB
 * 169 and 113. */
#define HUGE_MIN_CHUNK (8 * MIB)

void mapping_first_page(struct op_job *job, ktask_thread_func chunk)
{
	uintptr_t huge = huge_bytes(), page = op_page_bytes();
	uintptr_t skip = -(uintptr_t)job->addr & (huge - 1);
	char *first = job->addr + skip;

	if (op_is_small(job))
		return;
	if (skip + huge > job->len) {
		chunk(job->addr, job->addr + page, job);
		return;
	}
	chunk(first, first + page, job);
	if (mapping_present(first + huge - page) &&
	    job->min_chunk < HUGE_MIN_CHUNK)
		job->min_chunk = HUGE_MIN_CHUNK;
}
