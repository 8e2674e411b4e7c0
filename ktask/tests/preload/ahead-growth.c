/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs whose memory comes in ways that nobody tells the shim of: by system calls
 * without the C library, by sbrk(), by an allocator of their own.  Each checks its
 * own contents and ends with "ok", or tells what it found.
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "touches.h"

#define LEN (256 * MIB)
/* What the shim takes notice of, and more. */
#define LARGE (96 * MIB)

static void *unseen_mmap(void *at, size_t len, int flags)
{
	void *base =
		(void *)syscall(SYS_mmap, at, len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	return base;
}

static void touch_rest(char *base, size_t from, size_t len)
{
	size_t at = touch_until_helped(base + from, len - from);

	must_hold(at, "nothing was made ahead");
	for (at += from; at < len; at += PAGE_BYTES)
		base[at] = 1;
}

/* Beside a block that the shim knows, and for which there is a watcher. */
static void touch_unseen(void)
{
	char *known = malloc(LARGE);

	must_hold(known != NULL, "malloc");
	fill_pages(known, 0, LARGE / 2);
	touch_rest(unseen_mmap(NULL, LEN, 0), 0, LEN);
}

/* As Go's runtime does from 1.19 to 1.21: the program advises huge pages, and nobody tells
 * the shim.  A third is touched, each block when it sees what was made ahead. */
static void advise_unseen(void)
{
	const size_t third = LEN / 3 / BLOCK * BLOCK;
	char *known = malloc(LARGE), *base;
	size_t helped, there;

	must_hold(known != NULL, "malloc");
	fill_pages(known, 0, LARGE / 2);
	base = unseen_mmap(NULL, LEN + BLOCK, 0);
	base += BLOCK - (uintptr_t)base % BLOCK;
	syscall(SYS_madvise, base, LEN, MADV_HUGEPAGE);
	helped = touch_until_helped(base, LEN / 4);
	must_hold(helped, "nothing was made ahead");
	for (size_t at = helped; at < third; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(5);
	}
	sleep_ms(500);
	/* An allowance, and 3 % of what was touched. */
	there = count_present(base + third, LEN - third) * PAGE_BYTES;
	if (there > LEN / 16 + BLOCK + third / 100 * 3)
		printf("%zu MiB too many\n", there / MIB);
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void make_thread(void)
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, end_at_once, NULL) &&
			  !pthread_join(thread, NULL),
		  "thread");
}

/* Nothing that the shim knows of. */
static void unseen_with_threads(void)
{
	char *base = unseen_mmap(NULL, LEN, 0);

	fill_pages(base, 0, LARGE);
	make_thread();
	touch_rest(base, LARGE, LEN);
}

static void grown_heap(void)
{
	char *base = sbrk((intptr_t)(LEN + PAGE_BYTES));

	must_hold(base != (void *)-1, "sbrk");
	touch_rest(page_start(base), 0, LEN);
}

/* It goes again, and something else comes. */
static void shrunk_heap(void)
{
	char *base;
	size_t there;

	/* The C library's own blocks lie below, or elsewhere. */
	must_hold(malloc(1) && mallopt(M_MMAP_THRESHOLD, 16384), "malloc");
	base = page_start(sbrk(0));
	must_hold(!brk(base + LEN), "brk");
	must_hold(touch_until_helped(base, LEN), "nothing was made ahead");
	must_hold(!brk(base + MIB), "brk");
	unseen_mmap(base + 2 * MIB, LARGE, MAP_FIXED);
	sleep_ms(200);
	there = count_present(base + 2 * MIB, LARGE);
	if (there)
		printf("%zu pages of other memory were made\n", there);
}

/* An allocator of the test has mapped all of it, in its first call. */
static void touch_allocated(void)
{
	char *first = malloc(PAGE_BYTES);

	must_hold(first != NULL, "malloc");
	touch_rest(page_start(first), 0, LEN / 2);
}

static void allocated_with_threads(void)
{
	char *first = malloc(PAGE_BYTES);

	make_thread();
	must_hold(first != NULL, "malloc");
	touch_rest(page_start(first), 0, LEN / 2);
}

/* Whatever allocator there is. */
static void small_blocks(void)
{
	size_t nr = 512 * MIB / 4000;

	for (size_t i = 0; i < nr; i++) {
		char *block = malloc(4000);

		must_hold(block != NULL, "malloc");
		memset(block, 1, 4000);
		if (i % 256 == 0)
			sleep_ms(1);
	}
}

/* Of whatever allocator there is. */
static void large_block(void)
{
	char *block = malloc(LEN + PAGE_BYTES);

	must_hold(block != NULL, "malloc");
	touch_rest(page_start(block), 0, LEN);
}

#define STACK (512 * MIB)
/* Of it the thread goes on at once where so much was made since it last looked. */
#define MADE_PAGES 200
/* More than the thread's own touches make below them, by a huge page. */
#define OWN_PAGES (2 * MIB / PAGE_BYTES)
/* A child that saw something made; others end with 0. */
#define SAW_MADE 7

/* How long the walk waits for helpers each time that it counts, and in all. */
#define COUNT_WAIT_MS 100
#define STACK_WAIT_MS 1000

/* Pages of 63 MiB below the walk.  Until there are some it goes on slowly: helpers may get no
 * CPU for a while, and make nothing more before it has come to their mark. */
static size_t count_made_below(char *at)
{
	static long waited;
	size_t there = count_present(at - 64 * MIB, 63 * MIB);

	for (long i = 0;
	     i < COUNT_WAIT_MS && waited < STACK_WAIT_MS && there <= OWN_PAGES;
	     i += 5) {
		sleep_ms(5);
		waited += 5;
		there = count_present(at - 64 * MIB, 63 * MIB);
	}
	return there;
}

/* Downwards through its stack, until helpers work ahead of it; or to the end.  Return:
 * NULL if nothing was made ahead. */
static void *walk_down_stack(void *unused)
{
	char here, *top = page_start(&here) - MIB;
	size_t before = SIZE_MAX, most = 0;

	for (size_t at = PAGE_BYTES; at < STACK - 128 * MIB; at += PAGE_BYTES) {
		size_t there;

		top[-(long)at] = 1;
		if (at % (2 * MIB) == 0)
			sleep_ms(at < 8 * MIB ? 30 : 0);
		if (at < 16 * MIB || at % (64 * 1024))
			continue;
		there = count_made_below(top - at);
		most = there > most ? there : most;
		if (before != SIZE_MAX && there > before + MADE_PAGES)
			break;
		before = there;
	}
	return most > OWN_PAGES ? top : NULL;
}

/* The C library unmaps the stack, and a file comes in its place, of which no page is
 * made.  Return: whether some were made of the stack. */
static bool stack_becomes_file(void)
{
	void *seen;
	char *known = malloc(LARGE), *base;
	int fd = memfd_create("sparse", 0);
	pthread_attr_t attr;
	pthread_t thread;
	struct stat file;

	must_hold(known && fd >= 0 && !ftruncate(fd, STACK), "malloc or memfd");
	fill_pages(known, 0, LARGE / 2);
	must_hold(!pthread_attr_init(&attr) &&
			  !pthread_attr_setstacksize(&attr, STACK) &&
			  !pthread_create(&thread, &attr, walk_down_stack,
					  NULL) &&
			  !pthread_join(thread, &seen),
		  "thread");
	base = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must_hold(base != MAP_FAILED, "mmap");
	sleep_ms(50);
	must_hold(!fstat(fd, &file) && !file.st_blocks,
		  "pages of a file were made");
	return seen;
}

static void unseen_becomes_file(void)
{
	unsigned nr_seen = 0;

	for (int round = 0; round < 16; round++) {
		int status = 0;
		pid_t pid = fork();

		if (!pid)
			_exit(stack_becomes_file() ? SAW_MADE : 0);
		must_hold(pid > 0 && waitpid(pid, &status, 0) == pid &&
				  WIFEXITED(status) &&
				  (!status || WEXITSTATUS(status) == SAW_MADE),
			  "in a child");
		nr_seen += !!status;
	}
	must_hold(nr_seen, "nothing was made ahead");
}

/* Mapped without a reserve, where the shim sees it; then there is more that it does not
 * see. */
static void touch_unreserved(void)
{
	char *known = malloc(LARGE), *base;
	size_t there;

	base = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must_hold(known && base != MAP_FAILED, "mmap");
	madvise(base, LEN, MADV_NOHUGEPAGE);
	must_hold(touch_until_helped(page_start(known), LARGE - PAGE_BYTES),
		  "nothing was made ahead");
	unseen_mmap(NULL, LARGE, 0);
	for (size_t at = 0; at < LEN / 2; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(2);
	}
	there = count_present(base, LEN);
	if (there != LEN / 2 / PAGE_BYTES)
		printf("%zu pages too many\n", there - LEN / 2 / PAGE_BYTES);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "unseen", touch_unseen },
	{ "unseen-with-threads", unseen_with_threads },
	{ "advised-unseen", advise_unseen },
	{ "grown-heap", grown_heap },
	{ "shrunk-heap", shrunk_heap },
	{ "allocated", touch_allocated },
	{ "allocated-with-threads", allocated_with_threads },
	{ "small-blocks", small_blocks },
	{ "large-block", large_block },
	{ "unseen-becomes-file", unseen_becomes_file },
	{ "unreserved", touch_unreserved },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		puts("ok");
		return 0;
	}
	return 2;
}
