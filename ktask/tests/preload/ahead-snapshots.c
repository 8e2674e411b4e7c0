/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that saves another one while that one's memory is made ahead of its touches,
 * and restores what it saved into a third: all as a checkpointing program does it.
 *
 *	ahead-snapshots stop|trace
 *
 * The pages that are present are those that the program touched, and pages of zeros.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "touches.h"

#define LEN (128 * MIB)
#define NR_PAGES (LEN / PAGE_BYTES)
#define NR_ROUNDS 4
#define NR_TRACED 32

/* What the touching program tells, and how often it was saved, in shared memory. */
struct progress {
	char *volatile base;
	volatile size_t filled;
	volatile size_t nr_saved;
};

struct target {
	pid_t process;
	int memory, pagemap; /* its files in /proc */
	char *base;
};

struct snapshot {
	uint64_t entries[NR_PAGES];
	char pages[LEN];
};

static struct progress *share_progress(void)
{
	void *shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_hold(shared != MAP_FAILED, "mmap");
	return shared;
}

static char *map_pages(void)
{
	char *base = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	return base;
}

static int open_file_of(pid_t process, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
	fd = open(path, flags | O_CLOEXEC);
	must_hold(fd >= 0, path);
	return fd;
}

static struct target open_target(pid_t process, char *base)
{
	return (struct target){
		process,
		open_file_of(process, "mem", O_RDWR),
		open_file_of(process, "pagemap", O_RDONLY),
		base,
	};
}

/* ---- the program that is saved ---- */

/* It goes on with its next part once it was saved, so that it is still there when it is
 * saved next, however late that is. */
static void wait_to_be_saved(const struct progress *progress, size_t at)
{
	while (at >= LEN / (NR_ROUNDS + 1) * (progress->nr_saved + 1) &&
	       progress->nr_saved < NR_ROUNDS)
		sleep_ms(1);
}

/* A pause every 128 KiB, so that it is stopped in the midst of it. */
static void touch_all(struct progress *progress)
{
	char *base = map_pages();
	size_t at = touch_until_helped(base, LEN);

	must_hold(at, "nothing was made ahead");
	progress->filled = at;
	progress->base = base;
	for (; at < LEN; at += PAGE_BYTES) {
		fill_pages(base, at, at + PAGE_BYTES);
		progress->filled = at + PAGE_BYTES;
		if (at % (32 * PAGE_BYTES) == 0) {
			sleep_ms(2);
			wait_to_be_saved(progress, at);
		}
	}
	check_pages(base, 0, LEN);
	_exit(7);
}

/* ---- the one into which it is restored ---- */

/* It has a mapping of its own that is watched. */
static void be_frame(struct progress *progress)
{
	progress->base = map_pages();
	for (;;)
		pause();
}

static void wait_for_base(const struct progress *progress, pid_t process)
{
	while (!progress->base) {
		int status;

		if (waitpid(process, &status, WNOHANG) > 0)
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
		sleep_ms(1);
	}
}

/* ---- stopping ---- */

static pid_t traced[NR_TRACED];
static unsigned nr_traced;

static bool is_traced(pid_t thread)
{
	for (unsigned i = 0; i < nr_traced; i++)
		if (traced[i] == thread)
			return true;
	return false;
}

/* Return: whether there was a thread that had not been stopped. */
static bool trace_threads(pid_t process)
{
	DIR *tasks = fdopendir(
		open_file_of(process, "task", O_RDONLY | O_DIRECTORY));
	struct dirent *task;
	bool found = false;

	must_hold(tasks != NULL, "task");
	while ((task = readdir(tasks))) {
		pid_t thread = atoi(task->d_name);
		int status;

		if (thread <= 0 || is_traced(thread))
			continue;
		found = true;
		/* It may have ended by now. */
		if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) ||
		    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) ||
		    waitpid(thread, &status, __WALL) != thread ||
		    !WIFSTOPPED(status))
			continue;
		must_hold(nr_traced < NR_TRACED, "more threads than expected");
		traced[nr_traced++] = thread;
	}
	closedir(tasks);
	return found;
}

static void stop_process(pid_t process, bool trace)
{
	int status;

	if (trace) {
		for (int i = 0; i < 1000 && trace_threads(process); i++)
			;
		must_hold(nr_traced, "nothing may be traced");
		return;
	}
	must_hold(!kill(process, SIGSTOP), "kill");
	must_hold(waitpid(process, &status, WUNTRACED) == process, "waitpid");
	must_hold(WIFSTOPPED(status), "it has ended too soon");
}

static void continue_process(pid_t process, bool trace)
{
	if (!trace) {
		must_hold(!kill(process, SIGCONT), "kill");
		return;
	}
	while (nr_traced)
		ptrace(PTRACE_DETACH, traced[--nr_traced], NULL, NULL);
}

/* ---- saving and restoring ---- */

static bool is_present(uint64_t entry)
{
	return entry >> 62; /* or swapped out */
}

static void read_entries(const struct target *from, uint64_t *entries)
{
	off_t at = (off_t)((uintptr_t)from->base / PAGE_BYTES * 8);

	must_hold(pread(from->pagemap, entries, NR_PAGES * 8, at) ==
			  NR_PAGES * 8,
		  "pagemap");
}

static void save_snapshot(const struct target *from, struct snapshot *saved)
{
	static uint64_t again[NR_PAGES];

	read_entries(from, saved->entries);
	memset(saved->pages, 0, LEN);
	for (size_t i = 0; i < NR_PAGES; i++) {
		off_t at =
			(off_t)(uintptr_t)from->base + (off_t)(i * PAGE_BYTES);

		if (is_present(saved->entries[i]))
			must_hold(pread(from->memory,
					saved->pages + i * PAGE_BYTES,
					PAGE_BYTES, at) == PAGE_BYTES,
				  "pread");
	}
	read_entries(from, again);
	for (size_t i = 0; i < NR_PAGES; i++)
		must_hold(is_present(again[i]) == is_present(saved->entries[i]),
			  "pages came or went while it was stopped");
}

/* Return: pages that are there and were not touched.  It may have been stopped between
 * the touch of a page and its note. */
static size_t check_snapshot(const struct snapshot *saved, size_t filled)
{
	static const char zeros[PAGE_BYTES];
	size_t ahead = 0;

	check_pages(saved->pages, 0, filled);
	for (size_t i = 0; i < NR_PAGES; i++) {
		bool present = is_present(saved->entries[i]);

		if (i < filled / PAGE_BYTES)
			must_hold(present, "a page that was touched is absent");
		else if (i > filled / PAGE_BYTES)
			must_hold(!memcmp(saved->pages + i * PAGE_BYTES, zeros,
					  PAGE_BYTES),
				  "a page that was not touched is not empty");
		ahead += present && i > filled / PAGE_BYTES;
	}
	return ahead;
}

static void restore_page(const struct target *to, char *page, char *at,
			 bool by_file)
{
	struct iovec local = { page, PAGE_BYTES }, remote = { at, PAGE_BYTES };
	ssize_t written = by_file ? pwrite(to->memory, page, PAGE_BYTES,
					   (off_t)(uintptr_t)at)
				  : process_vm_writev(to->process, &local, 1,
						      &remote, 1, 0);

	must_hold(written == PAGE_BYTES, "restore");
}

/* Then all of it, absent pages too, is what was saved. */
static void restore_snapshot(const struct target *to, struct snapshot *saved,
			     bool by_file)
{
	static char read[MIB];

	for (size_t i = 0; i < NR_PAGES; i++)
		if (is_present(saved->entries[i]))
			restore_page(to, saved->pages + i * PAGE_BYTES,
				     to->base + i * PAGE_BYTES, by_file);
	for (size_t at = 0; at < LEN; at += MIB) {
		must_hold(pread(to->memory, read, MIB,
				(off_t)((uintptr_t)to->base + at)) ==
				  (ssize_t)MIB,
			  "pread");
		must_hold(!memcmp(read, saved->pages + at, MIB),
			  "what was restored differs");
	}
}

/* Return: as check_snapshot(). */
static size_t take_checkpoint(const struct target *from,
			      const struct progress *progress, bool trace,
			      bool by_file)
{
	static struct snapshot saved;
	struct progress *shared = share_progress();
	struct target to;
	size_t ahead;
	pid_t frame;

	stop_process(from->process, trace);
	save_snapshot(from, &saved);
	ahead = check_snapshot(&saved, progress->filled);
	continue_process(from->process, trace);

	frame = fork();
	must_hold(frame >= 0, "fork");
	if (!frame)
		be_frame(shared);
	wait_for_base(shared, frame);
	to = open_target(frame, shared->base);
	restore_snapshot(&to, &saved, by_file);
	must_hold(!kill(frame, SIGKILL) && waitpid(frame, NULL, 0) == frame,
		  "the frame");
	close(to.memory);
	close(to.pagemap);
	return ahead;
}

int main(int argc, char **argv)
{
	bool trace = argc > 1 && !strcmp(argv[1], "trace");
	struct progress *progress = share_progress();
	struct target from;
	size_t ahead = 0;
	pid_t child = fork();
	int status;

	must_hold(child >= 0, "fork");
	if (!child)
		touch_all(progress);
	wait_for_base(progress, child);
	from = open_target(child, progress->base);
	for (int i = 0; i < NR_ROUNDS; i++) {
		ahead += take_checkpoint(&from, progress, trace, i % 2);
		progress->nr_saved++;
		sleep_ms(30);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	must_hold(WIFEXITED(status) && WEXITSTATUS(status) == 7, "contents");
	must_hold(ahead, "nothing was made ahead: not where it was stopped");
	puts("ok");
	return 0;
}
