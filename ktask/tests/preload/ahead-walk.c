/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A random walk of a program that touches memory in order, and between the touches
 * changes what it has mapped: what each call returned, how many pages could be written,
 * and what is in them.  The same text must come out with and without the shim.
 *
 *	ahead-walk SEED NR_STEPS [unmoved | unadvised]
 *
 * unmoved: without mremap(); unadvised: without advice on the size of pages.  mremap()
 * refuses what is several mappings to the kernel.  Where the shim has advised huge pages
 * for a part, mremap() takes it all the same, also where the program's own advice on
 * another part would have had it refused.
 *
 * Deterministic by design: the addresses are fixed, and what is absent counts as zeros.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "random_ranges.h"
#include "touches.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* The arena has two. */
#define HALF (128 * MIB)
#define ARENA_BYTES (2 * HALF)
#define NR_PAGES (ARENA_BYTES / PAGE_BYTES)

static size_t cursor; /* where the next touches begin */
static bool is_unmoved, is_unadvised;

/* Some MiB, or pages, of the arena. */
static struct range random_range(size_t most)
{
	size_t unit = random_below(3) ? MIB : PAGE_BYTES;
	size_t start = random_below(ARENA_BYTES / unit) * unit;
	size_t len = (1 + random_below(most / unit)) * unit;

	if (len > ARENA_BYTES - start)
		len = ARENA_BYTES - start;
	return (struct range){ ARENA + start, len };
}

/* ---- touches ---- */

static sigjmp_buf after_fault;

static void leave_fault(int sig)
{
	siglongjmp(after_fault, 1);
}

static bool write_page(char *page, uint64_t word)
{
	if (sigsetjmp(after_fault, 0))
		return false;
	*(volatile uint64_t *)page = word;
	return true;
}

/* In order, with time for the watcher to begin a window after each block.  Return: whether
 * all could be written. */
static bool touch_blocks(size_t nr)
{
	size_t from = cursor, to = from + nr * BLOCK, written = 0;

	if (to > ARENA_BYTES)
		to = ARENA_BYTES;
	for (; cursor < to; cursor += PAGE_BYTES) {
		written +=
			write_page(ARENA + cursor, cursor * 2654435761u + nr);
		if (cursor % BLOCK == 0)
			sleep_ms(2);
	}
	printf("touch(%zx, %zx): %zu written\n", from, to, written);
	cursor %= ARENA_BYTES;
	return written == (to - from) / PAGE_BYTES;
}

static void try_touch(void)
{
	if (random_below(4) == 0)
		cursor = random_below(ARENA_BYTES / MIB) * MIB;
	touch_blocks(1 + random_below(12));
}

/* ---- what is there ---- */

/* Not of absent pages: to look would make them. */
static void print_words(void)
{
	static uint64_t entries[NR_PAGES];
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t nr = 0;
	uint64_t sum = 0;

	must_hold(fd >= 0 && pread(fd, entries, sizeof(entries),
				   (off_t)((uintptr_t)ARENA / PAGE_BYTES *
					   8)) == (ssize_t)sizeof(entries),
		  "pagemap");
	close(fd);
	for (size_t i = 0; i < NR_PAGES; i++) {
		uint64_t word = 0;
		struct iovec to = { &word, sizeof(word) };
		struct iovec from = { ARENA + i * PAGE_BYTES, sizeof(word) };

		if (!(entries[i] >> 62) ||
		    process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 ||
		    !word)
			continue;
		nr++;
		sum = (sum ^ word ^ i) * 1099511628211u;
	}
	printf("%zu pages, contents %016lx\n", nr, sum);
}

/* ---- changes ---- */

static void map_range(struct range range)
{
	void *at;

	errno = ERRNO_MARK;
	at = mmap(range.addr, range.len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	print_call("mmap", range, 0,
		   at == MAP_FAILED ? -1 : (char *)at - ARENA);
}

static void try_mmap(void)
{
	map_range(random_range(HALF));
}

static void try_munmap(void)
{
	struct range range = random_range(32 * MIB);

	errno = ERRNO_MARK;
	print_call("munmap", range, 0, munmap(range.addr, range.len));
}

static void try_madvise(void)
{
	/* Those on the size of pages come last. */
	static const int advices[] = { MADV_DONTNEED,	    MADV_DONTNEED,
				       MADV_FREE,	    MADV_WILLNEED,
				       MADV_POPULATE_WRITE, MADV_WIPEONFORK,
				       MADV_KEEPONFORK,	    MADV_HUGEPAGE,
				       MADV_NOHUGEPAGE };
	int advice =
		advices[random_below(NR(advices) - (is_unadvised ? 2 : 0))];
	struct range range = random_range(64 * MIB);

	errno = ERRNO_MARK;
	print_call("madvise", range, advice,
		   madvise(range.addr, range.len, advice));
}

/* Of what was just touched: elsewhere it depends on the pages that are there.  That the
 * kernel has no memory for it, or that a page is in use, is no difference. */
static void try_collapse(void)
{
	struct range range = { ARENA + cursor, 0 };
	size_t nr = 1 + random_below(8);
	int error = 0;

	if (!touch_blocks(nr))
		return;
	range.len =
		(cursor ? cursor : ARENA_BYTES) - (size_t)(range.addr - ARENA);
	if (madvise(range.addr, range.len, MADV_COLLAPSE))
		error = errno;
	errno = ERRNO_MARK;
	print_call("collapse", range, 0, error == EINVAL ? -1 : 0);
}

static void try_mprotect(void)
{
	static const int prots[] = { PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE, PROT_READ,
				     PROT_NONE };
	int prot = prots[random_below(NR(prots))];
	struct range range = random_range(64 * MIB);

	errno = ERRNO_MARK;
	print_call("mprotect", range, prot,
		   mprotect(range.addr, range.len, prot));
}

/* Within the arena: longer, shorter, or elsewhere. */
static void try_mremap(void)
{
	struct range range = random_range(64 * MIB);
	struct range other = random_range(64 * MIB);
	int flags = random_below(3) ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
	char *at;

	if (is_unmoved)
		return;
	if (flags && random_below(4) == 0)
		other.len = range.len;
	if (other.len > (size_t)(ARENA + ARENA_BYTES - other.addr))
		other.len = (size_t)(ARENA + ARENA_BYTES - other.addr);
	errno = ERRNO_MARK;
	at = mremap(range.addr, range.len, other.len, flags, other.addr);
	print_call("mremap", range, flags, at == MAP_FAILED ? -1 : at - ARENA);
}

/* The child goes on touching, and looks. */
static void try_fork(void)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	must_hold(child >= 0, "fork");
	if (!child) {
		touch_blocks(1 + random_below(4));
		print_words();
		exit(0);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	printf("fork: %x\n", (unsigned)status);
}

static void (*const steps[])(void) = {
	try_touch,    try_touch,    try_touch,	try_touch,   try_touch,
	try_touch,    try_mmap,	    try_munmap, try_madvise, try_madvise,
	try_collapse, try_mprotect, try_mremap, try_fork,
};

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = leave_fault,
				    .sa_flags = SA_NODEFER };
	int nr_steps = argc > 2 ? atoi(argv[2]) : 40;

	seed_random(argc > 1 ? strtoull(argv[1], NULL, 0) : 1);
	is_unmoved = argc > 3 && !strcmp(argv[3], "unmoved");
	is_unadvised = argc > 3 && !strcmp(argv[3], "unadvised");
	must_hold(!sigaction(SIGSEGV, &action, NULL), "sigaction");
	map_range((struct range){ ARENA, ARENA_BYTES });
	touch_blocks(12);
	for (int i = 0; i < nr_steps; i++) {
		steps[random_below(NR(steps))]();
		if (i % 4 == 3)
			print_words();
	}
	puts("end");
	return 0;
}
