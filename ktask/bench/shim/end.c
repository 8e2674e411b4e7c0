/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long a process with much memory takes to end, plain and with the shim by
 * turns: from the word that it may until its parent has waited for it.
 *
 *	bench-end SHIM MIB ROUNDS HOW [SMALL]
 *
 * HOW: exit, or munmap first and exit then.  With SMALL the memory is of 4 KiB
 * pages, otherwise as the system gives it for MADV_HUGEPAGE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 101

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Fills its memory, says so, and ends when it is told. */
static int be_child(char **args)
{
	size_t bytes = strtoul(args[0], NULL, 10) << 20;
	char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char word;

	if (base == MAP_FAILED)
		return 1;
	madvise(base, bytes, args[2] ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	if (madvise(base, bytes, MADV_POPULATE_WRITE) ||
	    write(STDOUT_FILENO, "r", 1) != 1 ||
	    read(STDIN_FILENO, &word, 1) != 1)
		return 1;
	if (!strcmp(args[1], "munmap"))
		munmap(base, bytes);
	exit(0);
}

static void exec_child(char **args, const char *shim, const int *down,
		       const int *up)
{
	char *argv[] = {
		"bench-end", "--child", args[0], args[1], args[2], NULL
	};

	dup2(down[0], STDIN_FILENO);
	dup2(up[1], STDOUT_FILENO);
	for (int i = 0; i < 2; i++) {
		close(down[i]);
		close(up[i]);
	}
	if (shim)
		setenv("LD_PRELOAD", shim, 1);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static double end_once(char **args, const char *shim)
{
	int down[2], up[2], status;
	double start_s;
	pid_t child;
	char word;

	if (pipe(down) || pipe(up))
		return 0;
	child = fork();
	if (!child)
		exec_child(args, shim, down, up);
	close(down[0]);
	close(up[1]);
	if (child < 0 || read(up[0], &word, 1) != 1) {
		fputs("bench-end: the child did not get its memory\n", stderr);
		exit(1);
	}
	/* The child shall sleep when it is told. */
	usleep(50000);
	start_s = now_s();
	if (write(down[1], "e", 1) != 1)
		perror("bench-end: write");
	waitpid(child, &status, 0);
	start_s = now_s() - start_s;
	close(down[1]);
	close(up[0]);
	if (status)
		fprintf(stderr, "bench-end: status %x\n", (unsigned)status);
	return start_s;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double find_median(double *values, int nr)
{
	qsort(values, (size_t)nr, sizeof(*values), by_size);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

int main(int argc, char **argv)
{
	static double plain[MAX_ROUNDS], shimmed[MAX_ROUNDS];
	int rounds;

	if (argc > 3 && !strcmp(argv[1], "--child"))
		return be_child(argv + 2);
	if (argc < 5) {
		fputs("usage: bench-end SHIM MIB ROUNDS exit|munmap [small]\n",
		      stderr);
		return 2;
	}
	rounds = atoi(argv[3]);
	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	argv[3] = argv[2];
	for (int i = 0; i < rounds; i++) {
		if (i % 2)
			shimmed[i] = end_once(argv + 3, argv[1]);
		plain[i] = end_once(argv + 3, NULL);
		if (!(i % 2))
			shimmed[i] = end_once(argv + 3, argv[1]);
		printf("plain %.4f shim %.4f\n", plain[i], shimmed[i]);
	}
	printf("%s MiB, %s, %s pages: plain %.4f s, with the shim %.4f, "
	       "%.2fx\n",
	       argv[3], argv[4], argv[5] ? "4 KiB" : "huge",
	       find_median(plain, rounds), find_median(shimmed, rounds),
	       find_median(plain, rounds) / find_median(shimmed, rounds));
	return 0;
}
