/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Processes that a report must say something of, each in its own way.  The first
 * argument names the case.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "no_programs.h"
#include "probe.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define LARGE_BYTES ((size_t)64 << 20)
#define SPACE_BYTES ((size_t)1 << 42)

static char *map_memory(size_t len, int flags)
{
	char *addr = mmap(NULL, len, RW, ANON | flags, -1, 0);

	must_hold(addr != MAP_FAILED, "mmap");
	return addr;
}

static int case_small(char **argv)
{
	madvise(map_memory(SIZE_BYTES / 64, 0), SIZE_BYTES / 64, MADV_DONTNEED);
	return 0;
}

static int case_touch(char **argv)
{
	memset(map_memory(LARGE_BYTES, 0), 1, LARGE_BYTES);
	return 0;
}

/* As much in pieces. */
static int case_many_small(char **argv)
{
	for (size_t at = 0; at < 2 * LARGE_BYTES; at += SIZE_BYTES / 8)
		memset(map_memory(SIZE_BYTES / 8, 0), 1, SIZE_BYTES / 8);
	return 0;
}

/* A quarter of the last GiB of much address space. */
static int case_space(char **argv)
{
	char *addr = map_memory(SPACE_BYTES, MAP_NORESERVE);
	size_t at = SPACE_BYTES - LARGE_BYTES;

	madvise(addr, SPACE_BYTES, MADV_NOHUGEPAGE);
	memset(addr + at, 1, LARGE_BYTES / 2);
	munmap(addr, SPACE_BYTES);
	return 0;
}

static int case_advise_space(char **argv)
{
	char *addr = map_memory(SPACE_BYTES, MAP_NORESERVE);

	madvise(addr, SPACE_BYTES, MADV_NOHUGEPAGE);
	memset(addr, 1, SIZE_BYTES);
	madvise(addr, SPACE_BYTES, MADV_DONTNEED);
	return 0;
}

static int case_populate(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	return 0;
}

/* Of memory that has been touched; where so much may be locked. */
static int case_lock_present(char **argv)
{
	char *addr = map_memory(LARGE_BYTES, 0);

	memset(addr, 1, LARGE_BYTES);
	if (mlock(addr, LARGE_BYTES))
		puts("refused");
	return 0;
}

/* Refused, for want of address space; and flags of which the shim knows nothing. */
static int case_populate_otherwise(char **argv)
{
	must_hold(mmap(NULL, (size_t)1 << 50, RW, ANON | MAP_POPULATE, -1, 0) ==
			  MAP_FAILED,
		  "address space");
	map_memory(LARGE_BYTES, MAP_POPULATE | MAP_NONBLOCK);
	return 0;
}

static int case_exit(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	_exit(0);
}

/* Gone before a helper has looked, mostly. */
static int case_brief(char **argv)
{
	munmap(map_memory(LARGE_BYTES, 0), LARGE_BYTES);
	return 0;
}

static int case_vfork(char **argv)
{
	pid_t child = vfork();

	if (!child) {
		munmap(map_memory(LARGE_BYTES, MAP_POPULATE), LARGE_BYTES);
		_exit(0);
	}
	return waitpid(child, NULL, 0) != child;
}

/* A child of which nobody is told, with memory of its own. */
static int case_clone(char **argv)
{
	long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	map_memory(LARGE_BYTES, MAP_POPULATE);
	return child && waitpid((pid_t)child, NULL, 0) != child;
}

static int case_fork(char **argv)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) != child;
}

/* Refused once, then it becomes this program with the next argument. */
static int case_exec(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	must_hold(execl("/nonexistent", "none", (char *)NULL) == -1 &&
			  errno == ENOENT,
		  "exec of nothing");
	map_memory(LARGE_BYTES, MAP_POPULATE);
	execlp(argv[0], argv[0], argv[2], (char *)NULL);
	return 1;
}

static int case_spawn(char **argv)
{
	char *child_argv[] = { argv[0], argv[2], NULL };
	pid_t child;

	must_hold(
		!posix_spawn(&child, argv[0], NULL, NULL, child_argv, environ),
		"spawn");
	return waitpid(child, NULL, 0) != child;
}

/* By a path, or by a name that PATH has. */
static int spawn_child(char **argv, bool by_name)
{
	char path[4096], *child_argv[] = { argv[2], NULL };
	pid_t child;
	int error;

	snprintf(path, sizeof(path), "./%s", argv[2]);
	error = by_name ? posix_spawnp(&child, argv[2], NULL, NULL, child_argv,
				       environ)
			: posix_spawn(&child, path, NULL, NULL, child_argv,
				      environ);
	if (error)
		return 0;
	printf("child %d\n", (int)child);
	return waitpid(child, NULL, 0) != child;
}

static int case_spawn_path(char **argv)
{
	return spawn_child(argv, false);
}

static int case_spawn_name(char **argv)
{
	return spawn_child(argv, true);
}

static int case_fexecve(char **argv)
{
	int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

	fexecve(fd, argv + 2, environ);
	return 1;
}

static int case_execveat(char **argv)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	execveat(fd, argv[2], argv + 2, environ, 0);
	return 1;
}

static int case_execveat_of_fd(char **argv)
{
	int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

	execveat(fd, "", argv + 2, environ, AT_EMPTY_PATH);
	return 1;
}

static int case_execveat_fails(char **argv)
{
	const char *volatile given = NULL;

	must_hold(execveat(AT_FDCWD, "nothing", argv, environ, 0) == -1 &&
			  errno == ENOENT,
		  "no file");
	must_hold(execveat(AT_FDCWD, "", argv, environ, 0) == -1 &&
			  errno == ENOENT,
		  "no path");
	must_hold(execveat(AT_FDCWD, given, argv, environ, 0) == -1 &&
			  errno == EFAULT,
		  "no pointer");
	must_hold(execveat(-1, "nothing", argv, environ, 0) == -1 &&
			  errno == EBADF,
		  "no directory");
	return 0;
}

/* None of them can succeed, and then the process ends. */
static int case_exec_fails(char **argv)
{
	char *const args[] = { "none", NULL };
	int fd = open(".", O_RDONLY | O_DIRECTORY);

	must_hold(fd >= 0, "open");
	map_memory(LARGE_BYTES, MAP_POPULATE);
	execve("/nonexistent", args, environ);
	execv("/etc/passwd", args);
	execv("/", args);
	execvp("nonexistent", args);
	fexecve(-1, args, environ);
	execveat(fd, "nonexistent", args, environ, 0);
	return 0;
}

#define NR_ARGS 2048
#define ARG_BYTES 8192

/* One argument that is too long, and too many of them. */
static int case_exec_fails_of_size(char **argv)
{
	char *program = argv[0], *text = malloc(32 * PAGE_BYTES + 1);
	char *long_args[] = { program, text, NULL };
	static char *many[NR_ARGS + 1];

	must_hold(text != NULL, "malloc");
	memset(text, 'x', 32 * PAGE_BYTES);
	text[32 * PAGE_BYTES] = '\0';
	map_memory(LARGE_BYTES, MAP_POPULATE);
	must_hold(execve(program, long_args, environ) == -1 && errno == E2BIG,
		  "a long argument");
	for (int i = 0; i < NR_ARGS; i++)
		many[i] = text + 32 * PAGE_BYTES - ARG_BYTES + 1;
	must_hold(execv(program, many) == -1 && errno == E2BIG,
		  "many arguments");
	many[1] = (char *)1;
	many[2] = NULL;
	must_hold(execvp(program, many) == -1 && errno == EFAULT,
		  "no argument");
	return 0;
}

static int case_exec_fails_of_format(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	try_no_programs(argv[2]);
	return 0;
}

/* The script's interpreter could not open it: exec closes the descriptor. */
static int case_exec_fails_of_descriptor(char **argv)
{
	char *args[] = { "none", NULL }, *name = strrchr(argv[2], '/');
	int fd, dir;

	write_program(argv[2], "#!/bin/sh\n", 10);
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	*name++ = '\0';
	dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must_hold(fd >= 0 && dir >= 0, "open");
	map_memory(LARGE_BYTES, MAP_POPULATE);
	must_hold(fexecve(fd, args, environ) == -1 && errno == ENOENT,
		  "fexecve");
	must_hold(execveat(dir, name, args, environ, 0) == -1 &&
			  errno == ENOENT,
		  "execveat");
	return 0;
}

/* exec is no point of cancellation. */
static void *exec_cancelled(void *path)
{
	char *args[] = { "none", NULL };

	pthread_cancel(pthread_self());
	execve(path, args, environ);
	return path;
}

static int case_exec_fails_cancelled(char **argv)
{
	void *returned = NULL;
	pthread_t thread;

	map_memory(LARGE_BYTES, MAP_POPULATE);
	write_program(argv[2], "exit 0\n", 7);
	must_hold(!pthread_create(&thread, NULL, exec_cancelled, argv[2]) &&
			  !pthread_join(thread, &returned),
		  "thread");
	must_hold(returned == argv[2], "execve that ends the thread");
	return 0;
}

/* Whose interpreter may be a script as well. */
static int case_exec_script(char **argv)
{
	char *args[] = { "none", NULL };

	map_memory(LARGE_BYTES, MAP_POPULATE);
	execve(argv[2], args, environ);
	return errno;
}

/* The C library has a shell run what is no program. */
static int case_exec_by_shell(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	write_program(argv[2], "exit 0\n", 7);
	execlp(argv[2], "script", (char *)NULL);
	return 1;
}

/* On a file system where nothing may be executed. */
static int case_exec_fails_there(char **argv)
{
	int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

	must_hold(fd >= 0, "open");
	map_memory(LARGE_BYTES, MAP_POPULATE);
	must_hold(execv(argv[2], argv) == -1 && errno == EACCES, "execv");
	must_hold(fexecve(fd, argv, environ) == -1 && errno == EACCES,
		  "fexecve");
	return 0;
}

static int case_killed(char **argv)
{
	map_memory(LARGE_BYTES, MAP_POPULATE);
	return raise(SIGKILL);
}

static int case_child_killed(char **argv)
{
	pid_t child = fork();

	if (!child)
		case_killed(argv);
	return waitpid(child, NULL, 0) != child;
}

/* More forks fail than there are records.  Root's never would. */
static int case_forks_fail(char **argv)
{
	struct rlimit none = { 0, RLIM_INFINITY }, many = { 1000, 1000 };
	pid_t child;

	must_hold(geteuid() || !setuid(65534), "setuid");
	getrlimit(RLIMIT_NPROC, &many);
	none.rlim_max = many.rlim_max;
	setrlimit(RLIMIT_NPROC, &none);
	for (int i = 0; i < 5000; i++)
		must_hold(fork() == -1 && errno == EAGAIN, "a fork that fails");
	setrlimit(RLIMIT_NPROC, &many);
	child = fork();
	if (!child)
		case_killed(argv);
	return waitpid(child, NULL, 0) != child;
}

/* Nobody is left who waits for it. */
static int case_orphan_killed(char **argv)
{
	pid_t child = fork();

	if (!child) {
		while (getppid() != 1 && !access(argv[2], F_OK))
			usleep(1000);
		case_killed(argv);
	}
	_exit(child < 0);
}

/* The shim steps aside: the library needs this call. */
static int case_filtered_child(char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };
	pid_t child;

	must_hold(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
			  !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
		  "filter");
	child = fork();
	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) != child;
}

static void *populate_on_and_on(void *arg)
{
	for (;;)
		munmap(map_memory(LARGE_BYTES, MAP_POPULATE), LARGE_BYTES);
	return arg;
}

/* A child that ends; returns how often its list of threads was opened. */
static int count_opens(void)
{
	char path[64], events[4096];
	int ends[2], watcher = inotify_init1(IN_NONBLOCK);
	pid_t child;
	int nr = 0;

	must_hold(watcher >= 0 && !pipe(ends), "pipe");
	child = fork();
	if (!child)
		_exit(read(ends[0], path, 1) != 1);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)child);
	must_hold(inotify_add_watch(watcher, path, IN_OPEN) >= 0, "inotify");
	must_hold(write(ends[1], "", 1) == 1 &&
			  waitpid(child, NULL, 0) == child,
		  "child");
	while (read(watcher, events, sizeof(events)) > 0)
		nr++;
	close(ends[0]);
	close(ends[1]);
	close(watcher);
	return nr;
}

/* ---- an exec beside work ---- */

static _Atomic int work_is_done;

static void *populate_once(void *arg)
{
	munmap(map_memory(8 * LARGE_BYTES, MAP_POPULATE), 8 * LARGE_BYTES);
	work_is_done = 1;
	return arg;
}

/* The scheduler's name for a thread of the library that works; 0: none does. */
static int find_idle_helper(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while (tasks && !found && (entry = readdir(tasks))) {
		int tid = atoi(entry->d_name);

		if (tid && sched_getscheduler(tid) == SCHED_IDLE)
			found = tid;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* Return: the helper's policy after an exec that failed, SCHED_BATCH where its nice value
 * is another one than ours; -1: none was seen. */
static int try_exec_beside_work(void)
{
	int tid = 0, policy = -1;
	pthread_t thread;

	work_is_done = 0;
	must_hold(!pthread_create(&thread, NULL, populate_once, NULL),
		  "thread");
	while (!tid && !work_is_done)
		tid = find_idle_helper();
	execl("/nonexistent", "none", (char *)NULL);
	if (tid)
		policy = sched_getscheduler(tid);
	if (policy == SCHED_OTHER && getpriority(PRIO_PROCESS, (id_t)tid) !=
					     getpriority(PRIO_PROCESS, 0))
		policy = SCHED_BATCH;
	/* After the job it may have been made low, or high, for another. */
	if (work_is_done)
		policy = -1;
	pthread_join(thread, NULL);
	return policy;
}

static int case_exec_beside_work(char **argv)
{
	int policy = -1;

	/* Who begins just then is left low; policy and nice value are of two moments. */
	for (int i = 0; i < 50 && policy != SCHED_OTHER; i++)
		policy = try_exec_beside_work();
	puts(policy < 0		     ? "no helper"
	     : policy == SCHED_IDLE  ? "left low"
	     : policy == SCHED_OTHER ? "raised"
				     : "raised to another priority");
	return 0;
}

/* The child has none of the threads that work here. */
static int case_fork_beside_work(char **argv)
{
	pthread_t thread;
	int nr = 0;

	must_hold(!pthread_create(&thread, NULL, populate_on_and_on, NULL),
		  "thread");
	for (int i = 0; i < 20; i++)
		nr += count_opens();
	printf("%d looks\n", nr);
	fflush(stdout);
	_exit(0);
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} cases[] = {
	{ "small", case_small },
	{ "touch", case_touch },
	{ "many-small", case_many_small },
	{ "space", case_space },
	{ "advise-space", case_advise_space },
	{ "populate", case_populate },
	{ "lock-present", case_lock_present },
	{ "populate-otherwise", case_populate_otherwise },
	{ "_exit", case_exit },
	{ "brief", case_brief },
	{ "vfork", case_vfork },
	{ "clone", case_clone },
	{ "fork", case_fork },
	{ "exec", case_exec },
	{ "spawn", case_spawn },
	{ "killed", case_killed },
	{ "spawn-path", case_spawn_path },
	{ "spawn-name", case_spawn_name },
	{ "fork-beside-work", case_fork_beside_work },
	{ "exec-beside-work", case_exec_beside_work },
	{ "fexecve", case_fexecve },
	{ "execveat", case_execveat },
	{ "execveat-of-fd", case_execveat_of_fd },
	{ "execveat-fails", case_execveat_fails },
	{ "exec-fails", case_exec_fails },
	{ "exec-fails-of-size", case_exec_fails_of_size },
	{ "exec-fails-of-format", case_exec_fails_of_format },
	{ "exec-fails-of-descriptor", case_exec_fails_of_descriptor },
	{ "exec-fails-cancelled", case_exec_fails_cancelled },
	{ "exec-script", case_exec_script },
	{ "exec-by-shell", case_exec_by_shell },
	{ "exec-fails-there", case_exec_fails_there },
	{ "forks-fail", case_forks_fail },
	{ "child-killed", case_child_killed },
	{ "orphan-killed", case_orphan_killed },
	{ "filtered-child", case_filtered_child },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(argv);
	return 2;
}
