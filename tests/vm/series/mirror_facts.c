/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who mirrors memory, as a device with page tables of its own does: when that memory is
 * unmapped, or its process ends, the mirror has nothing of it afterwards.  It is told once
 * for all of it, whichever threads unmap it: from before the first page goes until the last
 * one is gone nobody can ask the kernel for pages of a mirror.
 *
 * The mirror is the kernel's own device for tests (CONFIG_TEST_HMM).  How often the kernel's
 * functions are called cannot be seen from here: it would take CONFIG_KPROBES.  So a thread
 * asks for a page elsewhere all the time, and none of its requests may begin and end while
 * the memory is half unmapped.  Nobody can ask while a process ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

#define MIRROR "/dev/hmm_dmirror0"
#define LEN (96 * MIB) /* for helpers it takes 64 MiB in small pages */
#define PIECE MIB
#define ROUNDS 3
#define POOL_LEN (10 * HUGE) /* of that kind of memory */
#define BESIDE \
	HUGE /* a hole that begins within a huge page is told as beginning there */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* What lib/test_hmm.c takes. */
struct mirror_request {
	uint64_t addr;
	uint64_t data;
	uint64_t nr_pages;
	uint64_t nr_copied;
	uint64_t nr_faults; /* how often the mirror had to ask for a page */
};

#define MIRROR_READ _IOWR('H', 0, struct mirror_request)
#define MIRROR_WRITE _IOWR('H', 1, struct mirror_request)
#define MIRROR_SNAPSHOT _IOWR('H', 4, struct mirror_request)

/* ---- a mirror ---- */

/* Return: 0 or an errno. */
static int ask_mirror(int mirror, unsigned long request, const char *addr,
		      void *data, size_t len, long *nr_faults)
{
	struct mirror_request asked = {
		.addr = (uintptr_t)addr,
		.data = (uintptr_t)data,
		.nr_pages = len / PAGE,
	};
	int error = ioctl(mirror, request, &asked) ? errno : 0;

	if (nr_faults)
		*nr_faults = (long)asked.nr_faults;
	return error;
}

/* Half of it is written by the device, as it is, where it may. */
static bool mirror_memory(int mirror, char *addr, size_t len, bool writes)
{
	static char data[PIECE], same[PIECE];

	for (size_t at = 0; at < len; at += PIECE) {
		if (ask_mirror(mirror, MIRROR_READ, addr + at, data, PIECE,
			       NULL))
			return false;
		memcpy(same, addr + at, PIECE);
		if (memcmp(same, data, PIECE))
			return false;
		if (writes && at >= len / 2 &&
		    ask_mirror(mirror, MIRROR_WRITE, addr + at, data, PIECE,
			       NULL))
			return false;
	}
	return true;
}

/* Pages that the mirror has without asking for them, or can get. */
static long count_mirrored(int mirror, const char *addr, size_t len)
{
	static char data[PAGE];
	long nr = 0;

	for (size_t at = 0; at < len; at += PAGE)
		nr += !ask_mirror(mirror, MIRROR_READ, addr + at, data, PAGE,
				  NULL);
	return nr;
}

/* Pages that it has without asking. */
static long count_kept(int mirror, const char *addr, size_t len)
{
	static char data[PAGE];
	long nr = 0, faults;

	for (size_t at = 0; at < len; at += PAGE)
		nr += !ask_mirror(mirror, MIRROR_READ, addr + at, data, PAGE,
				  &faults) &&
		      !faults;
	return nr;
}

/* ---- who asks meanwhile ---- */

struct watcher {
	int mirror, statm;
	char *page;
	long before; /* pages that the process had */
	long leaving; /* of them, those that are unmapped */
	int ready, done;
	int nr_within; /* requests that began and ended while pages went */
	int nr_across; /* that began before the last one went and ended behind it */
	pthread_t thread;
};

static long resident_pages(const struct watcher *watcher)
{
	char text[100] = "";
	long resident = 0;

	if (pread(watcher->statm, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%*d %ld", &resident);
	return resident;
}

/* In quarters of what is unmapped; the kernel counts some pages late. */
static int quarters_left(const struct watcher *watcher)
{
	long gone = watcher->before - resident_pages(watcher);

	return gone < 0 ? 4 : 4 - (int)(4 * gone / watcher->leaving);
}

static void *watch_mirror(void *arg)
{
	struct watcher *watcher = arg;
	char access;
	int left, then;

	while (!__atomic_load_n(&watcher->done, __ATOMIC_SEQ_CST)) {
		left = quarters_left(watcher);
		ask_mirror(watcher->mirror, MIRROR_SNAPSHOT, watcher->page,
			   &access, PAGE, NULL);
		then = quarters_left(watcher);
		/* At 4 all may be there still, and at 1 all may be gone. */
		watcher->nr_within += left < 4 && then > 1;
		watcher->nr_across += left > 1 && then <= 1;
		__atomic_store_n(&watcher->ready, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static bool begin_watching(struct watcher *watcher, int mirror, size_t leaving)
{
	*watcher = (struct watcher){
		.mirror = mirror,
		.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
		.page = map_memory(PAGE, MADV_NOHUGEPAGE),
		.leaving = (long)(leaving / PAGE),
	};
	*watcher->page = 1;
	watcher->before = resident_pages(watcher);
	if (pthread_create(&watcher->thread, NULL, watch_mirror, watcher))
		return false;
	while (!__atomic_load_n(&watcher->ready, __ATOMIC_SEQ_CST))
		usleep(1000);
	return true;
}

static void end_watching(struct watcher *watcher)
{
	__atomic_store_n(&watcher->done, 1, __ATOMIC_SEQ_CST);
	pthread_join(watcher->thread, NULL);
}

/* ---- rounds ---- */

/* Of all rounds; shared with the processes that make them. */
struct findings {
	int nr_rounds, nr_helped;
	int nr_failed; /* rounds in which something could not be done, */
	int status; /* and how the last of them ended */
	int nr_within, nr_across; /* of watchers */
	long left; /* pages that a mirror still had */
	long kept[2]; /* in front of the memory that went, and behind it */
};

static struct findings *findings;

static bool is_enough(bool watched)
{
	if (watched && !findings->nr_across)
		return false;
	return findings->nr_rounds >= ROUNDS &&
	       (findings->nr_helped || !helpers_expected());
}

/* Some, and more until helpers came, and somebody asked meanwhile. */
static void make_rounds(void (*make)(void *arg), void *arg, bool watched)
{
	double until = seconds_now() + HELPER_SECONDS;
	int status;

	memset(findings, 0, sizeof(*findings));
	while (!is_enough(watched) && findings->nr_failed < ROUNDS &&
	       seconds_now() < until) {
		status = run_child(make, arg);
		if (status) {
			findings->status = status;
			findings->nr_failed++;
		}
	}
}

static void tell_findings(const char *what, bool watched)
{
	check_that(!findings->nr_failed &&
			   (findings->nr_helped || !helpers_expected()),
		   "%s, mirrored: %d of %d rounds were helped, "
		   "%d failed (%d)",
		   what, findings->nr_helped, findings->nr_rounds,
		   findings->nr_failed, findings->status);
	check_that(!findings->left, "a mirror keeps nothing, %s: %ld pages",
		   what, findings->left);
	if (watched)
		check_that(findings->nr_across && !findings->nr_within,
			   "a mirror is told once, %s: %d asked meanwhile, %d "
			   "waited",
			   what, findings->nr_within, findings->nr_across);
}

/* ---- munmap() ---- */

/* Of memory that is mirrored already; @resident: of it, what counts as the process's. */
static void unmap_mirrored(int mirror, char *addr, size_t len, size_t resident)
{
	long helped = helpers_worked();
	struct watcher watcher;

	if (!begin_watching(&watcher, mirror, resident))
		_exit(3);
	munmap(addr, len);
	end_watching(&watcher);
	findings->nr_rounds++;
	findings->nr_helped += helpers_worked() > helped;
	findings->nr_within += watcher.nr_within;
	findings->nr_across += watcher.nr_across;
	findings->left += count_mirrored(mirror, addr, len);
}

struct unmapping {
	const char *name;
	const struct memory_kind *kind;
	bool writes; /* all of it may be written */
	size_t of_pool; /* bytes of it, which do not count as the process's */
};

static void unmap_kind(void *arg)
{
	const struct unmapping *unmapping = arg;
	int mirror = open(MIRROR, O_RDWR | O_CLOEXEC);
	size_t len = LEN;
	char *addr = unmapping->kind->map(&len);

	if (mirror < 0 || !addr)
		_exit(1);
	if (!mirror_memory(mirror, addr, len, unmapping->writes))
		_exit(2);
	unmap_mirrored(mirror, addr, len, len - unmapping->of_pool);
}

static void tell_kinds(void)
{
	struct unmapping kinds[] = {
		{ "small pages", &memory_kinds[0], true, 0 },
		{ "many mappings", &memory_kinds[7], false, 0 },
		{ "neighbours of a pool", &memory_kinds[8], true, POOL_LEN },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		make_rounds(unmap_kind, &kinds[i], true);
		tell_findings(kinds[i].name, true);
	}
}

/* What lies beside it stays in the mirror. */
static void unmap_between(void *arg)
{
	int mirror = open(MIRROR, O_RDWR | O_CLOEXEC);
	char *addr = map_memory(LEN + 2 * BESIDE, MADV_NOHUGEPAGE);

	(void)arg;
	if (mirror < 0 || !addr)
		_exit(1);
	populate_memory(addr, LEN + 2 * BESIDE);
	if (!mirror_memory(mirror, addr, LEN + 2 * BESIDE, true))
		_exit(2);
	unmap_mirrored(mirror, addr + BESIDE, LEN, LEN);
	findings->kept[0] = count_kept(mirror, addr, BESIDE);
	findings->kept[1] = count_kept(mirror, addr + LEN + BESIDE, BESIDE);
}

static void tell_between(void)
{
	make_rounds(unmap_between, NULL, true);
	tell_findings("between small pages", true);
	for (int i = 0; i < 2; i++) {
		tell_fact_number(findings->kept[i],
				 "mirror: pages kept beside a hole, %d", i);
		check_that(findings->kept[i] > 0,
			   "a mirror keeps what lies beside a hole: %ld pages",
			   findings->kept[i]);
	}
}

/* ---- the end of a process ---- */

/* What a process that mirrors its memory tells its parent. */
struct mirrored {
	int fd; /* of its own; -1: it failed */
	char *addr;
};

static void live_mirrored(int told)
{
	struct mirrored mirrored = { open(MIRROR, O_RDWR | O_CLOEXEC), NULL };
	size_t len = LEN;

	mirrored.addr = memory_kinds[0].map(&len);
	if (!mirrored.addr ||
	    !mirror_memory(mirrored.fd, mirrored.addr, len, true))
		mirrored.fd = -1;
	if (write(told, &mirrored, sizeof(mirrored)) != sizeof(mirrored))
		_exit(1);
	for (;;)
		pause();
}

/* Its mirror outlives it: it is this process's as well. */
static void kill_mirrored(pid_t pid, int told)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), mirror = -1;
	struct mirrored mirrored = { -1, NULL };
	long helped;

	if (read(told, &mirrored, sizeof(mirrored)) == sizeof(mirrored))
		mirror = (int)syscall(SYS_pidfd_getfd, pidfd, mirrored.fd, 0);
	helped = helpers_worked();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (mirror < 0)
		_exit(1);
	findings->nr_rounds++;
	findings->nr_helped += helpers_worked() > helped;
	findings->left += count_mirrored(mirror, mirrored.addr, LEN);
}

static void end_mirrored(void *arg)
{
	int ends[2];
	pid_t pid;

	(void)arg;
	if (pipe(ends))
		_exit(1);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		live_mirrored(ends[1]);
	}
	close(ends[1]);
	kill_mirrored(pid, ends[0]);
}

static void tell_end(void)
{
	make_rounds(end_mirrored, NULL, false);
	tell_findings("the end of a process", false);
}

/*
 * Not page tables: Linux 7.3 still counts some of processes that have ended here, by rounds,
 * with the series and without it (24 to 44), and how many rounds there are differs.
 */
static long anonymous_pages(void)
{
	struct use use;

	read_use(&use);
	return number_in("/proc/vmstat", "nr_anon_pages ");
}

void tell_mirror_facts(void)
{
	long before;

	if (access(MIRROR, F_OK)) {
		if (is_of_series())
			check_that(false, "the kernel has a mirror of memory");
		else
			skip_check("this kernel has no test_hmm",
				   "the kernel has a mirror of memory");
		return;
	}
	pool_set(&pool_2m, 20);
	findings = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(findings, 0, sizeof(*findings));
	run_child(end_mirrored, NULL);
	before = anonymous_pages();
	tell_kinds();
	tell_between();
	tell_end();
	tell_fact_number(anonymous_pages() - before,
			 "mirrors, all over: anonymous pages more");
	pool_set(&pool_2m, 0);
}
