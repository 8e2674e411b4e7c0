/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mmap() of every kind with MAP_POPULATE, described line by line.  The same
 * text must come out with and without the shim.
 */
#include <dlfcn.h>
#include <sys/syscall.h>

#include "probe.h"

struct mmap_case {
	const char *name;
	int prot;
	int flags;
	enum { ANON, WHOLE_FILE, HALF_FILE, BAD_FD } backing;
	size_t len;
	off_t offset;
};

#define RW (PROT_READ | PROT_WRITE)
#define POP MAP_POPULATE
#define PRIV (MAP_PRIVATE | MAP_POPULATE)
#define SHAR (MAP_SHARED | MAP_POPULATE)
#define LOCK (MAP_PRIVATE | MAP_LOCKED)
#define LEN SIZE_BYTES

static const struct mmap_case cases[] = {
	{ "anonymous", RW, PRIV, ANON, LEN, 0 },
	{ "anonymous, odd length", RW, PRIV, ANON, LEN - 5000, 0 },
	{ "anonymous, read only", PROT_READ, PRIV, ANON, LEN, 0 },
	{ "anonymous, write only", PROT_WRITE, PRIV, ANON, LEN, 0 },
	{ "anonymous, no access", PROT_NONE, PRIV, ANON, LEN, 0 },
	{ "anonymous, executable", RW | PROT_EXEC, PRIV, ANON, LEN, 0 },
	{ "anonymous, no reserve", RW, PRIV | MAP_NORESERVE, ANON, LEN, 0 },
	{ "anonymous, nonblock", RW, PRIV | MAP_NONBLOCK, ANON, LEN, 0 },
	{ "anonymous, locked", RW, PRIV | MAP_LOCKED, ANON, LEN, 0 },
	{ "anonymous, grows down", RW, PRIV | MAP_GROWSDOWN, ANON, LEN, 0 },
	{ "anonymous, no populate", RW, MAP_PRIVATE, ANON, LEN, 0 },
	{ "anonymous, below the limit", RW, PRIV, ANON, PAGE_BYTES, 0 },
	{ "shared anonymous", RW, SHAR, ANON, LEN, 0 },
	{ "shared anonymous, read only", PROT_READ, SHAR, ANON, LEN, 0 },
	{ "private file", RW, PRIV, WHOLE_FILE, LEN, 0 },
	{ "private file, read only", PROT_READ, PRIV, WHOLE_FILE, LEN, 0 },
	{ "shared file", RW, SHAR, WHOLE_FILE, LEN, 0 },
	{ "shared file, read only", PROT_READ, SHAR, WHOLE_FILE, LEN, 0 },
	{ "shared file, validated", RW, MAP_SHARED_VALIDATE | POP, WHOLE_FILE,
	  LEN, 0 },
	{ "shared file, second half", RW, SHAR, WHOLE_FILE, LEN / 2, LEN / 2 },
	{ "private file, too short", RW, PRIV, HALF_FILE, LEN, 0 },
	{ "shared file, too short", RW, SHAR, HALF_FILE, LEN, 0 },
	{ "locked, odd length", RW, LOCK, ANON, LEN - 5000, 0 },
	{ "locked, read only", PROT_READ, LOCK, ANON, LEN, 0 },
	{ "locked, no access", PROT_NONE, LOCK, ANON, LEN, 0 },
	{ "locked, nonblock", RW, LOCK | MAP_NONBLOCK, ANON, LEN, 0 },
	{ "locked, shared", RW, MAP_SHARED | MAP_LOCKED, ANON, LEN, 0 },
	{ "locked, private file", RW, LOCK, WHOLE_FILE, LEN, 0 },
	{ "locked, private file, read only", PROT_READ, LOCK, WHOLE_FILE, LEN,
	  0 },
	{ "locked, shared file", RW, MAP_SHARED | MAP_LOCKED, WHOLE_FILE, LEN,
	  0 },
	{ "locked, shared file, odd length", RW, MAP_SHARED | MAP_LOCKED,
	  WHOLE_FILE, LEN - 5000, 0 },
	{ "locked, private file, too short", RW, LOCK, HALF_FILE, LEN, 0 },
	{ "locked, bad descriptor", RW, LOCK, BAD_FD, LEN, 0 },
	{ "bad descriptor", RW, PRIV, BAD_FD, LEN, 0 },
	{ "unaligned offset", RW, SHAR, WHOLE_FILE, LEN, 17 },
	{ "no length", RW, PRIV, ANON, 0, 0 },
	{ "neither private nor shared", RW, POP, ANON, LEN, 0 },
	{ "unknown type", RW, POP | MAP_TYPE, ANON, LEN, 0 },
	{ "longer than the address space", RW, PRIV, ANON, SIZE_MAX / 2, 0 },
};

static int open_backing(const struct mmap_case *c)
{
	switch (c->backing) {
	case WHOLE_FILE:
		return patterned_file(SIZE_BYTES);
	case HALF_FILE:
		return patterned_file(SIZE_BYTES / 2);
	case BAD_FD:
		return 9999;
	default:
		return -1;
	}
}

static void run_case(const struct mmap_case *c)
{
	int anonymous = c->backing == ANON ? MAP_ANONYMOUS : 0;
	char *space = guarded_space(SIZE_BYTES);
	int fd = open_backing(c);
	size_t readable = c->backing == HALF_FILE ? c->len / 2 : c->len;
	char *addr;

	errno = ERRNO_MARK;
	addr = mmap(space, c->len, c->prot, c->flags | MAP_FIXED | anonymous,
		    fd, c->offset);
	print_outcome(c->name, addr == space ? 0 : -1, errno);
	if (addr == space) {
		print_pages(space, c->len);
		if (c->prot & PROT_READ)
			print_contents(space, readable);
	}
	putchar('\n');
	unmap_space(space, SIZE_BYTES);
	if (fd >= 0)
		close(fd);
}

/* The large-file name of the call, and an address that the kernel chooses. */
static void run_mmap64(void)
{
	char *addr;

	errno = ERRNO_MARK;
	addr = mmap64(NULL, SIZE_BYTES, RW, PRIV | MAP_ANONYMOUS, -1, 0);
	print_outcome("mmap64", addr == MAP_FAILED, errno);
	printf(" resident=%zu", resident_pages(addr, SIZE_BYTES));
	print_contents(addr, SIZE_BYTES);
	putchar('\n');
	munmap(addr, SIZE_BYTES);
}

/* What is mapped stays, and the new call fails. */
static void run_noreplace(void)
{
	char *space = guarded_space(SIZE_BYTES);
	char *addr;

	errno = ERRNO_MARK;
	addr = mmap(space, SIZE_BYTES, RW,
		    PRIV | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	print_outcome("address in use", addr == space ? 0 : -1, errno);
	putchar('\n');
	unmap_space(space, SIZE_BYTES);
}

/* No huge pages are reserved: the call fails, or its pages are made. */
static void run_hugetlb(void)
{
	char *addr;

	errno = ERRNO_MARK;
	addr = mmap(NULL, SIZE_BYTES, RW, PRIV | MAP_ANONYMOUS | MAP_HUGETLB,
		    -1, 0);
	print_outcome("hugetlb", addr == MAP_FAILED, errno);
	if (addr != MAP_FAILED) {
		printf(" resident=%zu", resident_pages(addr, SIZE_BYTES));
		munmap(addr, SIZE_BYTES);
	}
	putchar('\n');
}

/* What is locked is another kind of memory, and remains another mapping when it
 * is not locked any more. */
static void run_beside(void)
{
	const size_t part = SIZE_BYTES / 2;
	char *space = guarded_space(3 * part);
	char *addr;

	for (int i = 0; i < 3; i += 2)
		must_hold(mmap(space + i * part, part, RW,
			       PRIV | MAP_ANONYMOUS | MAP_FIXED, -1,
			       0) != MAP_FAILED,
			  "mmap");
	errno = ERRNO_MARK;
	addr = mmap(space + part, part, RW,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_FIXED, -1,
		    0);
	print_outcome("locked, between others", addr == MAP_FAILED, errno);
	print_pages(space, 3 * part);
	/* Unseen: no call of this program is told of but mmap. */
	syscall(SYS_munlock, space + part, part);
	print_pages(space, 3 * part);
	putchar('\n');
	unmap_space(space, 3 * part);
}

/* Locked memory is mapped beside such memory, and then in the place of a part of it: what
 * the kernel joins is one mapping. */
static void run_beside_locked(const char *name, const int *order, int last)
{
	const size_t part = SIZE_BYTES / 2;
	char *space = guarded_space(3 * part);

	for (int i = 0; i < 4; i++) {
		int at = i < 3 ? order[i] : last;
		char *addr;

		errno = ERRNO_MARK;
		addr = mmap(space + (size_t)at * part, part, RW,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED |
				    MAP_FIXED,
			    -1, 0);
		print_outcome(name, addr == MAP_FAILED, errno);
		print_pages(space, 3 * part);
		putchar('\n');
	}
	unmap_space(space, 3 * part);
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Some versions of the C library lose the hint themselves. */
static int libc_hands_on(char *space, char *hint)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	void *(*move)(void *, size_t, size_t, int, ...) =
		libc ? dlsym(libc, "mremap") : NULL;

	return move && move(space, PAGE_BYTES, PAGE_BYTES,
			    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, hint) == hint;
}

/* Where memory is moved that stays mapped, the address is a hint. */
static void run_hinted(void)
{
	char *space = guarded_space(SIZE_BYTES),
	     *hint = guarded_space(SIZE_BYTES);
	char *addr;
	int calls;

	must_hold(mmap(space, SIZE_BYTES, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == space,
		  "mmap");
	must_hold(!munmap(hint, SIZE_BYTES), "munmap");
	calls = libc_hands_on(space, hint) ? 2 : 0;
	munmap(hint, SIZE_BYTES);
	for (int skew = 0; skew < calls; skew++) {
		errno = ERRNO_MARK;
		addr = mremap(space, SIZE_BYTES, SIZE_BYTES,
			      MREMAP_MAYMOVE | MREMAP_DONTUNMAP, hint + skew);
		print_outcome("moved to a hint", addr == hint, errno);
		putchar('\n');
	}
	unmap_space(space, SIZE_BYTES);
	unmap_space(hint, SIZE_BYTES);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i]);
	run_mmap64();
	run_noreplace();
	run_beside();
	run_beside_locked("locked, upwards", (int[]){ 0, 1, 2 }, 1);
	run_beside_locked("locked, downwards", (int[]){ 2, 1, 0 }, 0);
	run_beside_locked("locked, between", (int[]){ 0, 2, 1 }, 2);
	run_hugetlb();
	run_hinted();
	return 0;
}
