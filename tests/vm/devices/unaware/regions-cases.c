/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that knows nothing of ktask and registers memory with an RDMA device, in
 * good cases and bad, described line by line.  The same text must come out with the
 * shim and without it.
 *
 *	regions-cases		what comes of each case
 *	regions-cases ROUNDS	how long absent and present memory takes, in turns
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

#define LOCAL_WRITE 1

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

static void add_region(const char *name, char *at, size_t len, int access)
{
	struct ibv_mr *mr;

	errno = 99;
	mr = ibv_reg_mr(pd, at, len, access);
	printf("%s: %s, errno %d, %ld KiB pinned\n", name,
	       mr ? "registered" : "refused", mr ? 0 : errno,
	       status_kib("VmPin:"));
	if (mr)
		printf("%s: taken back %d, %ld KiB pinned\n", name,
		       ibv_dereg_mr(mr), status_kib("VmPin:"));
	fflush(stdout);
}

static void add_and_unmap(const char *name, char *at, int access)
{
	add_region(name, at, LEN, access);
	munmap(at, LEN);
}

static void add_hole(const char *name, size_t hole)
{
	add_and_unmap(name, map_with_hole(hole), LOCAL_WRITE);
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
	must_hold(!setuid(65534), "setuid");
	add_region("beyond a limit", at, LEN, LOCAL_WRITE);
	add_region("up to a limit", at, LEN / 2, LOCAL_WRITE);
}

static void tell_cases(void)
{
	int fd = open("/tmp/unaware", O_RDWR | O_CREAT | O_TRUNC, 0600);

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)LEN), "a file");
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
	add_hole("a hole at 0 KiB", 0);
	add_hole("a hole at 16384 KiB", LEN / 2);
	add_hole("a hole at 32764 KiB", LEN - PAGE);
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

	must_hold(at != MAP_FAILED, "mmap");
	madvise(at, len, MADV_NOHUGEPAGE);
	if (present)
		memset(at, 1, len);
	start = seconds_now();
	mr = ibv_reg_mr(pd, at, len, LOCAL_WRITE);
	printf("%s %.6f\n", name, seconds_now() - start);
	must_hold(mr && !ibv_dereg_mr(mr), "registering");
	munmap(at, len);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;

	must_hold(context && (pd = ibv_alloc_pd(context)),
		  "opening the device");
	if (argc < 2)
		tell_cases();
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		time_region("absent", 0);
		time_region("present", 1);
	}
	return 0;
}
