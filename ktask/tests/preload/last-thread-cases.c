/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs whose main thread ends without the process: glibc ends the process by exit(0)
 * when the last thread does.  The first argument names the case.  Memory is filled first,
 * so that the shim has threads of its own.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "touches.h"

#define LEN (128 * MIB)

static pthread_t main_thread;

static void fill_block(size_t len)
{
	char *block = malloc(len);

	must_hold(block != NULL, "malloc");
	for (size_t at = 0; at < len; at += PAGE_BYTES)
		block[at] = 1;
	if (len < LEN)
		free(block);
}

static void in_atexit(void)
{
	puts("atexit");
}

static void start_thread(void *(*run)(void *))
{
	pthread_t thread;

	must_hold(!pthread_create(&thread, NULL, run, NULL), "thread");
}

static void *say_end(void *arg)
{
	pthread_join(main_thread, NULL);
	puts("the last thread");
	return arg;
}

static void *fill_and_end(void *arg)
{
	pthread_join(main_thread, NULL);
	fill_block(LEN / 2);
	puts("filled by the last thread");
	return arg;
}

static void *cancel_main(void *arg)
{
	pthread_cancel(main_thread);
	pthread_join(main_thread, NULL);
	puts("main was cancelled");
	return arg;
}

static void *wait_for_end(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *say_ready(void *arg)
{
	pthread_join(main_thread, NULL);
	puts("ready");
	fflush(stdout);
	return wait_for_end(arg);
}

/* Its child has one thread, and memory that it fills. */
static void *fork_and_end(void *arg)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		fill_block(LEN);
		puts("child");
		pthread_exit(NULL);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	printf("child's status %d\n", status);
	return arg;
}

static void case_alone(void)
{
	puts("alone");
	pthread_exit(NULL);
}

static void case_freed(void)
{
	fill_block(LEN / 2);
	case_alone();
}

static void case_thread(void)
{
	start_thread(say_end);
	pthread_exit(NULL);
}

static void case_thread_fills(void)
{
	start_thread(fill_and_end);
	pthread_exit(NULL);
}

static void case_cancelled(void)
{
	start_thread(cancel_main);
	wait_for_end(NULL);
}

static void case_signal(void)
{
	start_thread(say_ready);
	pthread_exit(NULL);
}

static void populate_block(void)
{
	must_hold(mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		       0) != MAP_FAILED,
		  "mmap");
}

static void *populate_and_end(void *arg)
{
	pthread_join(main_thread, NULL);
	populate_block();
	puts("populated by the last thread");
	return arg;
}

static void case_populated(void)
{
	populate_block();
	puts("populated");
	pthread_exit(NULL);
}

static void case_thread_populates(void)
{
	populate_block();
	puts("populated");
	start_thread(populate_and_end);
	pthread_exit(NULL);
}

static void case_forks(void)
{
	fork_and_end(NULL);
	pthread_exit(NULL);
}

/* Not while the main thread loads what pthread_exit() needs: the child could not. */
static void *fork_later(void *arg)
{
	pthread_join(main_thread, NULL);
	return fork_and_end(arg);
}

static void case_thread_forks(void)
{
	start_thread(fork_later);
	pthread_exit(NULL);
}

/* The C library does not know that the thread ended. */
static void case_unknown(void)
{
	puts("unknown");
	fflush(stdout);
	syscall(SYS_exit, 5);
}

/* It has the parent's memory, and so the variables of its main thread. */
static void case_vfork(void)
{
	pid_t child = vfork();
	int status = -1;

	if (!child) {
		execl("/", "/", NULL);
		syscall(SYS_exit, 7);
	}
	must_hold(waitpid(child, &status, 0) == child, "waitpid");
	printf("child's status %d\n", WEXITSTATUS(status));
	fill_block(LEN);
	exit(0);
}

/* The number behind a word in a file of a thread of this process, or 0. */
static unsigned long read_number(const char *tid, const char *word)
{
	unsigned long number = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.10s/status", tid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, word, strlen(word)))
			number = strtoul(line + strlen(word), NULL, 10);
	if (file)
		fclose(file);
	return number;
}

/* How often the threads other than this one have gone to sleep. */
static unsigned long count_sleeps(void)
{
	unsigned long nr = 0;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	must_hold(tasks != NULL, "tasks");
	while ((task = readdir(tasks)))
		if (task->d_name[0] != '.' && atoi(task->d_name) != getpid())
			nr += read_number(task->d_name,
					  "voluntary_ctxt_switches:");
	closedir(tasks);
	return nr;
}

/* The watcher looks for other memory for some ten seconds. */
static void case_idle(void)
{
	unsigned long before = 0, now = 1;

	for (int i = 0; i < 20 && now != before; i++) {
		before = count_sleeps();
		sleep_ms(3000);
		now = count_sleeps();
	}
	puts(now == before ? "all sleep" : "some wake");
	fflush(stdout);
	/* Nobody looks any more, and still the process ends. */
	case_unknown();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "alone", case_alone },
	{ "freed", case_freed },
	{ "thread", case_thread },
	{ "thread-fills", case_thread_fills },
	{ "cancelled", case_cancelled },
	{ "signal", case_signal },
	{ "populated", case_populated },
	{ "thread-populates", case_thread_populates },
	{ "forks", case_forks },
	{ "thread-forks", case_thread_forks },
	{ "unknown", case_unknown },
	{ "idle", case_idle },
	{ "vfork", case_vfork },
};

int main(int argc, char **argv)
{
	main_thread = pthread_self();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		if (!strcmp(argv[1], "freed") || !strcmp(argv[1], "idle"))
			fill_block(LEN / 2);
		else
			fill_block(LEN);
		atexit(in_atexit);
		cases[i].run();
	}
	return 2;
}
