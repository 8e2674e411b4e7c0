/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PID 1 of a guest that runs test programs, those in /tests, one after the
 * other.  On the second serial port it says, for tests/vm/Programs.pm:
 *
 *	> NAME
 *	what the program printed, standard error with a # before each line
 *	< STATUS SECONDS	as of waitpid(2)
 *
 * and "end" at the end.  Owns what programs find: /proc, /sys, /dev/shm, /tmp, a
 * tree of control groups of version 2 with all that ktask reads.  A program
 * that takes too long is killed, with all that it left behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_SECONDS 300
#define NAMES_MAX 64
#define ERRORS "/tmp/stderr"

static FILE *verdict_file;
/* Of a program; a busy host asks for more patience. */
static int limit_s = LIMIT_SECONDS;

/* Programs may set the clock. */
static time_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fprintf(verdict_file, "# %s: %m\n", path);
	if (fd >= 0)
		close(fd);
}

static void mount_at(const char *type, const char *path, mode_t mode)
{
	mkdir(path, mode);
	if (mount(type, path, type, 0, NULL))
		fprintf(verdict_file, "# mounting %s: %m\n", path);
}

static void mount_all(void)
{
	mount_at("proc", "/proc", 0555);
	mount_at("sysfs", "/sys", 0555);
	mount_at("tmpfs", "/dev/shm", 01777);
	mount_at("devpts", "/dev/pts", 0755);
	mount_at("tmpfs", "/tmp", 01777);
	mount_at("cgroup2", "/sys/fs/cgroup", 0755);
	write_file("/sys/fs/cgroup/cgroup.subtree_control",
		   "+cpu +cpuset +pids +memory");
	/* Nobody is in it: it holds what tests/vm/settle.c tells of. */
	mkdir("/sys/fs/cgroup/stays", 0755);
	write_file("/sys/fs/cgroup/stays/cpu.max", "50000 100000");
	mkdir("/etc", 0755);
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
	/* Where the tests look for programs of ours. */
	setenv("KTASK_BUILD", "/bin", 1);
	setenv("LC_ALL", "C", 1);
	setenv("PATH", "/bin", 1);
	setenv("TMPDIR", "/tmp", 1);
	setenv("XDG_CACHE_HOME", "/tmp/cache", 1);
}

static pid_t start_program(const char *path)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	dup2(fileno(verdict_file), 1);
	close(2);
	open(ERRORS, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0644);
	execl(path, path, (char *)NULL);
	/* Small kernels know no scripts. */
	if (errno == ENOEXEC)
		execl("/bin/sh", "sh", path, (char *)NULL);
	printf("cannot be run: %m\n");
	fflush(stdout);
	_exit(126);
}

/* Orphans become our children.  Return: the status of @pid. */
static int wait_for(pid_t pid, time_t end)
{
	struct timespec ts = { 0, 20000000 };
	int status, result = 0;
	pid_t found;

	for (;;) {
		while ((found = waitpid(-1, &status, WNOHANG)) > 0)
			if (found == pid)
				return status;
		if (!result && now_s() > end) {
			fprintf(verdict_file, "# no end within %d s\n",
				limit_s);
			kill(-pid, SIGKILL);
			result = 1;
		}
		nanosleep(&ts, NULL);
	}
}

static void show_errors(void)
{
	FILE *in = fopen(ERRORS, "r");
	char line[1024];

	while (in && fgets(line, sizeof(line), in))
		fprintf(verdict_file, "# %s%s", line,
			strchr(line, '\n') ? "" : "\n");
	if (in)
		fclose(in);
}

static void run_program(const char *name)
{
	char path[300];
	time_t start_s = now_s();
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/tests/%s", name);
	fprintf(verdict_file, "> %s\n", name);
	fflush(verdict_file);
	pid = start_program(path);
	status = wait_for(pid, start_s + limit_s);
	kill(-pid, SIGKILL);
	show_errors();
	fprintf(verdict_file, "< %d %ld\n", status, (long)(now_s() - start_s));
	fflush(verdict_file);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_all(void)
{
	char *names[NAMES_MAX];
	DIR *dir = opendir("/tests");
	struct dirent *entry;
	unsigned nr = 0;

	while (dir && nr < NAMES_MAX && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			names[nr++] = strdup(entry->d_name);
	qsort(names, nr, sizeof(names[0]), by_name);
	for (unsigned i = 0; i < nr; i++)
		run_program(names[i]);
	fprintf(verdict_file, "end\n");
}

int main(void)
{
	/* The kernel hands on words of its command line that it does not know. */
	const char *patience = getenv("TEST_PATIENCE");

	if (patience && atoi(patience) > 1)
		limit_s *= atoi(patience);
	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	verdict_file = fopen("/dev/ttyS1", "w");
	if (!verdict_file)
		return 1;
	mount_all();
	run_all();
	fclose(verdict_file);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
