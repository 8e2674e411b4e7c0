/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise(MADV_POPULATE_*) over good and bad ranges, described line by line.
 * The same text must come out with and without the shim.
 */
#include "probe.h"

/* How the range under test is made. */
enum layout {
	ANON_RW,
	ANON_RO,
	ANON_NONE,
	ANON_SHARED,
	FILE_SHARED,
	FILE_SHARED_RO,
	FILE_PRIVATE,
	FILE_SHORT,
	HOLE, /* nothing mapped in the middle */
	MIXED, /* the second half read only */
};

struct madvise_case {
	const char *name;
	enum layout layout;
	int advice;
	size_t skew; /* added to the address */
	size_t len;
};

#define LEN SIZE_BYTES
#define WRITE_IT MADV_POPULATE_WRITE
#define READ_IT MADV_POPULATE_READ

static const struct madvise_case cases[] = {
	{ "anonymous, write", ANON_RW, WRITE_IT, 0, LEN },
	{ "anonymous, read", ANON_RW, READ_IT, 0, LEN },
	{ "anonymous, odd length", ANON_RW, WRITE_IT, 0, LEN - 5000 },
	{ "anonymous, small", ANON_RW, WRITE_IT, 0, PAGE_BYTES },
	{ "read only, write", ANON_RO, WRITE_IT, 0, LEN },
	{ "read only, read", ANON_RO, READ_IT, 0, LEN },
	{ "no access, write", ANON_NONE, WRITE_IT, 0, LEN },
	{ "no access, read", ANON_NONE, READ_IT, 0, LEN },
	{ "shared anonymous, write", ANON_SHARED, WRITE_IT, 0, LEN },
	{ "shared anonymous, read", ANON_SHARED, READ_IT, 0, LEN },
	{ "shared file, read", FILE_SHARED, READ_IT, 0, LEN },
	{ "shared file, write", FILE_SHARED, WRITE_IT, 0, LEN },
	{ "shared file read only, write", FILE_SHARED_RO, WRITE_IT, 0, LEN },
	{ "private file, write", FILE_PRIVATE, WRITE_IT, 0, LEN },
	{ "private file, read", FILE_PRIVATE, READ_IT, 0, LEN },
	{ "short file, read", FILE_SHORT, READ_IT, 0, LEN },
	{ "short file, write", FILE_SHORT, WRITE_IT, 0, LEN },
	{ "hole, write", HOLE, WRITE_IT, 0, LEN },
	{ "hole, read", HOLE, READ_IT, 0, LEN },
	{ "mixed, write", MIXED, WRITE_IT, 0, LEN },
	{ "mixed, read", MIXED, READ_IT, 0, LEN },
	{ "unaligned", ANON_RW, WRITE_IT, 24, LEN - PAGE_BYTES },
	{ "empty", ANON_RW, WRITE_IT, 0, 0 },
	{ "past the address space", ANON_RW, WRITE_IT, 0, SIZE_MAX - 8191 },
	{ "length that wraps", ANON_RW, WRITE_IT, 0, SIZE_MAX - 1 },
	{ "unknown advice", ANON_RW, 4096, 0, LEN },
	{ "another advice", ANON_RW, MADV_DONTNEED, 0, LEN },
};

static int layout_prot(enum layout layout)
{
	switch (layout) {
	case ANON_RO:
	case FILE_SHARED_RO:
		return PROT_READ;
	case ANON_NONE:
		return PROT_NONE;
	default:
		return PROT_READ | PROT_WRITE;
	}
}

static int layout_fd(enum layout layout)
{
	if (layout == FILE_SHORT)
		return patterned_file(SIZE_BYTES / 2);
	if (layout == FILE_SHARED || layout == FILE_SHARED_RO ||
	    layout == FILE_PRIVATE)
		return patterned_file(SIZE_BYTES);
	return -1;
}

static void lay_out(char *space, enum layout layout, int fd)
{
	int shared = layout == ANON_SHARED || layout == FILE_SHARED ||
		     layout == FILE_SHARED_RO || layout == FILE_SHORT;
	int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE) |
		    (fd < 0 ? MAP_ANONYMOUS : 0);

	must_hold(mmap(space, SIZE_BYTES, layout_prot(layout), flags, fd, 0) ==
			  space,
		  "mmap");
	if (layout == HOLE)
		must_hold(!munmap(space + SIZE_BYTES / 2, PAGE_BYTES),
			  "munmap");
	if (layout == MIXED)
		must_hold(!mprotect(space + SIZE_BYTES / 2, SIZE_BYTES / 2,
				    PROT_READ),
			  "mprotect");
}

static void run_case(const struct madvise_case *c)
{
	char *space = guarded_space(SIZE_BYTES);
	int fd = layout_fd(c->layout);
	int rc;

	lay_out(space, c->layout, fd);
	if (c->layout == ANON_RW)
		memset(space + PAGE_BYTES, 7, PAGE_BYTES);
	errno = ERRNO_MARK;
	rc = madvise(space + c->skew, c->len, c->advice);
	print_outcome(c->name, rc, errno);
	/* Behind a failure, how far it got is the kernel's own affair. */
	if (rc == 0) {
		print_pages(space, SIZE_BYTES);
		print_contents(space, SIZE_BYTES);
	}
	putchar('\n');
	unmap_space(space, SIZE_BYTES);
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i]);
	return 0;
}
