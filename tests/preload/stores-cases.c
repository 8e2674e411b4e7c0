/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large and small memset, memcpy and mempcpy, at all alignments; what they
 * return, and sums of what is there then, the bytes around included.  By
 * pointers, so that the compiler does not do them itself.
 */
#include <signal.h>
#include <sys/wait.h>

#include "probe.h"

#define ROOM_BYTES (SIZE_BYTES + 2 * PAGE_BYTES)

static void *(*volatile set)(void *, int, size_t) = memset;
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile copy_past)(void *, const void *, size_t) = mempcpy;

static uint64_t sum_of(const char *base)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ROOM_BYTES; i++)
		sum = sum * 31 + (unsigned char)base[i];
	return sum;
}

static void vary(char *a, char *b, size_t skew, size_t len)
{
	void *end;

	errno = ERRNO_MARK;
	printf("%zu+%zu:", skew, len);
	printf(" set=%d", set(a + skew, (int)(len % 251) + 1, len) == a + skew);
	printf(" sum=%lx", sum_of(a));
	printf(" copy=%d", copy(b + 7, a + skew, len) == b + 7);
	printf(" sum=%lx", sum_of(b));
	end = copy_past(b + skew, a, len);
	printf(" past=%d sum=%lx", end == b + skew + len, sum_of(b));
	printf(" errno=%d\n", errno);
}

/* What cannot be written to kills, as ever, whichever thread stores. */
static void dies(const char *name, char *at)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		set(at, 1, SIZE_BYTES);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("%s: signal %d\n", name,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(void)
{
	char *a = guarded_space(ROOM_BYTES), *b = guarded_space(ROOM_BYTES);

	must(!mprotect(a, ROOM_BYTES, PROT_READ | PROT_WRITE) &&
		     !mprotect(b, ROOM_BYTES, PROT_READ | PROT_WRITE),
	     "mprotect");
	for (size_t skew = 0; skew < 3; skew++) {
		vary(a, b, skew * 13, SIZE_BYTES);
		vary(a, b, skew, SIZE_BYTES - 4711);
		vary(a, b, skew, 100);
		vary(a, b, skew, 0);
	}
	/* Memory that overlaps: what happens is libc's. */
	copy(a + 4096, a, SIZE_BYTES / 2);
	must(!mprotect(a + SIZE_BYTES / 2, PAGE_BYTES, PROT_READ), "mprotect");
	dies("a page in the middle", a);
	must(!munmap(b + SIZE_BYTES / 2, SIZE_BYTES), "munmap");
	dies("the second half", b);
	dies("nothing there", b + SIZE_BYTES / 2);
	return 0;
}
