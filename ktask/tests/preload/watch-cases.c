/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs for which memory must not be made present, or not all of it: they
 * handle their own page faults, ask what is present, or map without end.
 *
 *	fault syscall|device	a thread fills each page that is first touched
 *	holes			the same of a mapping with many holes
 *	asks			how many pages are present: mapped, then locked
 *	endless HOW SIZE COUNT	COUNT mappings of SIZE MiB, one after another:
 *		touched		each is touched before the next
 *		untouched	none is
 *		trimmed		none is, and each loses its last page
 *		waiting		none is, and each is made before the next
 *		half		the first half of them are touched, and all lie apart
 *	pair FIRST SECOND	mappings of so many MiB: how many pages of the first are
 *				present then
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "probe.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

#define RW (PROT_READ | PROT_WRITE)
#define NR_FAULTS 3
#define FILL 0x5a
#define TRIMMED_BYTES (SIZE_BYTES - PAGE_BYTES)
/* So long helpers are waited for. */
#define WAIT_MS 300

static int open_faults(const char *how)
{
	struct uffdio_api api = { .api = UFFD_API };
	int device, fd;

	if (!strcmp(how, "device")) {
		device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
		fd = device < 0 ? -1
				: ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	} else {
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	}
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
		puts("none");
		exit(0);
	}
	return fd;
}

static void register_range(int fd, char *addr, size_t len)
{
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)addr, .len = len },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	must_hold(!ioctl(fd, UFFDIO_REGISTER, &range), "register");
}

static void *fill_pages(void *arg)
{
	static char page[PAGE_BYTES] __attribute__((aligned(4096)));
	int fd = *(int *)arg;
	struct uffd_msg msg;

	memset(page, FILL, sizeof(page));
	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = {
			.dst = msg.arg.pagefault.address & ~(PAGE_BYTES - 1),
			.src = (uintptr_t)page,
			.len = PAGE_BYTES,
		};

		must_hold(!ioctl(fd, UFFDIO_COPY, &copy), "copy");
	}
	return NULL;
}

/* Mapped before anything tells that faults will be handled, and after. */
static int case_fault(const char *how)
{
	char *before =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared =
		mmap(NULL, SIZE_BYTES, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *trimmed =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shrunk =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *holed =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *after;
	pthread_t thread;
	int fd;

	madvise(before, SIZE_BYTES, MADV_NOHUGEPAGE);
	munmap(trimmed + TRIMMED_BYTES, PAGE_BYTES);
	must_hold(mremap(shrunk, SIZE_BYTES, TRIMMED_BYTES, 0) == shrunk,
		  "mremap");
	madvise(holed + SIZE_BYTES / 2, PAGE_BYTES, MADV_DONTNEED);
	/* What the program wrote itself must be there still. */
	before[5 * PAGE_BYTES] = 1;
	fd = open_faults(how);
	after = mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	register_range(fd, before, SIZE_BYTES);
	register_range(fd, shared, SIZE_BYTES);
	register_range(fd, trimmed, TRIMMED_BYTES);
	register_range(fd, shrunk, TRIMMED_BYTES);
	register_range(fd, holed, SIZE_BYTES);
	register_range(fd, after, SIZE_BYTES);
	must_hold(!pthread_create(&thread, NULL, fill_pages, &fd), "thread");
	printf("before %d %d %d\n", before[0], before[5 * PAGE_BYTES],
	       before[SIZE_BYTES - 1]);
	printf("shared %d %d\n", shared[0], shared[SIZE_BYTES - 1]);
	printf("trimmed %d %d\n", trimmed[0], trimmed[TRIMMED_BYTES - 1]);
	printf("shrunk %d %d\n", shrunk[0], shrunk[TRIMMED_BYTES - 1]);
	printf("holed %d %d %d\n", holed[0], holed[SIZE_BYTES / 2],
	       holed[SIZE_BYTES - 1]);
	printf("after %d %d\n", after[0], after[SIZE_BYTES - 1]);
	fflush(stdout);
	_exit(0);
}

#define NR_HOLES 400

/* Between many holes, and then in what is left of them: faults come from all that was
 * never touched. */
static int case_holes(void)
{
	size_t distance = SIZE_BYTES / NR_HOLES & ~(PAGE_BYTES - 1);
	char *base =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	size_t wrong = 0;
	int fd;

	must_hold(base != MAP_FAILED, "mmap");
	madvise(base, SIZE_BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < NR_HOLES; i++)
		must_hold(!munmap(base + i * distance, PAGE_BYTES), "munmap");
	fd = open_faults("syscall");
	for (size_t i = 0; i < NR_HOLES; i++)
		register_range(fd, base + i * distance + PAGE_BYTES,
			       distance - PAGE_BYTES);
	must_hold(!pthread_create(&thread, NULL, fill_pages, &fd), "thread");
	for (size_t i = 0; i < NR_HOLES; i++)
		wrong += base[i * distance + PAGE_BYTES] != FILL;
	printf("%zu without a fault\n", wrong);
	fflush(stdout);
	_exit(0);
}

static int case_asks(void)
{
	char *addr =
		mmap(NULL, SIZE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t mapped = resident_pages(addr, SIZE_BYTES);

	mlock(addr, SIZE_BYTES);
	printf("%zu %zu\n", mapped, resident_pages(addr, SIZE_BYTES));
	return 0;
}

static long present_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void await_pages(char *addr, size_t len)
{
	for (int i = 0; i < WAIT_MS; i++) {
		if (resident_pages(addr, len) == len / PAGE_BYTES)
			return;
		usleep(1000);
	}
}

static char *map_memory(void *addr, size_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0);

	addr = mmap(addr, len, RW, flags, -1, 0);
	must_hold(addr != MAP_FAILED, "mmap");
	return addr;
}

static int case_endless(const char *how, size_t len, int nr)
{
	int half = !strcmp(how, "half");
	long most = 0;

	for (int i = 0; i < nr; i++) {
		char *addr = map_memory(half ? guarded_space(len) : NULL, len);
		long now;

		if (!strcmp(how, "touched") || (half && i < nr / 2))
			memset(addr, 1, len);
		if (!strcmp(how, "trimmed"))
			munmap(addr + len - PAGE_BYTES, PAGE_BYTES);
		if (!strcmp(how, "waiting"))
			await_pages(addr, len);
		now = present_kib();
		most = now > most ? now : most;
	}
	printf("%ld\n", most);
	return 0;
}

static int case_pair(size_t first_len, size_t second_len)
{
	char *first = map_memory(NULL, first_len);

	map_memory(NULL, second_len);
	printf("%zu\n", resident_pages(first, first_len));
	return 0;
}

static size_t parse_mib(const char *text)
{
	return (size_t)atol(text) << 20;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fault"))
		return case_fault(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "holes"))
		return case_holes();
	if (argc == 2 && !strcmp(argv[1], "asks"))
		return case_asks();
	if (argc == 4 && !strcmp(argv[1], "pair"))
		return case_pair(parse_mib(argv[2]), parse_mib(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "endless"))
		return case_endless(argv[2], parse_mib(argv[3]), atoi(argv[4]));
	return 2;
}
