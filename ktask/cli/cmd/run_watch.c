/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The watcher of a run's processes: see run.h, and util/run_record.h for the records
 * that processes leave.
 *
 * `ktask run` becomes its program, so that signals, status, process group and terminal
 * are the program's own.  So another process must write the line of a program that was
 * killed: the watcher.  It ends when the last process that it knows of has ended.
 *
 * /proc tells how a process ended until its parent has waited for it.  After that,
 * PIDFD_GET_INFO tells since Linux 6.15.
 *
 * Behaves badly: whatever kills all processes of a run at once (the end of a PID
 * namespace, a control group's kill) kills the watcher as well.  Processes that cannot
 * open the records (of another user, with another /proc) are not known.
 *
 * Locking: util/run_record.h.  Static data of this file belongs to the watcher, which is
 * one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "common/proc_stat.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/run_record.h"

/* All records are polled this often, in case nobody reported a change. */
#define POLL_MS 1000
/* How long to wait for a child that has not run yet although its parent is gone. */
#define CHILD_NS 2000000000u
#define FDS_MAX 65536
#define STAT_BYTES 1024

static struct run_records *all_records;
/* Record and descriptor of this process, which becomes the program.  The descriptor is
 * opened before the watcher begins, so that even a late watcher sees the end. */
static struct run_record *own_record;
static int own_fd = -1;
static bool own_gone;
/* The watcher holds the program's standard error until the program has ended. */
static bool has_stderr = true;

/* What the watcher knows of the record of the same index. */
static struct watched {
	int32_t pid; /* 0: nothing */
	uint64_t gone_ns; /* when it was seen to be gone; 0: not */
} watched_processes[RUN_RECORDS_MAX];
/* The last entry is an eventfd that is written when records have changed. */
static struct pollfd process_fds[RUN_RECORDS_MAX + 1];

/* ---- how a process ended ---- */

/* Linux 6.13; its end since 6.15. */
struct process_info {
	uint64_t mask, cgroup_id;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};

#define PROCESS_INFO _IOWR(0xFF, 11, struct process_info)
#define PROCESS_INFO_EXIT (1u << 3)

static bool ask_pidfd(int fd, int *status)
{
	struct process_info info = { .mask = PROCESS_INFO_EXIT };

	if (ioctl(fd, PROCESS_INFO, &info) || !(info.mask & PROCESS_INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

/* Return: "" where there is none. */
static const char *read_stat(int32_t pid, enum proc_stat_number number,
			     char text[STAT_BYTES])
{
	const char *field;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file_text(path, text, STAT_BYTES);
	field = proc_stat_field(text, number);
	return field ? field : "";
}

static bool still_there(int fd)
{
#ifdef SYS_pidfd_send_signal
	return !syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
#else
	return false;
#endif
}

/* Zero also stands for what may not be known. */
static bool ask_zombie(int32_t pid, int fd, int *status)
{
	char text[STAT_BYTES];

	if (*read_stat(pid, PROC_STAT_STATE, text) != 'Z')
		return false;
	*status = atoi(read_stat(pid, PROC_STAT_EXIT_CODE, text));
	return still_there(fd) && *status;
}

static void append_ending(struct report_line *line, int32_t pid, int fd)
{
	int status = 0;

	if (fd < 0 || !(ask_zombie(pid, fd, &status) || ask_pidfd(fd, &status)))
		report_append(line,
			      "; then it ended without a report: by a signal, "
			      "or a system call that the shim does not see");
	else if (WIFSIGNALED(status))
		report_append(line, "; then signal %d ended it",
			      WTERMSIG(status));
	else
		report_append(line,
			      "; then it ended with status %d by a system call "
			      "that the shim does not see",
			      WEXITSTATUS(status));
}

static void append_failure(struct report_line *line, int error)
{
	report_append(line, "; it could not write its report: ");
	report_append_error(line, error);
}

static void append_taken(struct report_line *line,
			 const struct report_totals *totals)
{
	report_append(line, "took over ");
	if (totals->calls)
		report_append_sum(line, totals->calls, totals->bytes);
	else
		report_append(line, "nothing");
	report_append_left(line, totals);
}

static void write_line(const struct run_record *record, int fd)
{
	const struct report_totals totals = {
		atomic_load(&record->calls),
		atomic_load(&record->bytes),
		atomic_load(&record->left_calls),
		atomic_load(&record->left_bytes),
	};
	int32_t pid = atomic_load(&record->pid);
	struct report_line line = { 0 };
	uint32_t state = atomic_load(&record->state);
	char name[RUN_RECORD_NAME + 1] = "";
	int error;

	memcpy(name, record->name, RUN_RECORD_NAME);
	report_append(&line, "ktask: run: ");
	if (state == RUN_FILTERED) {
		report_append(&line, "nothing can be taken over: it was made "
				     "behind a system call filter (seccomp) "
				     "that does not let the library work");
	} else if (state == RUN_BEGINNING) {
		report_append(&line, "not known: it ended before its shim "
				     "could tell, or the shim may not (other "
				     "rights, another root directory)");
	} else {
		append_taken(&line, &totals);
		if (state == RUN_UNTOLD)
			append_failure(&line, atomic_load(&record->error));
		else
			append_ending(&line, pid, fd);
	}
	error = run_report_line(&line, name, pid);
	if (error && has_stderr && !run_report_is_stderr()) {
		run_report_failed(error);
		has_stderr = false;
	}
}

/* ---- the processes ---- */

/* Does another process have the number?  It has if it began after the record was made. */
static bool is_another(const struct run_record *record, int32_t pid)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char text[STAT_BYTES];

	return strtoull(read_stat(pid, PROC_STAT_START_TICKS, text), NULL, 10) *
		       tick_ns >
	       atomic_load(&record->seen_ns) + tick_ns;
}

static int open_process(int32_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	errno = ENOSYS;
	return -1;
#endif
}

static void forget_process(uint32_t i)
{
	if (process_fds[i].fd >= 0)
		close(process_fds[i].fd);
	process_fds[i].fd = -1;
	watched_processes[i] = (struct watched){ 0 };
}

static void watch_process(uint32_t i, int32_t pid)
{
	bool first = &all_records->records[i] == own_record && own_fd >= 0;

	forget_process(i);
	watched_processes[i].pid = pid;
	process_fds[i] = (struct pollfd){ first ? own_fd : open_process(pid),
					  POLLIN, 0 };
	if (first)
		own_fd = -1;
	if (process_fds[i].fd >= 0 &&
	    is_another(&all_records->records[i], pid)) {
		close(process_fds[i].fd);
		process_fds[i].fd = -1;
		watched_processes[i].gone_ns = clock_ns(CLOCK_MONOTONIC);
	}
}

static bool is_gone(uint32_t i)
{
	if (watched_processes[i].gone_ns)
		return true;
	if (process_fds[i].fd >= 0)
		return process_fds[i].revents;
	/* There is no pidfd: no descriptor is free, or the kernel has none. */
	return kill(watched_processes[i].pid, 0) && errno == ESRCH;
}

static void free_record(uint32_t i)
{
	own_gone = own_gone || &all_records->records[i] == own_record;
	forget_process(i);
	atomic_store(&all_records->records[i].state, RUN_FREE);
}

/* May the child for which @record was made still take it? */
static bool awaits_child(const struct run_record *record, uint32_t i)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (atomic_load(&record->state) != RUN_FORKING)
		return false;
	if (!watched_processes[i].gone_ns)
		watched_processes[i].gone_ns = now_ns;
	if (process_fds[i].fd >= 0)
		close(process_fds[i].fd);
	process_fds[i].fd = -1;
	return now_ns - watched_processes[i].gone_ns < CHILD_NS;
}

static bool has_line(uint32_t state)
{
	return state == RUN_BEGINNING || state == RUN_ALIVE ||
	       state == RUN_FILTERED || state == RUN_UNTOLD;
}

/* Return: whether there is, or may be, a process. */
static bool poll_process(uint32_t i)
{
	struct run_record *record = &all_records->records[i];
	uint32_t state = atomic_load(&record->state);
	int32_t pid = atomic_load(&record->pid);

	if (state == RUN_FREE || state == RUN_TAKEN)
		return false;
	/* Not even the first process of a namespace: see is_reaper(). */
	if (pid <= 1) {
		free_record(i);
		return false;
	}
	if (pid != watched_processes[i].pid)
		watch_process(i, pid);
	if (!is_gone(i) || awaits_child(record, i))
		return true;
	/* Only now the record does not change any more. */
	if (has_line(atomic_load(&record->state)))
		write_line(record, process_fds[i].fd);
	free_record(i);
	return false;
}

static uint32_t nr_records(void)
{
	uint32_t nr = atomic_load(&all_records->nr);

	return nr < RUN_RECORDS_MAX ? nr : RUN_RECORDS_MAX;
}

static bool poll_processes(void)
{
	uint32_t nr = nr_records();
	bool any = false;

	for (uint32_t i = 0; i < nr; i++)
		any |= poll_process(i);
	return any;
}

/* Return: whether a record has changed or a process has ended. */
static bool sleep_ms(int ms)
{
	struct pollfd *changes = &process_fds[RUN_RECORDS_MAX];
	uint32_t nr = nr_records();
	eventfd_t count;
	bool any;

	/* Poll the eventfd behind the records that are in use. */
	process_fds[nr] = *changes;
	any = poll(process_fds, nr + 1, ms) > 0;
	if (process_fds[nr].revents)
		eventfd_read(changes->fd, &count);
	if (nr < RUN_RECORDS_MAX)
		process_fds[nr] = (struct pollfd){ .fd = -1 };
	return any;
}

/* Release the program's standard error, unless the report goes there, so that whoever
 * reads it sees its end. */
static void end_complaints(bool to_stderr)
{
	has_stderr = false;
	if (!to_stderr)
		dup2(STDOUT_FILENO, STDERR_FILENO);
}

static void watch_all(bool to_stderr)
{
	bool any = true;

	while (any) {
		any = poll_processes();
		if (own_gone) {
			end_complaints(to_stderr);
			own_gone = false;
		}
		if (any)
			sleep_ms(POLL_MS);
	}
	if (atomic_load(&all_records->missed))
		run_report_missed(atomic_load(&all_records->missed));
}

/* A thread that turns the futex into an eventfd, because poll() cannot wait for a futex. */
static void *pass_changes(void *arg)
{
	uint32_t seen = 0;

	for (;;) {
		uint32_t now = atomic_load(&all_records->changes);

		if (now != seen)
			eventfd_write(process_fds[RUN_RECORDS_MAX].fd, 1);
		seen = now;
		syscall(SYS_futex, &all_records->changes, FUTEX_WAIT, seen,
			NULL, NULL, 0);
	}
	return arg;
}

/* ---- the watcher itself ---- */

static void close_range_of(unsigned first, unsigned last)
{
#ifdef SYS_close_range
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
#endif
	for (unsigned fd = first; fd <= last && fd < FDS_MAX; fd++)
		close((int)fd);
}

/* A reader that waits for the end of a pipe must not wait for the watcher.  For standard
 * error see end_complaints(). */
static void drop_files(int kept)
{
	int null = open("/dev/null", O_RDWR);
	int low = kept < own_fd ? kept : own_fd;
	int high = kept < own_fd ? own_fd : kept;

	for (int fd = 0; fd < STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
	close_range_of(3, (unsigned)(low < 0 ? high : low) - 1);
	if (low >= 0)
		close_range_of((unsigned)low + 1, (unsigned)high - 1);
	close_range_of((unsigned)high + 1, ~0u);
	if (chdir("/"))
		return;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A signal to all processes of the run must not end the watcher, which reports it. */
static void block_signals(void)
{
	struct rlimit no_core = { 0 };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
}

static void __attribute__((noreturn)) become_watcher(int fd)
{
	bool to_stderr = run_report_is_stderr();
	pthread_t thread;

	block_signals();
	prctl(PR_SET_NAME, "ktask-report");
	drop_files(fd);
	raise_file_limit();
	for (uint32_t i = 0; i <= RUN_RECORDS_MAX; i++)
		process_fds[i].fd = -1;
	process_fds[RUN_RECORDS_MAX].fd =
		eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	process_fds[RUN_RECORDS_MAX].events = POLLIN;
	if (!pthread_create(&thread, NULL, pass_changes, NULL))
		pthread_detach(thread);
	watch_all(to_stderr);
	_exit(0);
}

/* Not fork(): the shim of an outer run would count the watcher as one of its
 * processes. */
static pid_t fork_silently(void)
{
#if __GLIBC_PREREQ(2, 34)
	return _Fork();
#else
	return fork();
#endif
}

/* In a child that ends at once, so that the watcher is no child of the program. */
static void __attribute__((noreturn)) make_watcher(int fd, int answer)
{
	pid_t pid;

	setsid();
	pid = fork_silently();
	if (!pid)
		become_watcher(fd);
	if (write(answer, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	_exit(0);
}

/* Return: the watcher's process id, or -1. */
static pid_t start_watcher(int fd)
{
	pid_t child, watcher = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork_silently();
	if (!child)
		make_watcher(fd, ends[1]);
	close(ends[1]);
	if (child > 0 &&
	    read(ends[0], &watcher, sizeof(watcher)) != sizeof(watcher))
		watcher = -1;
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return watcher;
}

/* The memory is sealed: nobody may truncate what others have mapped.  A limit on the size
 * of files (ulimit -f) holds for it as well. */
static int make_records(void)
{
	int fd = file_may_have(sizeof(*all_records))
			 ? memfd_create("ktask-run",
					MFD_CLOEXEC | MFD_ALLOW_SEALING)
			 : -1;
	void *at;

	if (fd < 0)
		return -1;
	if (fchmod(fd, 0600) || ftruncate(fd, sizeof(*all_records)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(fd);
		return -1;
	}
	at = mmap(NULL, sizeof(*all_records), PROT_READ | PROT_WRITE,
		  MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		close(fd);
		return -1;
	}
	all_records = at;
	all_records->magic = RUN_RECORDS_MAGIC;
	all_records->namespace_id = run_namespace_id();
	return fd;
}

/* Would the watcher become a child of the program? */
static bool is_reaper(void)
{
	int subreaper = 0;

	return getpid() == 1 ||
	       prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) || subreaper;
}

void run_watch_begin(const char *command, bool told)
{
	char path[64];
	pid_t watcher = -1;
	int fd;

	unsetenv(RUN_RECORDS_VARIABLE);
	if (is_reaper() || !run_namespace_id())
		return;
	fd = make_records();
	if (fd < 0)
		return;
	own_record =
		run_record_take(all_records, told ? RUN_TOLD : RUN_BEGINNING,
				getpid(), command);
	own_fd = open_process(getpid());
	watcher = start_watcher(fd);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)watcher, fd);
	if (watcher > 0)
		setenv(RUN_RECORDS_VARIABLE, path, 1);
	close(fd);
	if (own_fd >= 0)
		close(own_fd);
}

void run_watch_cancel(void)
{
	if (own_record)
		atomic_store(&own_record->state, RUN_TOLD);
}
