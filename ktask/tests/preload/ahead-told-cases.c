/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that tell the kernel how their memory is to be made, locked or limited, when
 * some of it was made ahead.  Each does what it would do without that, and ends with "ok",
 * or tells what it found.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ahead_cases.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static bool is_shimmed(void)
{
	return getenv("LD_PRELOAD") != NULL;
}

/* With time for the watcher to begin a window after each block. */
static void fill_slowly(char *base, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(3);
	}
}

/* In order, and with the shim until something is made ahead. */
static void fill_to(char *base, size_t to)
{
	size_t at = is_shimmed() ? touch_until_helped(base, to) : 0;

	must_hold(at || !is_shimmed(), "nothing was made ahead");
	fill_slowly(base, at, to);
}

/* Of whole huge pages, with others of its kind beside it. */
static char *map_aligned(size_t len)
{
	char *base = allocate_block("mmap", len + BLOCK);

	return (char *)(((uintptr_t)base + BLOCK - 1) & ~(BLOCK - 1));
}

/* Nothing but what is touched becomes present where the rest must not be made. */
#define REST (LEN / 2)
static void fill_alone(char *rest)
{
	must_hold(!count_present(rest, REST), "it is present before");
	for (size_t at = 0; at < REST / 4; at += BLOCK) {
		fill_pages(rest, at, at + BLOCK);
		sleep_ms(10);
	}
	if (count_present(rest, REST) != REST / 4 / PAGE_BYTES)
		printf("%zu pages too many\n",
		       count_present(rest, REST) - REST / 4 / PAGE_BYTES);
}

/* ---- advice ---- */

/* Pages of single stores, far ahead. */
static void count_stores(char *base, size_t from, size_t to)
{
	size_t before = count_present(base + from, to - from);

	for (size_t at = from; at < to; at += 2 * BLOCK)
		base[at] = 1;
	printf("%zu stores: %zu pages\n", (to - from) / (2 * BLOCK),
	       count_present(base + from, to - from) - before);
}

static void advises_part(const char *how)
{
	char *base = map_aligned(LEN);
	int advice = strcmp(how, "small") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;

	fill_to(base, LEN / 4);
	must_hold(!madvise(base + LEN - 4 * BLOCK, BLOCK, advice), "madvise");
	must_hold(!madvise(base + LEN - BLOCK, PAGE_BYTES, MADV_DONTNEED),
		  "madvise");
	sleep_ms(20);
	count_stores(base, LEN / 2, LEN - 8 * BLOCK);
}

/* As numpy advises: from the next page on. */
static void advises_most(const char *how)
{
	char *base = allocate_block("mmap", LEN);

	must_hold(!madvise(base + PAGE_BYTES, LEN - PAGE_BYTES, MADV_HUGEPAGE),
		  "madvise");
	must_hold(touch_until_helped(base, LEN), "nothing was made ahead");
}

/* Others may use its pages for a moment. */
static void print_collapse(const char *name, char *base)
{
	int error = EAGAIN;

	for (int i = 0; i < 100 && (error == EAGAIN || error == EBUSY); i++) {
		error = madvise(base, 4 * BLOCK, MADV_COLLAPSE) ? errno : 0;
		sleep_ms(error ? 5 : 0);
	}
	printf("%s: %s\n", name, error ? strerrorname_np(error) : "collapsed");
}

static void collapse_blocks(const char *how)
{
	char *base = map_aligned(LEN);

	fill_to(base, LEN / 2);
	must_hold(!madvise(base + LEN - BLOCK, PAGE_BYTES, MADV_DONTNEED),
		  "madvise");
	print_collapse("after a discard", base);
	check_pages(base, 0, LEN / 2);
	/* What was advised against by the shim is so again. */
	must_hold(!madvise(base, LEN / 4, MADV_DONTNEED), "madvise");
	count_stores(base, 0, LEN / 4);
	fill_pages(base, 0, LEN / 2);
	must_hold(!madvise(base, 4 * BLOCK, MADV_NOHUGEPAGE), "madvise");
	print_collapse("against advice", base);
	print_collapse("beside it", base + 8 * BLOCK);
	check_pages(base, 0, LEN / 2);
}

/* ---- advice at the same moment ---- */

struct moment {
	atomic_bool held; /* the watcher, in its advice */
	atomic_bool asked; /* the program is about to advise otherwise */
	atomic_bool released;
};

static bool is_advised(const char *base, size_t len)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uintptr_t from, to, start = 0, end = 0;
	bool found = false;
	char line[512];

	must_hold(file != NULL, "smaps");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			start = from;
			end = to;
		} else if (start < (uintptr_t)base + len &&
			   end > (uintptr_t)base &&
			   !strncmp(line, "VmFlags:", 8)) {
			found |= strstr(line, " hg") != NULL;
		}
	}
	fclose(file);
	return found;
}

/* Ends with 7, or 8: the watcher's advice came last. */
static void advise_once_held(struct moment *moment)
{
	char *base = allocate_block("mmap", LEN);
	bool lost = false;

	for (size_t at = 0; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(5);
		if (!atomic_load(&moment->held) || atomic_load(&moment->asked))
			continue;
		atomic_store(&moment->asked, true);
		must_hold(!madvise(base, LEN, MADV_NOHUGEPAGE), "madvise");
		while (!atomic_load(&moment->released))
			sleep_ms(1);
		sleep_ms(5);
		lost = is_advised(base, LEN);
	}
	_exit(lost ? 8 : 7);
}

/* Is the thread about to give that advice? */
static bool is_advising(pid_t tid, int advice)
{
	struct __ptrace_syscall_info info = { 0 };

	return ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) > 0 &&
	       info.op == PTRACE_SYSCALL_INFO_ENTRY &&
	       info.entry.nr == SYS_madvise &&
	       info.entry.args[2] == (uint64_t)advice;
}

/* The thread that is held until the program's own advice is done or waits. */
struct holder {
	pid_t program, held;
	bool entered; /* the program's advice has reached the kernel */
	int waited_ms;
};

static void release_held(struct holder *holder, struct moment *moment)
{
	ptrace(PTRACE_SYSCALL, holder->held, NULL, 0L);
	holder->held = 0;
	atomic_store(&moment->released, true);
}

static void see_call(struct holder *holder, struct moment *moment, pid_t tid)
{
	if (tid != holder->program && !atomic_load(&moment->held) &&
	    is_advising(tid, MADV_HUGEPAGE)) {
		holder->held = tid;
		atomic_store(&moment->held, true);
		return;
	}
	if (tid == holder->program && holder->held && holder->entered)
		release_held(holder, moment);
	else if (tid == holder->program && holder->held)
		holder->entered = is_advising(tid, MADV_NOHUGEPAGE);
	ptrace(PTRACE_SYSCALL, tid, NULL, 0L);
}

/* Return: how the program ended. */
static int follow_calls(pid_t program, struct moment *moment)
{
	struct holder holder = { .program = program };
	int status;

	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
		int sig;

		must_hold(tid >= 0, "waitpid");
		if (!tid) {
			sleep_ms(1);
			holder.waited_ms += atomic_load(&moment->asked);
			if (holder.held && holder.waited_ms > 300)
				release_held(&holder, moment);
			continue;
		}
		if (!WIFSTOPPED(status) && tid == program)
			return status;
		if (!WIFSTOPPED(status))
			continue;
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80))
			see_call(&holder, moment, tid);
		else
			ptrace(PTRACE_SYSCALL, tid, NULL,
			       sig == SIGTRAP || sig == SIGSTOP ? 0L
								: (long)sig);
	}
}

static void advises_at_once(const char *how)
{
	struct moment *moment = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int status;

	if (!child) {
		must_hold(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "traceme");
		raise(SIGSTOP);
		advise_once_held(moment);
	}
	must_hold(waitpid(child, &status, 0) == child && WIFSTOPPED(status),
		  "waitpid");
	must_hold(!ptrace(PTRACE_SETOPTIONS, child, NULL,
			  PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL |
				  PTRACE_O_TRACESYSGOOD) &&
			  !ptrace(PTRACE_SYSCALL, child, NULL, 0L),
		  "ptrace");
	status = follow_calls(child, moment);
	must_hold(WIFEXITED(status), "the program");
	if (WEXITSTATUS(status) != 7)
		puts("the watcher's advice came last");
}

/* ---- many mappings ---- */

static char *map_apart(size_t len)
{
	char *base = guarded_space(len);

	must_hold(mmap(base, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base,
		  "mmap");
	return base;
}

/* Until the watcher has seen what was touched. */
static void wait_for_watcher(void)
{
	static long waited;
	long before = watcher_sleeps();

	while (watcher_sleeps() == before) {
		must_hold(waited < WAIT_MS,
			  "nothing was made ahead: the watcher got no CPU");
		sleep_ms(5);
		waited += 5;
	}
}

/* "NUMBER HOW": of each a page is touched, or of "whole" ones all, and then of another one
 * as much as is made ahead; of "idle" ones nothing. */
static void maps_many(const char *how)
{
	char which[16], *base;
	size_t touched;
	int nr;

	must_hold(sscanf(how, "%d %15s", &nr, which) == 2, how);
	touched = !strcmp(which, "whole") ? BLOCK : PAGE_BYTES;
	for (int i = 0; i < nr; i++) {
		base = map_apart(BLOCK);
		if (!strcmp(which, "idle"))
			continue;
		fill_pages(base, 0, touched);
		if (touched == BLOCK && i > 32)
			wait_for_watcher();
	}
	base = map_apart(LEN);
	if (strcmp(which, "idle"))
		must_hold(touch_until_helped(base, LEN),
			  "nothing was made ahead");
}

/* ---- limits ---- */

static size_t status_kib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	size_t kib = 0;
	char line[128];

	must_hold(file != NULL, "status");
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = account_value(line);
	fclose(file);
	return kib;
}

static void set_limit(const char *how, int resource, size_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };
	struct rlimit64 limit64 = { bytes, RLIM64_INFINITY };
	long error;

	if (!strcmp(how, "setrlimit"))
		error = setrlimit(resource, &limit);
	else if (!strcmp(how, "setrlimit64"))
		error = setrlimit64(resource, &limit64);
	else if (!strcmp(how, "prlimit"))
		error = prlimit(0, resource, &limit, NULL);
	else if (!strcmp(how, "prlimit64"))
		error = prlimit64(getpid(), resource, &limit64, NULL);
	else
		error = syscall(SYS_prlimit64, 0, resource, &limit64, NULL);
	must_hold(!error, how);
}

#define LEFT (MIB + 512 * 1024)

/* No thread of the shim's takes from what is left. */
static void limits_memory(const char *how)
{
	char *base = allocate_block("mmap", LEN), name[16];
	int resource;
	size_t at = touch_until_helped(base, LEN / 2);

	must_hold(sscanf(how, "%15s %d", name, &resource) == 2, how);
	must_hold(at, "nothing was made ahead");
	set_limit(name, resource,
		  status_kib(resource == RLIMIT_AS ? "VmSize:" : "VmData:") *
				  1024 +
			  LEFT);
	must_hold(nr_threads() == 1, "there is another thread");
	fill_slowly(base, at, LEN / 2);
	must_hold(mmap(NULL, MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
		  "mmap within the limit");
	must_hold(nr_threads() == 1, "there is another thread");
	check_pages(base, 0, LEN / 2);
}

/* As many bytes are mapped as the program maps: no stack, of a thread that ended either. */
static void maps_alone(const char *how)
{
	size_t before = status_kib("VmSize:"), after;
	char *base = allocate_block("mmap", LEN);

	fill_slowly(base, 0, LEN / 2);
	after = status_kib("VmSize:");
	if (after > before + LEN / 1024)
		printf("%zu KiB more\n", after - before - LEN / 1024);
}

/* ---- policies ---- */

#define BIND 2

static long set_policy(int mode)
{
	unsigned long node = 1;

	return syscall(SYS_set_mempolicy, mode, mode ? &node : NULL,
		       mode ? 64ul : 0ul);
}

static void sets_policy(const char *how)
{
	char *base = allocate_block("mmap", LEN);

	fill_to(base, LEN / 8);
	if (set_policy(BIND)) {
		puts("no policies");
		exit(0);
	}
	fill_alone(base + REST);
	fill_alone(allocate_block("mmap", REST));
	must_hold(!set_policy(0), "set_mempolicy");
	must_hold(set_policy(99), "set_mempolicy of an unknown mode");
	fill_to(allocate_block("mmap", LEN), LEN / 8);
}

/* ---- memory that reserves none, grown ---- */

static void grows_unreserved(const char *how)
{
	char *base = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must_hold(base != MAP_FAILED, "mmap");
	base = mremap(base, BLOCK, LEN, MREMAP_MAYMOVE);
	must_hold(base != MAP_FAILED, "mremap");
	must_hold(nr_threads() == 1, "it is watched");
	fill_alone(base + REST);
}

/* ---- locks ---- */

static bool lock_on_fault(const char *how, char *addr, size_t len)
{
	if (!strcmp(how, "mlock2"))
		return !mlock2(addr, len, MLOCK_ONFAULT);
	if (!strcmp(how, "syscall"))
		return !syscall(SYS_mlock2, addr, len, MLOCK_ONFAULT);
	if (!strcmp(how, "mlockall"))
		return !mlockall(MCL_CURRENT | MCL_ONFAULT);
	return !syscall(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT);
}

static void locks_on_fault(const char *how)
{
	bool later = !strcmp(how, "later");
	char *base = allocate_block("mmap", LEN);

	fill_to(base, LEN / 8);
	if (!lock_on_fault(how, base + REST, REST)) {
		puts("no locks");
		exit(0);
	}
	fill_alone(later ? allocate_block("mmap", REST) : base + REST);
	must_hold(!munlockall(), "munlockall");
	fill_to(allocate_block("mmap", LEN), LEN / 8);
}

static const struct ahead_case all_cases[] = {
	{ "advises-part", advises_part },
	{ "advises-most", advises_most },
	{ "advises-at-once", advises_at_once },
	{ "collapses", collapse_blocks },
	{ "many", maps_many },
	{ "limits", limits_memory },
	{ "maps-alone", maps_alone },
	{ "policy", sets_policy },
	{ "grows-unreserved", grows_unreserved },
	{ "locks", locks_on_fault },
};

int main(int argc, char **argv)
{
	return run_case(all_cases, sizeof(all_cases) / sizeof(all_cases[0]),
			argc, argv);
}
