/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large calls on a bad day: each system call that they or the library need is
 * refused in turn, with each error that a kernel may give, and each resource
 * is limited.  A child for every combination prints what the calls returned,
 * which pages there are and what they hold: the same with and without the shim.
 *
 *	refused-cases filters FIRST STEP | limits | allocate N
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "probe.h"
#include "refuse.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define LEN SIZE_BYTES
#define NR(array) (sizeof(array) / sizeof(*(array)))

static int file_fd, memory_fd;

/* Not by way of malloc: memory may be what is refused. */
static unsigned char resident[LEN / PAGE_BYTES];

static void print_call(const char *name, long rc, void *addr)
{
	size_t nr = 0;
	uint64_t sum = 0;

	print_outcome(name, rc, errno);
	if (addr != MAP_FAILED && !mincore(addr, LEN, resident))
		for (size_t i = 0; i < LEN / PAGE_BYTES; i++)
			if (resident[i] & 1)
				nr++;
	printf(" resident=%zu", nr);
	/* Looking makes pages, so behind the count. */
	for (size_t pos = 0; addr != MAP_FAILED && pos < LEN; pos += PAGE_BYTES)
		sum = sum * 31 + *(volatile uint64_t *)((char *)addr + pos);
	printf(" sum=%lx\n", (unsigned long)sum);
}

static void *map_and_print(const char *name, int flags, int fd)
{
	void *addr;

	errno = ERRNO_MARK;
	addr = mmap(NULL, LEN, RW, flags, fd, 0);
	print_call(name, addr == MAP_FAILED ? -1 : 0, addr);
	return addr;
}

#define TRY(name, call, addr)                \
	do {                                 \
		long rc_;                    \
		errno = ERRNO_MARK;          \
		rc_ = (call);                \
		print_call(name, rc_, addr); \
	} while (0)

static void fill_pages(char *addr)
{
	for (size_t pos = 0; addr != MAP_FAILED && pos < LEN; pos += PAGE_BYTES)
		*(uint64_t *)(addr + pos) = pos + 3;
}

static void make_calls(void)
{
	char *plain = mmap(NULL, LEN, RW, ANON, -1, 0), *addr;

	addr = map_and_print("populate", ANON | MAP_POPULATE, -1);
	fill_pages(addr);
	TRY("mlock", mlock(addr, LEN), addr);
	TRY("munlock", munlock(addr, LEN), addr);
	TRY("DONTNEED", madvise(addr, LEN, MADV_DONTNEED), addr);
	TRY("POPULATE_WRITE", madvise(addr, LEN, MADV_POPULATE_WRITE), addr);
	fill_pages(addr);
	TRY("FREE", madvise(addr, LEN, MADV_FREE), MAP_FAILED);
	TRY("munmap", munmap(addr, LEN), MAP_FAILED);
	map_and_print("locked", ANON | MAP_LOCKED, -1);
	map_and_print("file", MAP_SHARED | MAP_POPULATE, file_fd);
	map_and_print("private file", MAP_PRIVATE | MAP_LOCKED, file_fd);
	TRY("mlock2", mlock2(plain, LEN, 0), plain);
	TRY("mlockall", mlockall(MCL_CURRENT), plain);
	TRY("munlockall", munlockall(), MAP_FAILED);
	TRY("fallocate", fallocate(memory_fd, 0, 0, LEN), MAP_FAILED);
	TRY("posix_fallocate", posix_fallocate(memory_fd, 0, LEN), MAP_FAILED);
}

static const struct {
	const char *name;
	int number;
} refused[] = {
	{ "madvise", SYS_madvise },
	{ "mlock", SYS_mlock },
	{ "mlock2", SYS_mlock2 },
	{ "mlockall", SYS_mlockall },
	{ "munlock", SYS_munlock },
	{ "munmap", SYS_munmap },
	{ "mmap", SYS_mmap },
	{ "mincore", SYS_mincore },
	{ "fallocate", SYS_fallocate },
	{ "ftruncate", SYS_ftruncate },
	{ "openat", SYS_openat },
	{ "read", SYS_read },
	{ "ioctl", SYS_ioctl },
	{ "clone3", SYS_clone3 },
	{ "clone", SYS_clone },
	{ "mprotect", SYS_mprotect },
	{ "get_mempolicy", SYS_get_mempolicy },
	{ "sched_getaffinity", SYS_sched_getaffinity },
	{ "sched_setaffinity", SYS_sched_setaffinity },
	{ "sched_setattr", SYS_sched_setattr },
	{ "prlimit64", SYS_prlimit64 },
	{ "rt_sigaction", SYS_rt_sigaction },
	{ "getrusage", SYS_getrusage },
	{ "set_robust_list", SYS_set_robust_list },
};

static const int errors[] = { EPERM, ENOMEM, EAGAIN, ENOSYS, EFAULT, EINVAL };

/* In a child: the parent tells how it ended. */
static void in_child(void (*prepare)(size_t), size_t what)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		/* Its buffer may not be had any more later. */
		static char buffer[1 << 16];

		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
		file_fd = patterned_file(LEN);
		memory_fd = memfd_create("refused", MFD_CLOEXEC);
		prepare(what);
		make_calls();
		exit(0);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	printf("status %x\n\n", (unsigned)status);
}

/* The shim is told, and goes on: a refusal kills nobody. */
static void prepare_filter(size_t what)
{
	must_hold(refuse_whole((unsigned)refused[what / NR(errors)].number,
			       (unsigned)errors[what % NR(errors)]),
		  "filter");
}

static void with_filters(size_t first, size_t step)
{
	for (size_t i = first; i < NR(refused) * NR(errors); i += step) {
		printf("%s: %s\n", refused[i / NR(errors)].name,
		       strerrorname_np(errors[i % NR(errors)]));
		in_child(prepare_filter, i);
	}
}

static const struct {
	const char *name;
	int resource;
	rlim_t limit;
	int as_nobody;
} limits[] = {
	{ "AS, less than a mapping", RLIMIT_AS, LEN / 2, 0 },
	{ "AS, two mappings", RLIMIT_AS, 3 * LEN, 0 },
	{ "DATA", RLIMIT_DATA, LEN + LEN / 2, 0 },
	{ "MEMLOCK, nothing", RLIMIT_MEMLOCK, 0, 1 },
	{ "MEMLOCK, half", RLIMIT_MEMLOCK, LEN / 2, 1 },
	{ "MEMLOCK, all but a page", RLIMIT_MEMLOCK, LEN - PAGE_BYTES, 1 },
	{ "MEMLOCK, all", RLIMIT_MEMLOCK, LEN, 1 },
	{ "NPROC", RLIMIT_NPROC, 1, 1 },
	{ "NOFILE", RLIMIT_NOFILE, 3, 0 },
	{ "FSIZE", RLIMIT_FSIZE, LEN / 2, 0 },
	{ "STACK", RLIMIT_STACK, 64 * 1024, 0 },
};

static void prepare_limit(size_t what)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	must_hold(!getrlimit(limits[what].resource, &limit), "getrlimit");
	limit.rlim_cur = limits[what].limit;
	if (limits[what].as_nobody && !geteuid())
		must_hold(!setresgid(65534, 65534, 65534) &&
				  !setresuid(65534, 65534, 65534),
			  "setresuid");
	if (setrlimit(limits[what].resource, &limit))
		puts("may not be set");
}

static void with_limits(void)
{
	for (size_t i = 0; i < NR(limits); i++) {
		printf("%s\n", limits[i].name);
		in_child(prepare_limit, i);
	}
}

/* Until somebody kills it, or it is told that there is no more. */
static int allocate_mib(size_t mib)
{
	size_t len = mib << 20;
	char *addr = mmap(NULL, len, RW, ANON | MAP_POPULATE, -1, 0);

	printf("populate: %d\n", addr == MAP_FAILED);
	fflush(stdout);
	for (size_t pos = 0; pos < len; pos += PAGE_BYTES)
		addr[pos] = 1;
	puts("touched");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "filters"))
		with_filters(strtoul(argv[2], NULL, 10),
			     strtoul(argv[3], NULL, 10));
	else if (argc > 1 && !strcmp(argv[1], "limits"))
		with_limits();
	else if (argc > 2 && !strcmp(argv[1], "allocate"))
		return allocate_mib(strtoul(argv[2], NULL, 10));
	else
		return 2;
	return 0;
}
