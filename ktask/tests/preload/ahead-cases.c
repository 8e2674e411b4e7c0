/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: one program, whose cases wait for helpers and compare pages in the same way */
/*
 * Programs that touch large memory in order, or not, and look at what is present
 * besides.  Each checks its own contents and ends with "ok", or tells what it found.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "touches.h"
#include "util/sched_attr.h"

#define LEN (256 * MIB)
/* Of the mapping what may be made before anything is known, and 3 %. */
#define FIRST_PAGES(len) ((len) / PAGE_BYTES / 16 + 512)

static char *allocate(const char *how, size_t len)
{
	void *block = NULL;

	if (!strcmp(how, "malloc"))
		block = malloc(len);
	else if (!strcmp(how, "calloc"))
		block = calloc(len / 8, 8);
	else if (!strcmp(how, "realloc"))
		block = realloc(malloc(100), len);
	else if (!strcmp(how, "aligned_alloc"))
		block = aligned_alloc(4096, len);
	else if (!strcmp(how, "posix_memalign"))
		must(!posix_memalign(&block, 4096, len), how);
	else
		block = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(block && block != MAP_FAILED, how);
	return block;
}

/* Whole pages of a block of LEN. */
static char *allocate_pages(const char *how)
{
	return page_start(allocate(how, LEN + PAGE_BYTES));
}

static void helped(const char *how)
{
	char *base = allocate_pages(how);
	size_t at = touch_until_helped(base, LEN);

	must(at, "nothing was made ahead");
	fill_pages(base, at, LEN);
	check_pages(base, 0, LEN);
}

/* From the end on. */
static void downwards(const char *how)
{
	char *base = allocate_pages(how);
	bool seen = false;
	long waited = 0;

	for (size_t end = LEN; end && !seen; end -= BLOCK) {
		for (size_t at = end; at > end - BLOCK; at -= PAGE_BYTES)
			base[at - PAGE_BYTES] = 1;
		for (int i = 0; i < 200 && !seen && waited < WAIT_MS; i++) {
			seen = end > BLOCK &&
			       count_present(base, end - BLOCK) > 0;
			sleep_ms(seen ? 0 : 5);
			waited += 5;
		}
	}
	must(seen, "nothing was made ahead");
}

/* How much more is present than was touched, once it stops. */
static void wastes(const char *how)
{
	char *base = allocate_pages(how);
	size_t at = touch_until_helped(base, LEN), half = LEN / 2, extra;

	must(at, "nothing was made ahead");
	for (; at < half; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(1);
	}
	sleep_ms(500);
	extra = count_present(base + at, LEN - at);
	if (extra > FIRST_PAGES(LEN) + at / PAGE_BYTES * 3 / 100)
		printf("%zu pages too many\n", extra);
	check_pages(base, 0, at);
}

/* Dense at first, and then a page in each 2 MiB: huge pages would be 512 times what it
 * stores to. */
static void thins_out(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t dense = LEN / 4, stored = dense / PAGE_BYTES, there, bound;

	for (size_t at = 0; at < dense; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(5);
	}
	for (size_t at = dense; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + PAGE_BYTES);
		stored++;
		sleep_ms(5);
	}
	sleep_ms(200);
	there = count_present(base, LEN);
	bound = FIRST_PAGES(LEN) + stored * 3 / 100;
	if (there > stored + bound)
		printf("%zu pages stored to, %zu present\n", stored, there);
	check_pages(base, 0, dense);
}

/* A page here and there, every fourth, or the first ones: nothing else is present, at least
 * where nothing is made ahead. */
static void scattered(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t nr = LEN / PAGE_BYTES, touched = 0;
	uint64_t random = 88172645463325252u;

	for (size_t i = 0; i < nr / 4; i++) {
		size_t page = i * (strcmp(how, "order") ? 4 : 1);

		if (!strcmp(how, "random")) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			page = random % nr;
		}
		if (!strcmp(how, "twos"))
			page -= i % 2 * 3;
		touched += !base[page * PAGE_BYTES];
		base[page * PAGE_BYTES] = 1;
		if (i % 512 == 511)
			sleep_ms(1);
	}
	sleep_ms(200);
	if (count_present(base, LEN) != touched)
		printf("%zu pages touched, %zu present\n", touched,
		       count_present(base, LEN));
}

static bool is_page_there(const char *page)
{
	unsigned char there = 0;

	must(!mincore((void *)page, PAGE_BYTES, &there), "mincore");
	return there & 1;
}

/* One of so many pages, downwards if it is negative, to the middle: nothing else is present
 * but some of those to come. */
static void walks(const char *how)
{
	char *base = allocate_pages("mmap");
	long step = strtol(how, NULL, 10), nr = (long)(LEN / PAGE_BYTES);
	long first = step < 0 ? nr - 1 : 0, waited = 0, ahead = 0, i;
	long count = nr / labs(step);

	for (i = 0; i < count / 2; i++) {
		base[(first + i * step) * (long)PAGE_BYTES] = 1;
		/* Until the next one but some is there already. */
		while (i % 256 == 255 && !ahead && waited < WAIT_MS &&
		       waited < i * 20) {
			for (long k = 1; k < 200; k++)
				ahead += is_page_there(
					base + (first + (i + k) * step) *
						       (long)PAGE_BYTES);
			sleep_ms(5);
			waited += 5;
		}
		if (i % 256 == 0)
			sleep_ms(2);
	}
	must(ahead, "nothing was made ahead");
	sleep_ms(300);
	for (ahead = 0, waited = 0; i < count; i++)
		ahead += is_page_there(base +
				       (first + i * step) * (long)PAGE_BYTES);
	if ((size_t)ahead > FIRST_PAGES(LEN) + (size_t)count / 2 * 3 / 100)
		printf("%ld pages too many\n", ahead);
	for (long page = 0; page < nr; page++)
		if ((page - first) % step &&
		    is_page_there(base + page * (long)PAGE_BYTES))
			waited++;
	if (waited)
		printf("%ld pages between\n", waited);
}

static void forks(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t at = touch_until_helped(base, LEN);
	int status = 0;
	pid_t child;

	must(at, "nothing was made ahead");
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
	must(waitpid(child, &status, 0) == child, "waitpid");
	must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
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
			must(WIFEXITED(status) && WEXITSTATUS(status) == 7,
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
static void traced(const char *how)
{
	pid_t child = fork();
	int status;

	if (!child) {
		char *base;

		must(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "traceme");
		raise(SIGSTOP);
		base = allocate_pages("malloc");
		must(touch_until_helped(base, LEN), "nothing was made ahead");
		fill_pages(base, 0, LEN);
		check_pages(base, 0, LEN);
		_exit(7);
	}
	must(waitpid(child, &status, 0) == child && WIFSTOPPED(status),
	     "waitpid");
	must(!ptrace(PTRACE_SETOPTIONS, child, NULL,
		     PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
	     "setoptions");
	must(!ptrace(PTRACE_CONT, child, NULL, NULL), "cont");
	must(follow_threads(child) > 0, "no thread was seen");
}

/* What the process has blocked stays pending: no other thread takes it. */
static void keeps_signals(const char *how)
{
	char *base = allocate_pages("malloc");
	sigset_t set, pending;

	must(touch_until_helped(base, LEN), "nothing was made ahead");
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int sig = 1; sig < 32; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || sig == SIGCONT ||
		    sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
		    sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS ||
		    sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
			continue;
		must(!kill(getpid(), sig), "kill");
		sigpending(&pending);
		must(sigismember(&pending, sig), "a signal was taken");
	}
}

/* The lowest number is free whenever the program expects it to be. */
static void keeps_descriptors(const char *how)
{
	char *base = allocate_pages("malloc");
	int expected = dup(1);

	must(expected >= 0 && !close(expected), "dup");
	for (size_t at = 0; at < LEN; at += PAGE_BYTES) {
		int fd = dup(1);

		base[at] = 1;
		must(fd == expected, "another thread took the number");
		must(!close(fd), "close");
	}
}

/* Nothing is made any more of what was given up. */
static void discards(const char *how)
{
	char *base = allocate_pages("malloc");

	must(touch_until_helped(base, LEN), "nothing was made ahead");
	must(!madvise(base, LEN, MADV_DONTNEED), "madvise");
	for (int i = 0; i < 100; i++) {
		must(!count_present(base, LEN), "made after it was discarded");
		sleep_ms(1);
	}
	for (size_t at = 0; at < LEN; at += PAGE_BYTES)
		must(!base[at], "contents");
}

/* A file with holes in place of memory keeps its holes. */
static void replaces(const char *how)
{
	for (int i = 0; i < 10; i++) {
		char *base = allocate_pages("mmap");
		int fd = memfd_create("holes", MFD_CLOEXEC);
		struct stat file;

		must(fd >= 0 && !ftruncate(fd, (off_t)LEN), "memfd");
		fill_pages(base, 0, LEN / 8 + (size_t)i * 3 * MIB);
		must(mmap(base, LEN, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd, 0) == base,
		     "mmap");
		sleep_ms(20);
		must(!fstat(fd, &file) && !file.st_blocks,
		     "pages of the file were made");
		munmap(base, LEN);
		close(fd);
	}
}

static void moves(const char *how)
{
	char *base = allocate("mmap", LEN), *moved;
	size_t at = touch_until_helped(base, LEN);

	must(at, "nothing was made ahead");
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must(moved != MAP_FAILED, "mremap");
	check_pages(moved, 0, at);
	fill_pages(moved, at, 2 * LEN);
	check_pages(moved, 0, 2 * LEN);
	must(!munmap(moved, 2 * LEN), "munmap");
}

/* Nor is anything made of a segment that comes there. */
static void becomes_segment(const char *how)
{
	for (int i = 0; i < 10; i++) {
		char *base = allocate_pages("mmap");
		int id = shmget(IPC_PRIVATE, LEN, 0600);
		size_t there;

		must(id >= 0, "shmget");
		fill_pages(base, 0, LEN / 8 + (size_t)i * 3 * MIB);
		must(shmat(id, base, SHM_REMAP) == base, "shmat");
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

	must(!getrusage(RUSAGE_THREAD, &usage), "getrusage");
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
static void cancelled(const char *how)
{
	unsigned nr_slept = 0;
	time_t end = time(NULL) + WAIT_MS / 1000;

	for (int i = 0; i < 50 || (!nr_slept && time(NULL) < end); i++) {
		struct unmapping unmapping = { 0 };
		pthread_t thread;

		must(!pthread_create(&thread, NULL, unmap_cancelled,
				     &unmapping) &&
			     !pthread_join(thread, NULL),
		     "thread");
		must(unmapping.unmapped, "munmap ended the thread");
		nr_slept += unmapping.has_slept;
	}
	must(nr_slept, "nothing was made ahead while memory was unmapped");
}

/* What is left of a mapping, with other memory in place of a part or not, is one to
 * mremap(), also if huge pages were advised for some of it. */
static char *quarter_made_ahead(void)
{
	char *base = allocate("mmap", LEN);
	size_t at = touch_until_helped(base, LEN);

	must(at, "nothing was made ahead");
	for (; at + BLOCK <= LEN / 4; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(2);
	}
	return base;
}

static void moves_rest(const char *how)
{
	char *base = quarter_made_ahead(), *moved, *other;

	must(!munmap(base + LEN / 4 * 3, BLOCK), "munmap");
	moved = mremap(base, LEN / 2, LEN, MREMAP_MAYMOVE);
	must(moved != MAP_FAILED, "mremap of what is left");
	check_pages(moved, 0, LEN / 4);
	base = quarter_made_ahead();
	other = mmap(base + LEN / 2, BLOCK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must(other != MAP_FAILED, "mmap");
	moved = mremap(base, LEN, 2 * LEN, MREMAP_MAYMOVE);
	must(moved != MAP_FAILED, "mremap with other memory in it");
	check_pages(moved, 0, LEN / 4);
}

static unsigned nr_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned nr = 0;

	must(tasks != NULL, "/proc/self/task");
	while (readdir(tasks))
		nr++;
	closedir(tasks);
	return nr - 2;
}

/* From what is too small to be watched. */
static void grows(const char *how)
{
	char *base = allocate("mmap", BLOCK);
	size_t at;

	fill_pages(base, 0, BLOCK);
	base = mremap(base, BLOCK, LEN, MREMAP_MAYMOVE);
	must(base != MAP_FAILED, "mremap");
	must(nr_threads() > 1, "it is not watched");
	at = touch_until_helped(base, LEN);
	must(at, "nothing was made ahead");
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

	must(fd >= 0 && !ftruncate(fd, (off_t)LEN), "memfd");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char *base = mmap(NULL, BLOCK, kinds[i].prot, kinds[i].flags,
				  kinds[i].fd, 0);

		must(base != MAP_FAILED, "mmap");
		base = mremap(base, BLOCK, LEN, MREMAP_MAYMOVE);
		must(base != MAP_FAILED, "mremap");
		must(!munmap(base, LEN), "munmap");
	}
	must(nr_threads() == 1, "a mapping is watched");
}

static void reallocates(const char *how)
{
	size_t len = 40 * MIB;
	char *block = malloc(len);

	must(block != NULL, "malloc");
	memset(block, 1, len);
	for (; len < 2 * LEN; len += len / 2) {
		block = realloc(block, len + len / 2);
		must(block != NULL, "realloc");
		for (size_t at = 0; at < len; at += PAGE_BYTES)
			must(block[at] == 1, "contents");
		memset(block + len, 1, len / 2);
	}
	free(block);
}

/* Maps, touches, changes and unmaps without end. */
static void *map_and_unmap(void *arg)
{
	size_t seed = (size_t)arg;

	for (int i = 0; i < 20; i++) {
		size_t len = 32 * MIB + (seed * 7 + (size_t)i) % 9 * MIB;
		char *block = i % 2 ? malloc(len)
				    : mmap(NULL, len, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must(block && block != MAP_FAILED, "map");
		if (i % 2) {
			memset(block, (int)seed, len / 2);
			must(block[len / 2 - 1] == (char)seed, "contents");
			free(block);
			continue;
		}
		fill_pages(block, 0, len / 2);
		must(!mprotect(block + len / 4, PAGE_BYTES, PROT_NONE) &&
			     !madvise(block + len / 2, len / 2, MADV_FREE),
		     "change");
		check_pages(block, 0, len / 4);
		must(!munmap(block, len), "munmap");
	}
	return NULL;
}

static void ten_threads(const char *how)
{
	pthread_t threads[10];

	for (size_t i = 0; i < 10; i++)
		must(!pthread_create(&threads[i], NULL, map_and_unmap,
				     (void *)(i + 1)),
		     "pthread_create");
	for (size_t i = 0; i < 10; i++)
		pthread_join(threads[i], NULL);
}

/* A thread of ours by its name: the value of a line of its status; -1: none has that. */
static long status_value(const char *thread, const char *line)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	long value = -1;

	must(tasks != NULL, "/proc/self/task");
	while (value < 0 && (task = readdir(tasks))) {
		char path[300], text[128], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 task->d_name);
		file = fopen(path, "r");
		while (file && fgets(text, sizeof(text), file)) {
			if (sscanf(text, "Name: %31s", name) == 1 &&
			    strcmp(name, thread))
				break;
			if (!strncmp(text, line, strlen(line)))
				value = strtol(text + strlen(line), NULL, 10);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return value;
}

static long watcher_sleeps(void)
{
	long nr = status_value("ktask-ahead", "voluntary_ctxt_switches:");

	return nr < 0 ? 0 : nr;
}

/* As sched_getattr(2) tells it. */
static uint64_t slice_of(pid_t thread)
{
	struct sched_attr_v0 attr = { 0 };

	must(!syscall(SYS_sched_getattr, thread, &attr, sizeof(attr), 0),
	     "sched_getattr");
	return attr.runtime;
}

/* With it helpers get another priority, and so another slice. */
static void drop_right_to_raise(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct rights[2];

	must(!syscall(SYS_capget, &header, rights), "capget");
	rights[0].effective &= ~(1u << CAP_SYS_NICE);
	rights[0].permitted &= ~(1u << CAP_SYS_NICE);
	must(!syscall(SYS_capset, &header, rights), "capset");
}

#define SHORT_SLICE_NS 100000 /* the watcher's; it makes the helpers */

static void ordinary_slices(const char *how)
{
	uint64_t own = slice_of(0);
	long helper;
	char *base;

	drop_right_to_raise();
	base = allocate_pages("malloc");
	must(touch_until_helped(base, LEN), "nothing was made ahead");
	helper = status_value("ktask", "Pid:");
	/* They end when they idle. */
	must(helper > 0, "nothing was made ahead: the helpers have left");
	must(slice_of((pid_t)helper) == own ||
		     slice_of((pid_t)helper) > SHORT_SLICE_NS,
	     "slices of a helper are short");
}

/* With a limit that a stack would count against. */
static void threads(const char *how)
{
	char *base = allocate_pages("malloc");

	fill_pages(base, 0, LEN);
	/* One that begins only to end needs a CPU for that. */
	for (int i = 0; i < WAIT_MS / 5 && nr_threads() > 1; i++)
		sleep_ms(5);
	printf("%u threads\n", nr_threads());
}

static void write_number(const char *group, const char *name, long number)
{
	char path[300], text[32];
	int fd, len = snprintf(text, sizeof(text), "%ld\n", number);

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && write(fd, text, (size_t)len) == len, path);
	close(fd);
}

static void *wait_for_byte(void *fd)
{
	char byte;

	must(read(*(int *)fd, &byte, 1) == 0, "read");
	return NULL;
}

#define LAST_THREADS 3

/* In a control group that has this thread and those: they are the program's. */
static void last_threads(const char *group)
{
	pthread_t made[LAST_THREADS];
	int ends[2];
	char *base;

	write_number(group, "cgroup.procs", getpid());
	write_number(group, "pids.max", 1 + LAST_THREADS);
	base = allocate_pages("malloc");
	for (size_t at = 0; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(1);
	}
	must(!pipe(ends), "pipe");
	for (int i = 0; i < LAST_THREADS; i++)
		must(!pthread_create(&made[i], NULL, wait_for_byte, &ends[0]),
		     "pthread_create");
	close(ends[1]);
	for (int i = 0; i < LAST_THREADS; i++)
		pthread_join(made[i], NULL);
	check_pages(base, 0, LEN);
}

/* As many MiB as are told. */
static void fills(const char *how)
{
	size_t len = strtoul(how, NULL, 10) * MIB;
	char *block = malloc(len);

	must(block != NULL, "malloc");
	for (size_t at = 0; at < len; at += PAGE_BYTES)
		block[at] = 1;
}

/* The kernel's account of mappings. */
struct account {
	FILE *file;
	uintptr_t start, end;
	char line[512];
};

/* The next line on mappings of LEN bytes that begins with @name, such as "Rss:". */
static bool next_line(struct account *account, const char *base,
		      const char *name)
{
	uintptr_t from, to;

	while (fgets(account->line, sizeof(account->line), account->file)) {
		if (sscanf(account->line, "%lx-%lx ", &from, &to) == 2) {
			account->start = from;
			account->end = to;
		} else if (account->start < (uintptr_t)base + LEN &&
			   account->end > (uintptr_t)base &&
			   !strncmp(account->line, name, strlen(name))) {
			return true;
		}
	}
	return false;
}

static size_t sum_kib(const char *base, const char *name)
{
	struct account account = { fopen("/proc/self/smaps", "r"), 0, 0, "" };
	size_t kib = 0;

	must(account.file != NULL, "smaps");
	while (next_line(&account, base, name))
		kib += account_value(account.line);
	fclose(account.file);
	return kib;
}

static bool is_advised(const char *base)
{
	struct account account = { fopen("/proc/self/smaps", "r"), 0, 0, "" };
	bool found = false;

	must(account.file != NULL, "smaps");
	while (!found && next_line(&account, base, "VmFlags:"))
		found = strstr(account.line, " hg");
	fclose(account.file);
	return found;
}

/* Nobody advises what the program did not ask for. */
static void small_unadvised(const char *how)
{
	char *base = allocate_pages("mmap");

	for (size_t at = 0; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(2);
		must(!is_advised(base), "huge pages were advised");
	}
	check_pages(base, 0, LEN);
}

static atomic_uint nr_spinning;

static void *spin_for_ever(void *unused)
{
	atomic_fetch_add(&nr_spinning, 1);
	for (;;)
		;
	return NULL;
}

/* Threads of the program keep all CPUs busy: no helper could get one. */
static void fills_cpus(const char *how)
{
	unsigned nr = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	char *base = allocate_pages("malloc");
	long waited = 0, sleeps = 0;
	bool seen = false;
	pthread_t thread;

	for (unsigned i = 0; i < nr; i++)
		must(!pthread_create(&thread, NULL, spin_for_ever, NULL),
		     "pthread_create");
	while (atomic_load(&nr_spinning) < nr)
		sleep_ms(1);
	for (size_t at = 0; at < LEN && !seen; at += BLOCK) {
		/* Nothing is advised before so much was touched. */
		if (at == 4 * BLOCK)
			sleeps = watcher_sleeps();
		fill_pages(base, at, at + BLOCK);
		for (int i = 0; i < 40 && !seen && waited < WAIT_MS; i++) {
			seen = is_advised(base);
			sleep_ms(seen ? 0 : 5);
			waited += 5;
		}
	}
	must(seen || watcher_sleeps() - sleeps < 100,
	     "no huge pages were advised");
	must(seen, "nothing was made ahead: the watcher got no CPU");
	check_pages(base, 0, BLOCK);
}

/* What the program says of the size of its pages. */
static void small_pages(const char *how)
{
	char *base = allocate("mmap", LEN);

	must(!madvise(base, LEN, MADV_NOHUGEPAGE), "madvise");
	fill_pages(base, touch_until_helped(base, LEN), LEN);
	check_pages(base, 0, LEN);
	must(!sum_kib(base, "AnonHugePages:"), "huge pages against advice");
}

/* The kernel's page of zeros is in no account: what is there was made in vain. */
static void reads(const char *how)
{
	const char *base = allocate_pages("mmap");
	size_t wasted;

	for (size_t at = 0; at < LEN; at += PAGE_BYTES) {
		must(!*(const volatile char *)(base + at), "contents");
		if (!(at % BLOCK))
			sleep_ms(5);
	}
	wasted = sum_kib(base, "Anonymous:") * 1024 / PAGE_BYTES;
	if (wasted > FIRST_PAGES(LEN) + LEN / PAGE_BYTES * 3 / 100)
		printf("%zu pages made\n", wasted);
}

static const struct {
	const char *name;
	void (*run)(const char *how);
} cases[] = {
	{ "helped", helped },
	{ "downwards", downwards },
	{ "wastes", wastes },
	{ "thins-out", thins_out },
	{ "scattered", scattered },
	{ "walks", walks },
	{ "reads", reads },
	{ "forks", forks },
	{ "traced", traced },
	{ "signals", keeps_signals },
	{ "descriptors", keeps_descriptors },
	{ "discards", discards },
	{ "replaces", replaces },
	{ "becomes-segment", becomes_segment },
	{ "cancelled", cancelled },
	{ "moves", moves },
	{ "moves-rest", moves_rest },
	{ "grows", grows },
	{ "grows-otherwise", grows_otherwise },
	{ "reallocates", reallocates },
	{ "ten-threads", ten_threads },
	{ "fills", fills },
	{ "threads", threads },
	{ "last-threads", last_threads },
	{ "small-pages", small_pages },
	{ "small-unadvised", small_unadvised },
	{ "fills-cpus", fills_cpus },
	{ "slices", ordinary_slices },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(argc > 2 ? argv[2] : "malloc");
		puts("ok");
		return 0;
	}
	return 2;
}
