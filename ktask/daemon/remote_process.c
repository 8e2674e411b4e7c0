/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See remote_process.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <uapi/linux/ktask.h>

#include "common/proc_stat.h"
#include "daemon/remote_process.h"
#include "util/cpu_quota.h"
#include "util/file.h"
#include "util/maps_line.h"
#include "util/memory.h"

/* The kernel's bits of /proc/PID/pagemap. */
#define PAGEMAP_EXCLUSIVE ((uint64_t)1 << 56)
#define PAGEMAP_FILE ((uint64_t)1 << 61)
#define PAGEMAP_SWAP ((uint64_t)1 << 62)
#define PAGEMAP_PRESENT ((uint64_t)1 << 63)
/* Read by one call: they lie on the stack. */
#define READ_PAGES 512
/* 65,530 mappings, the most that a process may have, of 100 bytes. */
#define MAPS_BYTES ((size_t)8 << 20)
#define SHIM "/libktask-preload.so"

static int device_fd = -1;
static bool has_nodes;

uint64_t remote_left_in_groups(const struct remote_process *process)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", process->pid);
	return memory_left_in_groups(path);
}

bool remote_has_cpu_quota(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	return cpu_quota_is_set(path);
}

static int open_file(pid_t pid, const char *name, int mode)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, mode | O_CLOEXEC);
}

static pid_t find_parent(pid_t pid)
{
	const char *parent;
	char text[512];

	if (system_text(text, sizeof(text), "/proc/%d/stat", pid) <= 0)
		return 0;
	parent = proc_stat_field(text, PROC_STAT_PARENT);
	return parent ? atoi(parent) : 0;
}

static bool is_same_memory(pid_t a, pid_t b)
{
	return !syscall(SYS_kcmp, a, b, KCMP_VM, 0ul, 0ul);
}

void remote_note_group(struct remote_process *process)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", process->pid);
	process->group = file_mark(path, FILE_MARK);
}

bool remote_open(struct remote_process *process, pid_t pid)
{
	/* It will exec, and descriptors would go on to stand for its parent. */
	if (is_same_memory(pid, find_parent(pid)))
		return false;
	*process = (struct remote_process){
		.pid = pid,
		.pagemap = open_file(pid, "pagemap", O_RDONLY),
		.memory = open_file(pid, "mem", O_RDWR),
	};
	remote_note_group(process);
	if (process->pagemap >= 0 && process->memory >= 0)
		return true;
	remote_close(process);
	return false;
}

void remote_close(struct remote_process *process)
{
	if (process->pagemap >= 0)
		close(process->pagemap);
	if (process->memory >= 0)
		close(process->memory);
}

bool remote_same_memory(const struct remote_process *a,
			const struct remote_process *b)
{
	return is_same_memory(a->pid, b->pid);
}

static unsigned char page_bits(uint64_t entry)
{
	bool own = entry & PAGEMAP_EXCLUSIVE && !(entry & PAGEMAP_FILE);

	if (!(entry & (PAGEMAP_PRESENT | PAGEMAP_SWAP)))
		return 0;
	return own ? PAGE_PRESENT | PAGE_OWN : PAGE_PRESENT;
}

static int read_some_pages(const struct remote_process *process, uintptr_t addr,
			   size_t nr, unsigned char *bits)
{
	uint64_t entries[READ_PAGES];
	size_t len = nr * sizeof(*entries);
	ssize_t got = pread64(process->pagemap, entries, len,
			      (off64_t)(addr / REMOTE_PAGE * sizeof(*entries)));

	if (got < 0)
		return -errno;
	if ((size_t)got < len)
		return -ESRCH;
	for (size_t i = 0; i < nr; i++)
		bits[i] = page_bits(entries[i]);
	return 0;
}

int remote_read_pages(const struct remote_process *process, uintptr_t addr,
		      size_t nr, unsigned char *bits)
{
	int error = 0;

	for (size_t done = 0; done < nr && !error; done += READ_PAGES) {
		size_t some = nr - done < READ_PAGES ? nr - done : READ_PAGES;

		error = read_some_pages(process, addr + done * REMOTE_PAGE,
					some, bits + done);
	}
	return error;
}

bool remote_is_there(const struct remote_process *process)
{
	unsigned char bits;

	return !remote_read_pages(process, REMOTE_PAGE, 1, &bits);
}

static int make_range(int memory, uintptr_t addr, size_t len)
{
	struct ktask_mem range = {
		.size = sizeof(range),
		.flags = KTASK_MEM_WRITE | KTASK_MEM_FD | KTASK_MEM_AHEAD,
		.addr = addr,
		.len = len,
		.fd = memory,
		/* This thread is a helper already. */
		.max_threads = 1,
	};

	return ioctl(device_fd, KTASK_IOC_POPULATE, &range) ? -errno : 0;
}

int remote_make_pages(const struct remote_process *process, uintptr_t addr,
		      size_t nr)
{
	return make_range(process->memory, addr, nr * REMOTE_PAGE);
}

int remote_node(const struct remote_process *process, uintptr_t addr)
{
	void *page = (void *)addr;
	int node = -1;

	if (!has_nodes ||
	    syscall(SYS_move_pages, process->pid, 1ul, &page, NULL, &node, 0))
		return -1;
	return node < 0 ? -1 : node;
}

/* Joins neighbours, which the kernel keeps apart for reasons of its own, to one area. */
struct area_search {
	void (*found)(void *arg, uintptr_t start, uintptr_t end);
	void *arg;
	uintptr_t start, end;
};

static void end_area(struct area_search *search)
{
	if (search->end - search->start >= REMOTE_LEAST_BYTES)
		search->found(search->arg, search->start, search->end);
}

static void add_line(struct area_search *search, const struct maps_line *line)
{
	if (!line->readable || !line->writable || line->shared || line->file ||
	    !strncmp(line->name, "[stack", strlen("[stack")))
		return;
	if (line->start != search->end) {
		end_area(search);
		search->start = line->start;
	}
	search->end = line->end;
}

bool remote_find_areas(const struct remote_process *process,
		       void (*found)(void *arg, uintptr_t start, uintptr_t end),
		       void *arg)
{
	struct area_search search = { found, arg, 0, 0 };
	struct file_lines lines;
	bool shim = false, some = false;
	int fd = open_file(process->pid, "maps", O_RDONLY);
	struct maps_line line;
	const char *text;

	if (fd < 0)
		return false;
	file_lines_begin(&lines, fd, MAPS_BYTES);
	lines.cuts = true;
	while (!shim && (text = file_lines_next(&lines))) {
		shim = strstr(text, SHIM);
		if (!maps_line_parse(text, &line))
			continue;
		some = true;
		add_line(&search, &line);
	}
	file_lines_end(&lines);
	end_area(&search);
	return some && !shim;
}

/* Make a page of this process by the device.  Return: NULL, or what failed. */
static const char *try_request(void)
{
	int memory = open_file(getpid(), "mem", O_RDWR), error = -errno;
	void *page = mmap(NULL, REMOTE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory >= 0 && page != MAP_FAILED)
		error = make_range(memory, (uintptr_t)page, REMOTE_PAGE);
	if (memory >= 0)
		close(memory);
	if (page != MAP_FAILED)
		munmap(page, REMOTE_PAGE);
	if (error == -EINVAL)
		return "the module is of an older version";
	return error ? strerror(-error) : NULL;
}

const char *remote_init(void)
{
	char nodes[64] = "";

	if (sysconf(_SC_PAGESIZE) != (long)REMOTE_PAGE)
		return "pages are not of 4 KiB";
	device_fd = open("/dev/ktask", O_RDWR | O_CLOEXEC);
	if (device_fd < 0)
		return errno == ENOENT ? "there is none: load the module ktask "
					 "(modprobe ktask)"
				       : strerror(errno);
	file_text("/sys/devices/system/node/has_memory", nodes, sizeof(nodes));
	has_nodes = strpbrk(nodes, ",-");
	return try_request();
}
