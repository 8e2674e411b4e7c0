/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Warms a process: makes present what it has mapped and not yet touched, so that
 * a database that was just started waits for no page.  Nothing of it is changed.
 *
 *	cc -o warm warm.c $(pkg-config --cflags --libs ktask)
 *	./warm PID	by who may ptrace it, and may open /dev/ktask (man 4 ktask)
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/ktask.h>

#define MIB ((uint64_t)1 << 20)

struct warmed {
	uint64_t bytes;
	unsigned threads; /* the most of all requests */
	unsigned
		refused; /* mappings that cannot be populated: devices and such */
};

static int open_of(const char *pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		perror(path);
	return fd;
}

/* For reading: what is shared stays so. */
static void warm_page_tables(int device, int mem, uint64_t start, uint64_t end,
			     struct warmed *sum)
{
	struct ktask_mem range = {
		.size = sizeof(range),
		.flags = KTASK_MEM_FD,
		.addr = start,
		.len = end - start,
		.fd = mem,
	};

	if (ioctl(device, KTASK_IOC_POPULATE, &range)) {
		sum->refused++;
		return;
	}
	sum->bytes += range.len;
	if (range.threads > sum->threads)
		sum->threads = range.threads;
}

static void warm_all(int device, int mem, FILE *maps, struct warmed *sum)
{
	char line[8192], readable; /* a path is 4096 at most */
	uint64_t start, end;

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &start, &end,
			   &readable) == 3 &&
		    readable == 'r')
			warm_page_tables(device, mem, start, end, sum);
	}
}

int main(int argc, char **argv)
{
	const char *pid = argc > 1 ? argv[1] : "self";
	int device = open("/dev/ktask", O_RDWR | O_CLOEXEC), mem, maps;
	struct warmed sum = { 0, 0, 0 };
	FILE *list;

	if (device < 0) {
		perror("warm: /dev/ktask");
		return argc > 1;
	}
	mem = open_of(pid, "mem");
	maps = open_of(pid, "maps");
	list = maps < 0 ? NULL : fdopen(maps, "r");
	if (mem < 0 || !list)
		return 1;
	warm_all(device, mem, list, &sum);
	printf("%" PRIu64 " MiB are present, up to %u threads, %u mappings "
	       "refused\n",
	       sum.bytes / MIB, sum.threads, sum.refused);
	fclose(list);
	close(mem);
	close(device);
	return 0;
}
