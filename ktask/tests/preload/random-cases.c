/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A random sequence of memory calls, valid and invalid, over one arena; after
 * each call what it returned, and every mapping of the arena with the kernel's
 * account of it; now and then the contents.  The same text must come out with
 * and without the shim.
 *
 * random-cases SEED NR_CALLS [account|contents] [huge]
 *
 * contents: leaves out what pages there are, and looks at all that can be read.
 * huge: with files of huge pages, if the machine has a pool of these.
 *
 * Deterministic by design: transparent huge pages are off (whether there is
 * one depends on the machine), fields that say when pages were looked at are
 * left out, and so is advice that reclaims.  An odd seed gives up root, so that
 * RLIMIT_MEMLOCK counts.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mappings.h"
#include "probe.h"
#include "random_ranges.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define FILE_BYTES ((size_t)100 << 20)
#define MIB ((size_t)1 << 20)
/* Most pages of a call of move_pages(): more than the least that is taken. */
#define NR_MOVED 16384

static int file_fd, memory_fd, huge_fd = -1, own_pidfd;
static int contents_only;

static int one_in(size_t chances)
{
	return random_below(chances) == 0;
}

/* Mostly whole pages in the arena, of all sizes; sometimes anything. */
static struct range random_range(void)
{
	static const size_t most[] = { 64 * 1024, 4 * MIB, 16 * MIB, 160 * MIB,
				       ARENA_BYTES };
	size_t start = random_below(ARENA_BYTES / PAGE_BYTES) * PAGE_BYTES;
	size_t len =
		(1 + random_below(most[random_below(NR(most))] / PAGE_BYTES)) *
		PAGE_BYTES;

	if (one_in(2))
		start = start / MIB * MIB;
	if (len > ARENA_BYTES - start)
		len = ARENA_BYTES - start;
	if (one_in(20))
		len -= random_below(PAGE_BYTES);
	if (one_in(40))
		start += random_below(PAGE_BYTES);
	if (one_in(100))
		len = one_in(2) ? 0 : SIZE_MAX - random_below(3 * PAGE_BYTES);
	return (struct range){ ARENA + start, len };
}

static int random_prot(void)
{
	static const int prots[] = { PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE,
				     PROT_READ,
				     PROT_NONE,
				     PROT_WRITE,
				     PROT_READ | PROT_EXEC };

	return prots[random_below(NR(prots))];
}

static void try_mmap(struct range range)
{
	static const int kinds[] = { MAP_PRIVATE, MAP_PRIVATE, MAP_SHARED,
				     MAP_SHARED_VALIDATE, 0 };
	int flags = kinds[one_in(30) ? 4 : random_below(4)] | MAP_FIXED;
	int prot = random_prot(), fd = -1;
	off_t offset = 0;
	void *at;

	if (one_in(6))
		flags ^= MAP_FIXED | MAP_FIXED_NOREPLACE;
	if (one_in(4)) {
		fd = one_in(2) ? file_fd : memory_fd;
		if (huge_fd >= 0 && one_in(2))
			fd = huge_fd;
		offset = (off_t)(random_below(FILE_BYTES / MIB) * MIB);
	} else {
		flags |= MAP_ANONYMOUS;
	}
	flags |= one_in(2) ? MAP_POPULATE : 0;
	flags |= one_in(5) ? MAP_LOCKED : 0;
	flags |= one_in(6) ? MAP_NORESERVE : 0;
	flags |= one_in(20) ? MAP_NONBLOCK : 0;
	errno = ERRNO_MARK;
	at = one_in(4) ? mmap64(range.addr, range.len, prot, flags, fd, offset)
		       : mmap(range.addr, range.len, prot, flags, fd, offset);
	print_call("mmap", range, flags,
		   at == MAP_FAILED ? -1 : (char *)at - ARENA);
}

/* Where the kernel likes: only what comes back is looked at, not where. */
static void try_mmap_anywhere(struct range range)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *at;

	flags |= one_in(2) ? MAP_POPULATE : 0;
	flags |= one_in(2) ? MAP_LOCKED : 0;
	if (range.len > 32 * MIB && range.len < ARENA_BYTES)
		range.len = 32 * MIB;
	errno = ERRNO_MARK;
	at = mmap(NULL, range.len, PROT_READ | PROT_WRITE, flags, -1, 0);
	print_call("mmap anywhere", range, flags, at == MAP_FAILED ? -1 : 0);
	if (at == MAP_FAILED)
		return;
	if (!contents_only)
		printf(" resident=%zu\n", resident_pages(at, range.len));
	errno = ERRNO_MARK;
	print_call("munmap anywhere", range, 0, munmap(at, range.len));
}

static void try_munmap(struct range range)
{
	errno = ERRNO_MARK;
	print_call("munmap", range, 0, munmap(range.addr, range.len));
}

static void try_madvise(struct range range)
{
	static const int advices[] = { MADV_POPULATE_READ,
				       MADV_POPULATE_WRITE,
				       MADV_DONTNEED,
				       MADV_FREE,
				       MADV_POPULATE_READ,
				       MADV_POPULATE_WRITE,
				       MADV_DONTNEED,
				       24 /* DONTNEED_LOCKED */,
				       MADV_NORMAL,
				       MADV_RANDOM,
				       MADV_SEQUENTIAL,
				       MADV_WILLNEED,
				       MADV_REMOVE,
				       MADV_DONTFORK,
				       MADV_DOFORK,
				       MADV_DONTDUMP,
				       MADV_DODUMP,
				       MADV_WIPEONFORK,
				       MADV_KEEPONFORK,
				       99,
				       -1 };
	int advice = advices[one_in(3) ? random_below(NR(advices))
				       : random_below(8)];

	errno = ERRNO_MARK;
	print_call("madvise", range, advice,
		   madvise(range.addr, range.len, advice));
}

static void try_mlock(struct range range)
{
	errno = ERRNO_MARK;
	if (one_in(2))
		print_call("mlock", range, 0, mlock(range.addr, range.len));
	else if (one_in(2))
		print_call("mlock2", range, 0,
			   mlock2(range.addr, range.len, 0));
	else
		print_call("mlock2", range, 1,
			   mlock2(range.addr, range.len, 1));
}

static void try_munlock(struct range range)
{
	errno = ERRNO_MARK;
	print_call("munlock", range, 0, munlock(range.addr, range.len));
}

/* All of the process: given up again at once, the arena keeps its pages. */
static void try_mlockall(struct range range)
{
	static const int kinds[] = { MCL_CURRENT, MCL_CURRENT | MCL_FUTURE,
				     MCL_CURRENT | 4, 0, 8 };
	int flags = kinds[random_below(NR(kinds))];

	/* A limit counts the stacks of helpers, too: see ktask(1). */
	if (geteuid())
		return;
	errno = ERRNO_MARK;
	print_call("mlockall", range, flags, mlockall(flags));
	munlockall();
}

static void try_limit(struct range range)
{
	struct rlimit limit = { random_below(128 * MIB), RLIM_INFINITY };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = one_in(2) ? limit.rlim_max : random_below(96 * MIB);
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static void try_mprotect(struct range range)
{
	int prot = random_prot();

	errno = ERRNO_MARK;
	print_call("mprotect", range, prot,
		   mprotect(range.addr, range.len, prot));
}

static void try_fallocate(struct range range)
{
	static const int modes[] = { 0, 1 /* KEEP_SIZE */, 3 /* PUNCH_HOLE */,
				     16 /* ZERO_RANGE */, 99 };
	off_t offset = (off_t)random_below(FILE_BYTES);
	off_t len = (off_t)(range.len % (FILE_BYTES / 2)) - (one_in(9) ? 9 : 0);
	int fd = huge_fd >= 0 && one_in(2) ? huge_fd : memory_fd;
	int mode = modes[random_below(NR(modes))];
	struct stat file;

	if (one_in(12))
		fd = one_in(2) ? -1 : STDIN_FILENO;
	errno = ERRNO_MARK;
	if (one_in(2))
		print_call("fallocate", range, mode,
			   fallocate(fd, mode, offset, len));
	else if (one_in(2))
		print_call("fallocate64", range, mode,
			   fallocate64(fd, mode, offset, len));
	else if (one_in(2))
		print_call("posix_fallocate", range, 0,
			   posix_fallocate(fd, offset, len));
	else
		print_call("posix_fallocate64", range, 0,
			   posix_fallocate64(fd, offset, len));
	if (fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode))
		printf(" size=%ld blocks=%ld\n", (long)file.st_size,
		       (long)file.st_blocks);
}

/* What is under a mapping goes away, or comes. */
static void try_ftruncate(struct range range)
{
	off_t size = (off_t)(range.len % FILE_BYTES / MIB * MIB);
	int fd = huge_fd >= 0 && one_in(2) ? huge_fd : memory_fd;

	errno = ERRNO_MARK;
	print_call("ftruncate", range, 0, ftruncate(fd, size));
}

static void try_process_madvise(struct range range)
{
	static const int advices[] = { MADV_DONTNEED,
				       MADV_DONTNEED,
				       MADV_FREE,
				       24 /* DONTNEED_LOCKED */,
				       MADV_WILLNEED,
				       20 /* COLD */,
				       99 };
	int advice = advices[random_below(NR(advices))];
	struct iovec ranges[2] = { { range.addr, range.len },
				   { range.addr, PAGE_BYTES } };
	struct iovec *first = one_in(20) ? (struct iovec *)8 : ranges;
	size_t nr = one_in(4) ? random_below(3) : 1;
	int pidfd = one_in(10) ? 9999 : own_pidfd;

	errno = ERRNO_MARK;
	print_call(
		"process_madvise", range, advice,
		process_madvise(pidfd, first, nr, advice, one_in(20) ? 7 : 0));
}

/* A segment that is gone as soon as nothing has it attached. */
static void try_shmat(struct range range)
{
	int flags = (one_in(3) ? 0 : SHM_REMAP) | (one_in(4) ? SHM_RDONLY : 0);
	int id = shmget(IPC_PRIVATE, 4 * MIB + random_below(32 * MIB), 0600);
	void *at;

	must_hold(id >= 0, "shmget");
	errno = ERRNO_MARK;
	at = shmat(one_in(10) ? -1 : id, range.addr, flags);
	print_call("shmat", range, flags,
		   at == (void *)-1 ? -1 : (char *)at - ARENA);
	shmctl(id, IPC_RMID, NULL);
}

static void try_shmdt(struct range range)
{
	errno = ERRNO_MARK;
	print_call("shmdt", range, 0, shmdt(range.addr));
}

static void try_mremap(struct range range)
{
	struct range other = random_range();
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *at;

	/* Where the kernel would put it is not the same each time. */
	if (one_in(3))
		flags = 0;
	if (flags && one_in(4))
		flags |= 4; /* DONTUNMAP */
	errno = ERRNO_MARK;
	at = mremap(range.addr, range.len, one_in(2) ? range.len : other.len,
		    flags, other.addr);
	print_call("mremap", range, flags, at == MAP_FAILED ? -1 : at - ARENA);
}

/* On which of several nodes a page is, is the scheduler's business. */
static int hide_node(int status)
{
	return status >= 0 && status < 64 ? 0 : status;
}

/* Policies of memory, as libnuma asks for them. */
static void try_policy(struct range range)
{
	unsigned long node = one_in(8) ? 2 : 1;
	int mode = (int)random_below(6), flags = (int)random_below(8);
	int bind = one_in(2);
	void *pages[4] = { range.addr, range.addr + MIB, ARENA, (void *)8 };
	int nodes[4] = { 0, 0, one_in(3) ? 77 : 0, 0 };
	int status[4] = { 99, 99, 99, 99 };

	/* What the shim takes: MPOL_BIND, MPOL_MF_MOVE. */
	if (bind) {
		mode = 2;
		flags = 2;
	}
	errno = ERRNO_MARK;
	if (bind || one_in(3)) {
		print_call("mbind", range, mode << 4 | flags,
			   syscall(SYS_mbind, range.addr, range.len, mode,
				   &node, 64ul, flags));
		return;
	}
	print_call("move_pages", range, flags,
		   syscall(SYS_move_pages, 0, 4ul, pages,
			   one_in(2) ? nodes : NULL, status,
			   one_in(5) ? flags : 2));
	/* Which pages are there is the account's business. */
	if (!contents_only)
		printf(" %d %d %d %d\n", hide_node(status[0]),
		       hide_node(status[1]), hide_node(status[2]),
		       hide_node(status[3]));
}

/* Page by page of a range, mostly where they are; status from a mark on. */
static void try_move_pages(struct range range)
{
	static void *pages[NR_MOVED];
	static int nodes[NR_MOVED], status[NR_MOVED];
	size_t nr = range.len / PAGE_BYTES % NR_MOVED;
	int flags = one_in(10) ? (int)random_below(8) : 2;
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++) {
		pages[i] = range.addr + i * PAGE_BYTES;
		nodes[i] = 0;
		status[i] = 99;
	}
	if (nr && one_in(4))
		nodes[random_below(nr)] = one_in(2) ? 77 : -1;
	if (nr && one_in(4))
		pages[random_below(nr)] = one_in(2) ? ARENA : (void *)8;
	errno = ERRNO_MARK;
	print_call("move_pages", range, flags,
		   syscall(SYS_move_pages, one_in(20) ? 1 << 23 : 0, nr,
			   one_in(30) ? (void *)8 : pages,
			   one_in(4) ? NULL : nodes,
			   one_in(30) ? (void *)8 : status, flags));
	for (size_t i = 0; i < nr; i++)
		sum = (sum ^ (unsigned)hide_node(status[i])) * 1099511628211u;
	if (!contents_only)
		printf(" status=%016lx\n", sum);
}

/* Through the kernel, which refuses politely what cannot be written. */
static void try_write(struct range range)
{
	size_t nr = 1 + random_below(300), written = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t word = random_word();
		size_t page = random_below(range.len / PAGE_BYTES + 1);
		struct iovec from = { &word, sizeof(word) };
		struct iovec to = { ARENA + (page * PAGE_BYTES % ARENA_BYTES),
				    sizeof(word) };

		written += process_vm_writev(getpid(), &from, 1, &to, 1, 0) ==
			   sizeof(word);
	}
	printf("write: %zu of %zu\n", written, nr);
}

/* Only of pages that are there: looking would make the others. */
static void print_present(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t nr_pages = ARENA_BYTES / PAGE_BYTES, nr_present = 0;
	uint64_t sum = 0, *entries = calloc(nr_pages, 8);

	must_hold(fd >= 0 && entries, "pagemap");
	must_hold(pread(fd, entries, nr_pages * 8,
			(off_t)((uintptr_t)ARENA / PAGE_BYTES * 8)) ==
			  (ssize_t)(nr_pages * 8),
		  "pagemap");
	for (size_t i = 0; i < nr_pages; i++) {
		uint64_t word = 0;
		struct iovec to = { &word, sizeof(word) };
		struct iovec from = { ARENA + i * PAGE_BYTES, sizeof(word) };

		if (!contents_only && !(entries[i] >> 63))
			continue;
		process_vm_readv(getpid(), &to, 1, &from, 1, 0);
		if (contents_only && !word)
			continue;
		nr_present++;
		sum = (sum ^ word ^ i) * 1099511628211u;
	}
	printf("pages=%zu contents=%016lx\n", nr_present, sum);
	free(entries);
	close(fd);
}

static void (*const calls[])(struct range) = {
	try_mmap,
	try_mmap,
	try_mmap,
	try_mmap_anywhere,
	try_munmap,
	try_munmap,
	try_madvise,
	try_madvise,
	try_madvise,
	try_mlock,
	try_munlock,
	try_mlockall,
	try_limit,
	try_mprotect,
	try_fallocate,
	try_write,
	try_write,
	try_ftruncate,
	try_process_madvise,
	try_shmat,
	try_shmdt,
	try_mremap,
	try_policy,
	try_move_pages,
};

static int make_memory_file(void)
{
	int fd = memfd_create("random", MFD_CLOEXEC);

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)FILE_BYTES / 2), "memfd");
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	int nr_calls = argc > 2 ? atoi(argv[2]) : 40;

	contents_only = argc > 3 && !strcmp(argv[3], "contents");
	if (argc > 4 && !strcmp(argv[4], "huge"))
		huge_fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	own_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	seed_random(seed);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	file_fd = patterned_file(FILE_BYTES / 4);
	memory_fd = make_memory_file();
	if (seed & 1 && !geteuid())
		must_hold(!setresuid(65534, 65534, 65534) &&
				  !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0),
			  "giving up root");
	try_mmap((struct range){ ARENA, ARENA_BYTES });
	for (int i = 0; i < nr_calls; i++) {
		calls[random_below(NR(calls))](random_range());
		/* With pages or without, mappings are joined or not. */
		if (!contents_only)
			print_mappings(ARENA, ARENA_BYTES);
		if (i % 5 == 4)
			print_present();
	}
	return 0;
}
