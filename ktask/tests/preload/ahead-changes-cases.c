/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that change memory which is made ahead, or their threads, signals and
 * descriptors beside it.  Each checks its own contents and ends with "ok", or tells what
 * it found.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ahead_cases.h"

static void fork_and_fill(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t at = touch_until_helped(base, LEN);
	int status = 0;
	pid_t child;

	must_hold(at, "nothing was made ahead");
	child = fork();
	if (!child) {
		char *own = allocate_pages("malloc");

		check_pages(base, 0, at);
		fill_pages(base, at, LEN);
		check_pages(base, 0, LEN);
		fill_pages(own, 0, LEN);
		check_pages(own, 0, LEN);
		_exit(7);
	}
	fill_pages(base, at, LEN);
	check_pages(base, 0, LEN);
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	must_hold(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
}

/* Lets all threads that stop go on, until the process ends.  Return: threads that were
 * seen to begin. */
static unsigned follow_threads(pid_t process)
{
	unsigned nr = 0;
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!WIFSTOPPED(status) && tid != process)
			continue;
		if (!WIFSTOPPED(status)) {
			must_hold(WIFEXITED(status) && WEXITSTATUS(status) == 7,
				  "traced");
			return nr;
		}
		nr += status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8);
		ptrace(PTRACE_CONT, tid, NULL,
		       sig == SIGTRAP || sig == SIGSTOP ? 0L : (long)sig);
	}
	return nr;
}

/* As under a debugger, which stops each thread that begins. */
static void run_traced(const char *how)
{
	pid_t child = fork();
	int status;

	if (!child) {
		char *base;

		must_hold(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "traceme");
		raise(SIGSTOP);
		base = allocate_pages("malloc");
		must_hold(touch_until_helped(base, LEN),
			  "nothing was made ahead");
		fill_pages(base, 0, LEN);
		check_pages(base, 0, LEN);
		_exit(7);
	}
	must_hold(waitpid(child, &status, 0) == child && WIFSTOPPED(status),
		  "waitpid");
	must_hold(!ptrace(PTRACE_SETOPTIONS, child, NULL,
			  PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
		  "setoptions");
	must_hold(!ptrace(PTRACE_CONT, child, NULL, NULL), "cont");
	must_hold(follow_threads(child) > 0, "no thread was seen");
}

/* What the process has blocked stays pending: no other thread takes it. */
static void keeps_signals(const char *how)
{
	char *base = allocate_pages("malloc");
	sigset_t set, pending;

	must_hold(touch_until_helped(base, LEN), "nothing was made ahead");
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int sig = 1; sig < 32; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || sig == SIGCONT ||
		    sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
		    sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS ||
		    sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
			continue;
		must_hold(!kill(getpid(), sig), "kill");
		sigpending(&pending);
		must_hold(sigismember(&pending, sig), "a signal was taken");
	}
}

static void check_lowest(int expected)
{
	int fd = dup(1);

	must_hold(fd == expected, "another thread took the number");
	must_hold(!close(fd), "close");
}

/* The lowest number is free whenever the program expects it to be: before the first window,
 * and beside those that follow. */
static void keeps_descriptors(const char *how)
{
	char *base = allocate_pages("malloc");
	int expected = dup(1);
	bool seen = false;
	long waited = 0;

	must_hold(expected >= 0 && !close(expected), "dup");
	for (size_t at = 0; at < LEN; at += PAGE_BYTES) {
		base[at] = 1;
		check_lowest(expected);
		if (at % BLOCK || at + BLOCK >= LEN)
			continue;
		for (int i = 0; i < 200 && !seen && waited < WAIT_MS; i++) {
			seen = is_ahead(base, at + PAGE_BYTES, LEN);
			sleep_ms(5);
			waited += 5;
			check_lowest(expected);
		}
	}
	must_hold(seen, "nothing was made ahead");
}

/* Nothing is made any more of what was given up. */
static void discard_memory(const char *how)
{
	char *base = allocate_pages("malloc");

	must_hold(touch_until_helped(base, LEN), "nothing was made ahead");
	must_hold(!madvise(base, LEN, MADV_DONTNEED), "madvise");
	for (int i = 0; i < 100; i++) {
		must_hold(!count_present(base, LEN),
			  "made after it was discarded");
		sleep_ms(1);
	}
	for (size_t at = 0; at < LEN; at += PAGE_BYTES)
		must_hold(!base[at], "contents");
}

/* A part of a mapping of LEN, where it is made ahead of its touches. */
static void fill_part(char *base, size_t len)
{
	size_t at = touch_until_helped(base, len);

	must_hold(at, "nothing was made ahead");
	fill_pages(base, at, len);
}

/* A file with holes in place of memory keeps its holes. */
static void replace_by_file(const char *how)
{
	for (int i = 0; i < 10; i++) {
		char *base = allocate_pages("mmap");
		int fd = memfd_create("holes", MFD_CLOEXEC);
		struct stat file;

		must_hold(fd >= 0 && !ftruncate(fd, (off_t)LEN), "memfd");
		fill_part(base, LEN / 8 + (size_t)i * 3 * MIB);
		must_hold(mmap(base, LEN, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, fd, 0) == base,
			  "mmap");
		sleep_ms(20);
		must_hold(!fstat(fd, &file) && !file.st_blocks,
			  "pages of the file were made");
		munmap(base, LEN);
		close(fd);
	}
}

static void move_memory(const char *how)
{
	char *base = allocate_block("mmap", LEN), *moved;
	size_t at = touch_until_helped(base, LEN);

	must_hold(at, "nothing was made ahead");
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap");
	check_pages(moved, 0, at);
	fill_pages(moved, at, 2 * LEN);
	check_pages(moved, 0, 2 * LEN);
	must_hold(!munmap(moved, 2 * LEN), "munmap");
}

/* Nor is anything made of a segment that comes there. */
static void becomes_segment(const char *how)
{
	for (int i = 0; i < 10; i++) {
		char *base = allocate_pages("mmap");
		int id = shmget(IPC_PRIVATE, LEN, 0600);
		size_t there;

		must_hold(id >= 0, "shmget");
		fill_part(base, LEN / 8 + (size_t)i * 3 * MIB);
		must_hold(shmat(id, base, SHM_REMAP) == base, "shmat");
		shmctl(id, IPC_RMID, NULL);
		sleep_ms(20);
		there = count_present(base, LEN);
		if (there) {
			printf("%zu pages of the segment were made\n", there);
			return;
		}
		munmap(base, LEN);
	}
}

struct unmapping {
	bool unmapped;
	bool has_slept;
};

static long count_sleeps(void)
{
	struct rusage usage;

	must_hold(!getrusage(RUSAGE_THREAD, &usage), "getrusage");
	return usage.ru_nvcsw;
}

/* Who unmaps waits for helpers, and does not end there. */
static void *unmap_cancelled(void *arg)
{
	struct unmapping *unmapping = arg;
	char *base = allocate_pages("mmap");
	long sleeps;

	fill_pages(base, 0, LEN / 8);
	sleeps = count_sleeps();
	pthread_cancel(pthread_self());
	munmap(base, LEN);
	unmapping->has_slept = count_sleeps() > sleeps;
	unmapping->unmapped = true;
	return NULL;
}

/* Until one has waited so long that it slept. */
static void unmap_when_cancelled(const char *how)
{
	unsigned nr_slept = 0;
	time_t end = time(NULL) + WAIT_MS / 1000;

	for (int i = 0; i < 50 || (!nr_slept && time(NULL) < end); i++) {
		struct unmapping unmapping = { 0 };
		pthread_t thread;

		must_hold(!pthread_create(&thread, NULL, unmap_cancelled,
					  &unmapping) &&
				  !pthread_join(thread, NULL),
			  "thread");
		must_hold(unmapping.unmapped, "munmap ended the thread");
		nr_slept += unmapping.has_slept;
	}
	must_hold(nr_slept, "nothing was made ahead while memory was unmapped");
}

/* What is left of a mapping, with other memory in place of a part or not, is one to
 * mremap(), also if huge pages were advised for some of it. */
static char *quarter_made_ahead(void)
{
	char *base = allocate_block("mmap", LEN);
	size_t at = touch_until_helped(base, LEN);

	must_hold(at, "nothing was made ahead");
	for (; at + BLOCK <= LEN / 4; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(2);
	}
	return base;
}

static void moves_rest(const char *how)
{
	char *base = quarter_made_ahead(), *moved, *other;

	must_hold(!munmap(base + LEN / 4 * 3, BLOCK), "munmap");
	moved = mremap(base, LEN / 2, LEN, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap of what is left");
	check_pages(moved, 0, LEN / 4);
	base = quarter_made_ahead();
	other = mmap(base + LEN / 2, BLOCK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must_hold(other != MAP_FAILED, "mmap");
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap with other memory in it");
	check_pages(moved, 0, LEN / 4);
}

static bool map_at(char *addr, size_t len, int how)
{
	return mmap(addr, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0) == addr;
}

/* Once it is touched, memory with other advice than its neighbour's is never joined with
 * it.  Nobody watches the mapping any more when its second part is mapped anew. */
static void moves_what_is_anew(const char *how)
{
	const size_t parts[] = { BLOCK, LEN / 8, LEN / 8 + BLOCK };
	char *base = quarter_made_ahead(), *moved;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char *part = base + parts[i];

		must_hold(map_at(part, BLOCK, MAP_FIXED), "mmap");
		fill_pages(base, parts[i], parts[i] + BLOCK);
	}
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap with parts mapped anew");
	check_pages(moved, 0, LEN / 4);
}

/* Flags of the mapping that begins at @base, as /proc/self/smaps says them. */
static bool has_flag(const char *base, const char *flag)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	bool inside = false, has = false;
	char line[512], start[32];

	must_hold(file != NULL, "smaps");
	snprintf(start, sizeof(start), "%lx-", (unsigned long)base);
	while (fgets(line, sizeof(line), file)) {
		inside = inside || !strncmp(line, start, strlen(start));
		if (!inside || strncmp(line, "VmFlags:", 8))
			continue;
		has = strstr(line, flag) != NULL;
		break;
	}
	fclose(file);
	return has;
}

/* Maps that ask for their pages are too small here to be taken over. */
static void moves_what_is_populated(const char *how)
{
	const size_t part = MIB / 2;
	char *base = quarter_made_ahead(), *moved;

	must_hold(map_at(base + BLOCK, BLOCK, MAP_FIXED), "mmap of a part");
	must_hold(map_at(base + LEN / 8, part, MAP_FIXED | MAP_POPULATE),
		  "mmap with pages");
	must_hold(count_present(base + LEN / 8, part) == part / PAGE_BYTES,
		  "pages that were asked for");
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap with a part that has pages");
	check_pages(moved, 0, BLOCK);
}

/* What the program maps beside a segment is not beside what was there before. */
static void attaches_over_memory(const char *how)
{
	char *base, *below;
	int tries = 0, id = shmget(IPC_PRIVATE, LEN, 0600);

	must_hold(id >= 0, "shmget");
	do {
		must_hold(tries++ < 8, "there is no room below");
		base = quarter_made_ahead();
		below = base - BLOCK;
		must_hold(map_at(base + BLOCK, BLOCK, MAP_FIXED), "mmap");
		must_hold(shmat(id, base, SHM_REMAP) == base, "shmat");
	} while (!map_at(below, BLOCK, MAP_FIXED_NOREPLACE));
	shmctl(id, IPC_RMID, NULL);
	if (has_flag(below, " nh"))
		puts("there is advice that nobody gave");
}

/* What was mapped anew as a whole has no neighbour with other advice any more, but one
 * that the program mapped below. */
static void moves_what_replaced_all(const char *how)
{
	char *base, *below, *moved;
	int tries = 0;

	do {
		must_hold(tries++ < 8, "there is no room below");
		base = quarter_made_ahead();
		below = base - BLOCK;
	} while (!map_at(below, BLOCK, MAP_FIXED_NOREPLACE));
	fill_pages(below, 0, BLOCK);
	must_hold(map_at(base + BLOCK, BLOCK, MAP_FIXED), "mmap of a part");
	must_hold(map_at(base, LEN, MAP_FIXED), "mmap of all");
	fill_pages(below, BLOCK, 2 * BLOCK);
	moved = mremap(below, 2 * BLOCK, 4 * BLOCK, MREMAP_MAYMOVE);
	must_hold(moved != MAP_FAILED, "mremap of both");
	check_pages(moved, 0, 2 * BLOCK);
}

/* From what is too small to be watched. */
static void grow_small_mapping(const char *how)
{
	char *base = allocate_block("mmap", BLOCK);
	size_t at;

	fill_pages(base, 0, BLOCK);
	base = mremap(base, BLOCK, LEN, MREMAP_MAYMOVE);
	must_hold(base != MAP_FAILED, "mremap");
	must_hold(nr_threads() > 1, "it is not watched");
	at = touch_until_helped(base, LEN);
	must_hold(at, "nothing was made ahead");
	fill_pages(base, at, LEN);
	check_pages(base, 0, LEN);
}

/* A file that is mapped, shared memory and memory that is only read get nothing. */
static void grows_otherwise(const char *how)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	const struct {
		int prot, flags, fd;
	} kinds[] = {
		{ PROT_READ | PROT_WRITE, MAP_SHARED, fd },
		{ PROT_READ | PROT_WRITE, MAP_PRIVATE, fd },
		{ PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1 },
		{ PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1 },
	};

	must_hold(fd >= 0 && !ftruncate(fd, (off_t)LEN), "memfd");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char *base = mmap(NULL, BLOCK, kinds[i].prot, kinds[i].flags,
				  kinds[i].fd, 0);

		must_hold(base != MAP_FAILED, "mmap");
		base = mremap(base, BLOCK, LEN, MREMAP_MAYMOVE);
		must_hold(base != MAP_FAILED, "mremap");
		must_hold(!munmap(base, LEN), "munmap");
	}
	must_hold(nr_threads() == 1, "a mapping is watched");
}

static void reallocate_often(const char *how)
{
	size_t len = 40 * MIB;
	char *block = malloc(len);

	must_hold(block != NULL, "malloc");
	must_hold(touch_until_helped(page_start(block), len - PAGE_BYTES),
		  "nothing was made ahead");
	memset(block, 1, len);
	for (; len < 2 * LEN; len += len / 2) {
		block = realloc(block, len + len / 2);
		must_hold(block != NULL, "realloc");
		for (size_t at = 0; at < len; at += PAGE_BYTES)
			must_hold(block[at] == 1, "contents");
		memset(block + len, 1, len / 2);
	}
	free(block);
}

static atomic_uint nr_helped;

/* Maps, touches, changes and unmaps without end; at first where it is helped. */
static void *map_and_unmap(void *arg)
{
	size_t seed = (size_t)arg;

	for (int i = 0; i < 20; i++) {
		size_t len = 32 * MIB + (seed * 7 + (size_t)i) % 9 * MIB;
		char *block = i % 2 ? malloc(len)
				    : mmap(NULL, len, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must_hold(block && block != MAP_FAILED, "map");
		if (i % 2) {
			memset(block, (int)seed, len / 2);
			must_hold(block[len / 2 - 1] == (char)seed, "contents");
			free(block);
			continue;
		}
		nr_helped += !i && touch_until_helped(block, len / 2);
		fill_pages(block, 0, len / 2);
		must_hold(!mprotect(block + len / 4, PAGE_BYTES, PROT_NONE) &&
				  !madvise(block + len / 2, len / 2, MADV_FREE),
			  "change");
		check_pages(block, 0, len / 4);
		must_hold(!munmap(block, len), "munmap");
	}
	return NULL;
}

static void ten_threads(const char *how)
{
	pthread_t threads[10];

	for (size_t i = 0; i < 10; i++)
		must_hold(!pthread_create(&threads[i], NULL, map_and_unmap,
					  (void *)(i + 1)),
			  "pthread_create");
	for (size_t i = 0; i < 10; i++)
		pthread_join(threads[i], NULL);
	must_hold(nr_helped, "nothing was made ahead");
}

static const struct ahead_case all_cases[] = {
	{ "forks", fork_and_fill },
	{ "traced", run_traced },
	{ "signals", keeps_signals },
	{ "descriptors", keeps_descriptors },
	{ "discards", discard_memory },
	{ "replaces", replace_by_file },
	{ "becomes-segment", becomes_segment },
	{ "cancelled", unmap_when_cancelled },
	{ "moves", move_memory },
	{ "moves-rest", moves_rest },
	{ "moves-anew", moves_what_is_anew },
	{ "moves-whole", moves_what_replaced_all },
	{ "moves-populated", moves_what_is_populated },
	{ "attaches", attaches_over_memory },
	{ "grows", grow_small_mapping },
	{ "grows-otherwise", grows_otherwise },
	{ "reallocates", reallocate_often },
	{ "ten-threads", ten_threads },
};

int main(int argc, char **argv)
{
	return run_case(all_cases, sizeof(all_cases) / sizeof(all_cases[0]),
			argc, argv);
}
