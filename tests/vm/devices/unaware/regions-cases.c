/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that knows nothing of ktask and registers memory with an RDMA device, in
 * good cases and bad, described line by line.  The same text must come out with the
 * shim and without it.
 *
 *	regions-cases		what comes of each case
 *	regions-cases ROUNDS	how long absent and present memory takes, in turns
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define LEN (32 * MIB)
#define LOCAL_WRITE 1
#define RW (PROT_READ | PROT_WRITE)

struct ibv_context;
struct ibv_device;
struct ibv_pd;
struct ibv_mr;

struct ibv_device **ibv_get_device_list(int *nr);
struct ibv_context *ibv_open_device(struct ibv_device *device);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access);
int ibv_dereg_mr(struct ibv_mr *mr);

static struct ibv_pd *pd;

static void must(int done, const char *what)
{
	if (done)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static long pinned_kib(void)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (in && fgets(line, sizeof(line), in))
		sscanf(line, "VmPin: %ld", &kib);
	if (in)
		fclose(in);
	return kib;
}

static char *map_memory(int prot, int type, int fd)
{
	char *at = mmap(NULL, LEN, prot, type | (fd < 0 ? MAP_ANONYMOUS : 0),
			fd, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

static void add_region(const char *name, char *at, size_t len, int access)
{
	struct ibv_mr *mr;

	errno = 99;
	mr = ibv_reg_mr(pd, at, len, access);
	printf("%s: %s, errno %d, %ld KiB pinned\n", name,
	       mr ? "registered" : "refused", mr ? 0 : errno, pinned_kib());
	if (mr)
		printf("%s: taken back %d, %ld KiB pinned\n", name,
		       ibv_dereg_mr(mr), pinned_kib());
	fflush(stdout);
}

static void add_and_unmap(const char *name, char *at, int access)
{
	add_region(name, at, LEN, access);
	munmap(at, LEN);
}

static void add_hole(size_t hole)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);
	char name[40];

	munmap(at + hole, PAGE);
	snprintf(name, sizeof(name), "a hole at %zu KiB", hole / 1024);
	add_and_unmap(name, at, LOCAL_WRITE);
}

static void add_contents(void)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);
	size_t kept = 0;

	for (size_t pos = 0; pos < LEN; pos += 2 * PAGE)
		memset(at + pos, (int)(pos >> 13 & 127) | 1, PAGE);
	add_region("half of it present", at, LEN, LOCAL_WRITE);
	for (size_t pos = 0; pos < LEN; pos += 2 * PAGE)
		kept += at[pos] == (char)((pos >> 13 & 127) | 1) &&
			!at[pos + PAGE];
	printf("contents: %zu\n", kept);
	munmap(at, LEN);
}

static void add_beyond_limit(void)
{
	struct rlimit limit = { LEN / 2, LEN / 2 };
	char *at = map_memory(RW, MAP_PRIVATE, -1);

	setrlimit(RLIMIT_MEMLOCK, &limit);
	add_region("beyond a limit, as root", at, LEN, LOCAL_WRITE);
	must(!setuid(65534), "setuid");
	add_region("beyond a limit", at, LEN, LOCAL_WRITE);
	add_region("up to a limit", at, LEN / 2, LOCAL_WRITE);
}

static void tell_cases(void)
{
	int fd = open("/tmp/unaware", O_RDWR | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && !ftruncate(fd, (off_t)LEN), "a file");
	add_and_unmap("private", map_memory(RW, MAP_PRIVATE, -1), LOCAL_WRITE);
	add_and_unmap("shared", map_memory(RW, MAP_SHARED, -1), LOCAL_WRITE);
	add_and_unmap("for reading", map_memory(RW, MAP_PRIVATE, -1), 0);
	add_and_unmap("read only", map_memory(PROT_READ, MAP_PRIVATE, -1), 0);
	add_and_unmap("read only, to be written",
		      map_memory(PROT_READ, MAP_PRIVATE, -1), LOCAL_WRITE);
	add_and_unmap("nothing allowed", map_memory(PROT_NONE, MAP_PRIVATE, -1),
		      LOCAL_WRITE);
	add_and_unmap("a file", map_memory(RW, MAP_PRIVATE, fd), LOCAL_WRITE);
	add_and_unmap("bad access", map_memory(RW, MAP_PRIVATE, -1), 2);
	add_hole(0);
	add_hole(LEN / 2);
	add_hole(LEN - PAGE);
	add_contents();
	add_beyond_limit();
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void time_region(const char *name, int present)
{
	size_t len = 8 * LEN;
	char *at = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	double start;

	must(at != MAP_FAILED, "mmap");
	madvise(at, len, MADV_NOHUGEPAGE);
	if (present)
		memset(at, 1, len);
	start = seconds_now();
	mr = ibv_reg_mr(pd, at, len, LOCAL_WRITE);
	printf("%s %.6f\n", name, seconds_now() - start);
	must(mr && !ibv_dereg_mr(mr), "registering");
	munmap(at, len);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;

	must(context && (pd = ibv_alloc_pd(context)), "opening the device");
	if (argc < 2)
		tell_cases();
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		time_region("absent", 0);
		time_region("present", 1);
	}
	return 0;
}
