/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mlock() and mlock2() over good and bad ranges, with and without the right to
 * lock, described line by line.  The same text must come out with and without
 * the shim.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "probe.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1u
#endif

/* Under the usual hard limit of RLIMIT_MEMLOCK. */
#define LOCK_BYTES (SIZE_BYTES / 2)
#define RW (PROT_READ | PROT_WRITE)

struct mapping {
	char *space;
	int fd;
};

static struct mapping map_anonymous(int prot, int type)
{
	struct mapping m = { guarded_space(LOCK_BYTES), -1 };

	must_hold(mmap(m.space, LOCK_BYTES, prot,
		       type | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == m.space,
		  "mmap");
	return m;
}

static struct mapping map_file(int prot, int type, size_t len)
{
	struct mapping m = { guarded_space(LOCK_BYTES), patterned_file(len) };

	must_hold(mmap(m.space, LOCK_BYTES, prot, type | MAP_FIXED, m.fd, 0) ==
			  m.space,
		  "mmap");
	return m;
}

static void finish_case(const char *name, struct mapping m, int rc)
{
	print_outcome(name, rc, errno);
	if (rc == 0)
		print_pages(m.space, LOCK_BYTES);
	putchar('\n');
	unmap_space(m.space, LOCK_BYTES);
	if (m.fd >= 0)
		close(m.fd);
}

static void lock_all(const char *name, struct mapping m)
{
	int rc;

	errno = ERRNO_MARK;
	rc = mlock(m.space, LOCK_BYTES);
	finish_case(name, m, rc);
}

static void lock_part(const char *name, size_t skew, size_t len)
{
	struct mapping m = map_anonymous(RW, MAP_PRIVATE);
	int rc;

	errno = ERRNO_MARK;
	rc = mlock(m.space + skew, len);
	finish_case(name, m, rc);
}

static void lock_flags(const char *name, unsigned flags)
{
	struct mapping m = map_anonymous(RW, MAP_PRIVATE);
	int rc;

	errno = ERRNO_MARK;
	rc = mlock2(m.space, LOCK_BYTES, flags);
	finish_case(name, m, rc);
}

static void lock_hole(void)
{
	struct mapping m = map_anonymous(RW, MAP_PRIVATE);

	must_hold(!munmap(m.space + LOCK_BYTES / 2, PAGE_BYTES), "munmap");
	lock_all("hole", m);
}

/* Two mappings of one kind side by side, and two kinds. */
static void lock_two(const char *name, int prot)
{
	struct mapping m = map_anonymous(RW, MAP_PRIVATE);

	must_hold(!mprotect(m.space + LOCK_BYTES / 2, LOCK_BYTES / 2, prot),
		  "mprotect");
	lock_all(name, m);
}

/* Untouched memory of one mapping, part after part: what is locked becomes one mapping
 * again, whichever part is the last. */
static void lock_in_turn(const char *name, const int *parts)
{
	char *space = guarded_space(4 * LOCK_BYTES);

	must_hold(mmap(space, 4 * LOCK_BYTES, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == space,
		  "mmap");
	for (int i = 0; i < 4; i++) {
		int rc;

		errno = ERRNO_MARK;
		rc = mlock(space + (size_t)parts[i] * LOCK_BYTES, LOCK_BYTES);
		print_outcome(name, rc, errno);
		print_pages(space, 4 * LOCK_BYTES);
		putchar('\n');
	}
	unmap_space(space, 4 * LOCK_BYTES);
}

static void with_rights(void)
{
	lock_all("anonymous", map_anonymous(RW, MAP_PRIVATE));
	lock_all("read only", map_anonymous(PROT_READ, MAP_PRIVATE));
	lock_all("no access", map_anonymous(PROT_NONE, MAP_PRIVATE));
	lock_all("shared anonymous", map_anonymous(RW, MAP_SHARED));
	lock_all("shared file", map_file(RW, MAP_SHARED, LOCK_BYTES));
	lock_all("private file", map_file(RW, MAP_PRIVATE, LOCK_BYTES));
	lock_all("private file, read only",
		 map_file(PROT_READ, MAP_PRIVATE, LOCK_BYTES));
	lock_all("short file", map_file(RW, MAP_SHARED, LOCK_BYTES / 2));
	lock_hole();
	lock_two("two alike", RW | PROT_EXEC);
	lock_two("two kinds", PROT_READ);
	lock_part("unaligned", 100, LOCK_BYTES - PAGE_BYTES);
	lock_part("nearly all", 1, LOCK_BYTES - 2);
	lock_in_turn("upwards", (int[]){ 0, 1, 2, 3 });
	lock_in_turn("downwards", (int[]){ 3, 2, 1, 0 });
	lock_in_turn("between two", (int[]){ 0, 3, 1, 2 });
	lock_part("small", 0, PAGE_BYTES);
	lock_part("empty", 0, 0);
	lock_part("length that wraps", 0, SIZE_MAX - 1);
	lock_flags("mlock2", 0);
	lock_flags("mlock2 on fault", MLOCK_ONFAULT);
	lock_flags("mlock2 unknown flag", 0x80);
}

static void set_limit(rlim_t bytes)
{
	struct rlimit r;

	must_hold(!getrlimit(RLIMIT_MEMLOCK, &r), "getrlimit");
	r.rlim_cur = bytes;
	must_hold(!setrlimit(RLIMIT_MEMLOCK, &r), "setrlimit");
}

static void within_limits(void)
{
	set_limit(LOCK_BYTES);
	lock_all("just allowed", map_anonymous(RW, MAP_PRIVATE));
	set_limit(LOCK_BYTES - PAGE_BYTES);
	lock_all("a page too many", map_anonymous(RW, MAP_PRIVATE));
	set_limit(0);
	lock_all("nothing allowed", map_anonymous(RW, MAP_PRIVATE));
}

/* In a child, so that the report at exit is written with privileges. */
static int without_rights(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		must_hold(!setgid(65534) && !setuid(65534), "setuid");
		within_limits();
		exit(0);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	return status != 0;
}

int main(void)
{
	set_limit(LOCK_BYTES);
	if (getuid() != 0) {
		within_limits();
		return 0;
	}
	with_rights();
	return without_rights();
}
