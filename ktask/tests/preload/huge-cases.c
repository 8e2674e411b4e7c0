/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * hugetlb pages: files that are allocated by fallocate and posix_fallocate,
 * memory that is mapped, from a pool that may be too small.  Described line by
 * line; the same text must come out with and without the shim.
 *
 * Not asked for: pages near the end of all file positions.  Linux 6.18 gives
 * them, and has a BUG (fs/inode.c, in evict()) when the file is closed.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "probe.h"
#include "refuse.h"

#define HUGE_BYTES ((size_t)2 << 20)
#define FILE_BYTES (8 * HUGE_BYTES)
#define RW (PROT_READ | PROT_WRITE)

static long pages_of_pool(const char *what)
{
	char path[96];
	long nr = -1;
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/hugepages/hugepages-2048kB/%s_hugepages",
		 what);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &nr) != 1)
		nr = -1;
	if (file)
		fclose(file);
	return nr;
}

static long free_pages(void)
{
	return pages_of_pool("free");
}

static int huge_file(size_t size)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)size), "memfd");
	return fd;
}

static void print_file(int fd)
{
	struct stat file;

	must_hold(!fstat(fd, &file), "fstat");
	printf(" size=%ld blocks=%ld free=%ld", (long)file.st_size,
	       (long)file.st_blocks, free_pages());
}

/* What is in a file stays, wherever it is allocated again. */
static void print_words(int fd)
{
	struct stat file;
	char *base;

	must_hold(!fstat(fd, &file), "fstat");
	base = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return;
	for (size_t pos = 0; pos < HUGE_BYTES && (off_t)pos < file.st_size;
	     pos += HUGE_BYTES)
		printf(" first=%d", base[pos]);
	munmap(base,
	       ((size_t)file.st_size + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
}

static void allocate_file(const char *name, int how, size_t size, off_t offset,
			  off_t len)
{
	int fd = huge_file(size), rc;
	char *first = mmap(NULL, HUGE_BYTES, RW, MAP_SHARED, fd, 0);

	if (size && first != MAP_FAILED && !madvise(first, HUGE_BYTES, 23))
		*first = 7;
	errno = ERRNO_MARK;
	if (how < 0)
		rc = posix_fallocate(fd, offset, len);
	else
		rc = fallocate(fd, how, offset, len);
	print_outcome(name, rc, errno);
	print_file(fd);
	if (size)
		print_words(fd);
	putchar('\n');
	if (first != MAP_FAILED)
		munmap(first, HUGE_BYTES);
	close(fd);
}

static void allocate_limited(void)
{
	struct rlimit limit = { 4 * HUGE_BYTES, RLIM_INFINITY }, old;

	must_hold(!getrlimit(RLIMIT_FSIZE, &old), "getrlimit");
	limit.rlim_max = old.rlim_max;
	must_hold(!setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
	signal(SIGXFSZ, SIG_IGN);
	allocate_file("beyond the limit of files", 0, HUGE_BYTES, 0,
		      (off_t)FILE_BYTES);
	must_hold(!setrlimit(RLIMIT_FSIZE, &old), "setrlimit");
}

static void map_huge(const char *name, size_t len, int prot, int flags)
{
	char *base;

	errno = ERRNO_MARK;
	base = mmap(NULL, len, prot, flags | MAP_ANONYMOUS | MAP_HUGETLB, -1,
		    0);
	print_outcome(name, base == MAP_FAILED ? -1 : 0, errno);
	if (base != MAP_FAILED) {
		print_pages(base, len);
		if (flags & MAP_POPULATE && free_pages() > 0)
			print_contents(base, len);
		printf(" unmap=%d", munmap(base, (len + HUGE_BYTES - 1) &
							 ~(HUGE_BYTES - 1)));
	}
	printf(" free=%ld\n", free_pages());
}

static void read_only_descriptor(void)
{
	char path[64];
	int fd = huge_file(HUGE_BYTES), other, rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_CLOEXEC);
	must_hold(other >= 0, "open");
	errno = ERRNO_MARK;
	rc = fallocate(other, 0, 0, (off_t)FILE_BYTES);
	print_outcome("read only descriptor", rc, errno);
	print_file(fd);
	putchar('\n');
	close(other);
	close(fd);
}

/*
 * Somebody else makes the file longer and writes to it, when it has just been
 * looked at: by the shim, or else, as the plain call looks at nothing, behind
 * the call.  What the call was to allocate is there in any case, or refused.
 */
static int watched = -1;

static void grow_and_write(int fd, size_t size)
{
	char *last;

	watched = -1;
	must_hold(!ftruncate(fd, (off_t)size), "growing");
	last = mmap(NULL, HUGE_BYTES, RW, MAP_SHARED, fd,
		    (off_t)(size - HUGE_BYTES));
	must_hold(last != MAP_FAILED, "mapping what has grown");
	*last = 9;
	munmap(last, HUGE_BYTES);
}

static size_t grows_to;

/* The shim's, and our own. */
#define SEEN_BY_LIBRARIES __attribute__((visibility("default")))

SEEN_BY_LIBRARIES int fstat(int fd, struct stat *file)
{
	int rc = (int)syscall(SYS_newfstatat, fd, "", file, AT_EMPTY_PATH);

	if (rc == 0 && fd == watched)
		grow_and_write(fd, grows_to);
	return rc;
}

SEEN_BY_LIBRARIES int fstat64(int fd, struct stat64 *file)
{
	return fstat(fd, (struct stat *)file);
}

static void beside_another(const char *name, size_t others, off_t len)
{
	int fd = huge_file(0), rc;
	struct stat file;
	char *last;

	grows_to = others;
	watched = fd;
	errno = ERRNO_MARK;
	rc = fallocate(fd, 0, 0, len);
	print_outcome(name, rc, errno);
	if (watched >= 0)
		grow_and_write(fd, others);
	must_hold(!fstat(fd, &file), "fstat");
	printf(" size=%ld", (long)file.st_size);
	last = mmap(NULL, HUGE_BYTES, PROT_READ, MAP_SHARED, fd,
		    (off_t)(others - HUGE_BYTES));
	must_hold(last != MAP_FAILED, "mapping");
	printf(" last=%d\n", *last);
	munmap(last, HUGE_BYTES);
	close(fd);
}

static void allocate_sealed(void)
{
	int fd = memfd_create("huge",
			      MFD_CLOEXEC | MFD_HUGETLB | MFD_ALLOW_SEALING);
	int rc;

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)HUGE_BYTES) &&
			  !fcntl(fd, F_ADD_SEALS, F_SEAL_GROW),
		  "sealed memfd");
	errno = ERRNO_MARK;
	rc = fallocate(fd, 0, 0, (off_t)FILE_BYTES);
	print_outcome("sealed against growing", rc, errno);
	print_file(fd);
	putchar('\n');
	close(fd);
}

/* As some sandboxes do.  What was mapped to try it out must be gone. */
static void locked_without_mlock2(void)
{
	must_hold(refuse_whole(SYS_mlock2, EPERM), "filter");
	map_huge("locked without mlock2", FILE_BYTES, RW,
		 MAP_PRIVATE | MAP_LOCKED);
	printf("reserved=%ld\n", pages_of_pool("resv"));
}

int main(void)
{
	const off_t len = (off_t)FILE_BYTES;

	allocate_file("new file", 0, 0, 0, len);
	allocate_file("longer", 0, HUGE_BYTES, 0, len);
	allocate_file("as long", 0, FILE_BYTES, 0, len);
	allocate_file("size kept", 1, HUGE_BYTES, 0, len);
	allocate_file("hole punched", 3, FILE_BYTES, 0, len);
	allocate_file("in the middle", 0, HUGE_BYTES, (off_t)HUGE_BYTES * 3 + 5,
		      len - 4711);
	allocate_file("in the middle, whole pages", 0, HUGE_BYTES,
		      (off_t)HUGE_BYTES * 3, len);
	allocate_file("posix, odd length", -1, HUGE_BYTES, 5, len);
	allocate_file("posix", -1, HUGE_BYTES, 0, len);
	allocate_file("posix, negative", -1, HUGE_BYTES, -1, len);
	allocate_file("no length", 0, HUGE_BYTES, 0, 0);
	allocate_file("unknown mode", 0x4000, HUGE_BYTES, 0, len);
	allocate_limited();
	read_only_descriptor();
	allocate_sealed();
	/* Where the plain call takes the last page none is left to write to. */
	if (free_pages() > 10)
		beside_another("grown by another", 2 * FILE_BYTES, len);
	if (free_pages() > 1)
		beside_another("grown, and more is wanted than there is",
			       HUGE_BYTES, 64 * len);
	map_huge("private", FILE_BYTES, RW, MAP_PRIVATE | MAP_POPULATE);
	map_huge("shared", FILE_BYTES, RW, MAP_SHARED | MAP_POPULATE);
	map_huge("odd length", FILE_BYTES - 4711, RW,
		 MAP_PRIVATE | MAP_POPULATE);
	map_huge("locked", FILE_BYTES, RW, MAP_PRIVATE | MAP_LOCKED);
	map_huge("read only", FILE_BYTES, PROT_READ,
		 MAP_PRIVATE | MAP_POPULATE);
	map_huge("not reserved", FILE_BYTES, RW,
		 MAP_PRIVATE | MAP_POPULATE | MAP_NORESERVE);
	map_huge("more than there is", 64 * FILE_BYTES, RW,
		 MAP_PRIVATE | MAP_POPULATE);
	locked_without_mlock2();
	return 0;
}
