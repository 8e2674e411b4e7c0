/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's own tests, as tests/vm/build-own-tests has put them into /own, or those of
 * the Linux Test Project: what each of them says must be the same on both kernels.
 *
 * Some of them say otherwise now and then, on any kernel.  So one that does not do well
 * is run again, and the best of its runs counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../vfio_device.h"
#include "facts.h"
#include "own_results.h"

#define DIR "/own"
#define OUTPUT "/own/output"
#define LINES_MAX 200
#define WORDS_MAX 12
#define POOL_PAGES 160
#define TRIES 3
#define LIMIT_SECONDS 600
#define NOT_ENDED (-1)
#define CANNOT_BE_RUN 127
#define TEXT_MAX (1 << 20)

/* So that people see why. */
static void note_output(const char *title)
{
	static char text[TEXT_MAX];
	char *save = NULL;
	unsigned nr = 0;

	read_text(OUTPUT, text, sizeof(text));
	for (char *line = strtok_r(text, "\n", &save); line && nr < 15;
	     line = strtok_r(NULL, "\n", &save))
		if (strstr(line, "not ok") || strcasestr(line, "fail") ||
		    strcasestr(line, "error") || strstr(line, "TBROK")) {
			note_line("%s: %.200s", title, line);
			nr++;
		}
}

/* ---- running ---- */

static void become_program(char *const words[])
{
	char path[200];
	int fd = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	snprintf(path, sizeof(path), DIR "/%s", words[0]);
	dup2(fd, 1);
	dup2(fd, 2);
	*strrchr(path, '/') = 0;
	if (setsid() < 0 || chdir(path))
		_exit(126);
	snprintf(path, sizeof(path), DIR "/%s", words[0]);
	execv(path, words);
	_exit(127);
}

/* With all that it has begun. */
static int await_end(pid_t pid)
{
	double until =
		seconds_now() + (double)read_option("limit", LIMIT_SECONDS);
	int status, ended = 0;

	while (!ended && seconds_now() < until) {
		ended = waitpid(pid, &status, WNOHANG) == pid;
		if (!ended)
			usleep(20000);
	}
	kill(-pid, SIGKILL);
	if (!ended)
		waitpid(pid, &status, 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (!ended)
		return NOT_ENDED;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static struct run run_once(char *const words[])
{
	static char text[TEXT_MAX];
	struct run run = { 0 };
	pid_t pid;

	pool_set(&pool_2m, POOL_PAGES);
	pid = fork();
	if (pid == 0)
		become_program(words);
	run.status = await_end(pid);
	read_text(OUTPUT, text, sizeof(text));
	count_results(text, &run);
	return run;
}

static bool is_better(const struct run *run, const struct run *than)
{
	if (!run->status != !than->status)
		return !run->status;
	if (run->badly != than->badly)
		return run->badly < than->badly;
	return run->well > than->well;
}

/* What did not end would cost its whole time again. */
static bool is_worth_a_try(const char *program, const struct run *best)
{
	return (best->status || best->badly) && best->status != NOT_ENDED &&
	       !is_skip_status(program, best->status);
}

/* Where nothing of it works, or all was skipped, equal facts say nothing. */
static void note_skipped(const char *title)
{
	static char text[TEXT_MAX];
	char *line, *reason;

	read_text(OUTPUT, text, sizeof(text));
	reason = strstr(text, "SKIP"); /* and not "skip:0" */
	for (line = reason; line && *line && *line != '\n'; line++)
		if (*line == '#' || *line == '\r')
			*line = ' ';
	if (line)
		*line = 0;
	skip_check(reason ? reason : "nothing of it works", "%s does its work",
		   title);
}

static void run_test(const char *title, char *const words[])
{
	struct run best = run_once(words);

	for (int i = 1; i < TRIES && is_worth_a_try(words[0], &best); i++) {
		struct run run = run_once(words);

		if (is_better(&run, &best))
			best = run;
	}
	if (best.status || best.badly)
		note_output(title);
	if (best.status == CANNOT_BE_RUN)
		check_that(false, "%s can be run", title);
	else if (!best.well && (best.status || best.badly || best.skipped))
		note_skipped(title);
	tell_fact_number(best.status, "own test %s: status", title);
	tell_fact_number(best.well, "own test %s: well", title);
	tell_fact_number(best.badly, "own test %s: badly", title);
	tell_fact_number(best.skipped, "own test %s: skipped", title);
}

static void run_line(char *line)
{
	char title[200], *words[WORDS_MAX + 1] = { NULL }, *save = NULL;
	int nr = 0;

	snprintf(title, sizeof(title), "%s", line);
	for (char *word = strtok_r(line, " ", &save); word && nr < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		words[nr++] = word;
	if (nr)
		run_test(title, words);
}

void tell_own_tests(void)
{
	static char list[65536];
	char device[256];
	char *save = NULL;
	unsigned nr = 0;

	if (vfio_bind(device, sizeof(device)))
		setenv("VFIO_SELFTESTS_BDF", device, 1);
	else
		check_that(!read_option("vfio", 0), "there is a device");
	read_text(DIR "/list", list, sizeof(list));
	mkdir("/tmp", 01777);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mkdir("/dev/shm", 01777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	write_text(GROUP_DIR "/cgroup.subtree_control", "+cpu +pids +cpuset");
	/* Programs that look for a huge page find a large pool. */
	for (char *line = strtok_r(list, "\n", &save); line && nr < LINES_MAX;
	     line = strtok_r(NULL, "\n", &save), nr++)
		run_line(line);
	check_that(nr > 0, "the kernel has tests of its own: %u", nr);
	note_line("helpers that worked in jobs: %ld", helpers_worked());
}
