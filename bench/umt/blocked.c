/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job whose threads block: many files read with direct I/O, cold.  In each
 * round ktask reads them all, finding out by itself how many threads pay, and
 * so do fixed numbers of threads that take the next piece from one counter.
 *
 *	build/bench/blocked [--folder PATH] [--runs N] [--files N] [--piece KIB]
 *
 * Ratios are between medians of times.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>

#define FILE_BYTES (4u << 20)
#define RUNS_MAX 100
#define THREADS_MAX 64
#define ALIGN 4096

static const unsigned counts[] = { 1, 2, 4, 8, 16, 32, 64 };
#define NR_COUNTS (sizeof(counts) / sizeof(counts[0]))

static const char *folder = "/var/tmp";
static unsigned nr_files = 64, nr_runs = 5;
static size_t piece_bytes = 128 << 10;
static int *fds;

static void die(const char *what)
{
	fprintf(stderr, "bench-blocked: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- files ---- */

/* Bytes that no disk and no host stores as less. */
static void fill(char *buffer, size_t bytes)
{
	static uint64_t state = 88172645463325252u;
	size_t i;

	for (i = 0; i < bytes / sizeof(state); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		((uint64_t *)buffer)[i] = state;
	}
}

static int make_file(char *buffer)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/ktask-blocked-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		die("making a file");
	unlink(path);
	fill(buffer, FILE_BYTES);
	if (write(fd, buffer, FILE_BYTES) != FILE_BYTES || fsync(fd))
		die("writing a file");
	if (fcntl(fd, F_SETFL, O_DIRECT))
		die("direct I/O");
	return fd;
}

static void make_files(void)
{
	char *buffer = malloc(FILE_BYTES);
	unsigned i;

	fds = calloc(nr_files, sizeof(*fds));
	if (!buffer || !fds)
		die("memory");
	for (i = 0; i < nr_files; i++)
		fds[i] = make_file(buffer);
	free(buffer);
}

static size_t nr_pieces(void)
{
	return nr_files * (FILE_BYTES / piece_bytes);
}

static int read_piece(size_t piece)
{
	static __thread char *buffer;
	size_t each = FILE_BYTES / piece_bytes;
	off_t at = (off_t)(piece % each * piece_bytes);
	ssize_t nr;

	if (!buffer && posix_memalign((void **)&buffer, ALIGN, piece_bytes))
		return -ENOMEM;
	nr = pread(fds[piece / each], buffer, piece_bytes, at);
	return nr == (ssize_t)piece_bytes ? 0 : -EIO;
}

/* ---- the sides ---- */

static int read_pieces(void *start, void *end, void *unused)
{
	size_t piece;
	int error = 0;

	for (piece = (size_t)start; piece < (size_t)end && !error; piece++)
		error = read_piece(piece);
	return error;
}

static unsigned last_threads;

static double by_ktask(unsigned unused)
{
	DEFINE_KTASK_CTL(ctl, read_pieces, NULL, 1);
	struct ktask_result result = KTASK_RESULT_INIT;
	double start = now_s();

	ktask_ctl_set_result(&ctl, &result);
	ktask_ctl_set_name(&ctl, "bench-blocked");
	if (ktask_run(NULL, nr_pieces(), &ctl))
		die("reading");
	last_threads = result.threads;
	return now_s() - start;
}

static size_t next_piece;

static void *reads(void *unused)
{
	size_t piece;

	while ((piece = __atomic_fetch_add(&next_piece, 1, __ATOMIC_RELAXED)) <
	       nr_pieces())
		if (read_piece(piece))
			die("reading");
	return NULL;
}

static double by_threads(unsigned nr)
{
	pthread_t threads[THREADS_MAX];
	double start = now_s();
	unsigned i;

	next_piece = 0;
	for (i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, reads, NULL))
			die("making a thread");
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return now_s() - start;
}

/* ---- rounds ---- */

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, nr_runs, sizeof(*values), by_value);
	return values[nr_runs / 2];
}

static void report(double times[][RUNS_MAX])
{
	double mib = (double)nr_files * FILE_BYTES / (1 << 20);
	double best = 0, own = median(times[NR_COUNTS]);
	size_t side;

	for (side = 0; side < NR_COUNTS; side++) {
		double time = median(times[side]);

		if (!side || time < best)
			best = time;
		printf("  %2u threads %8.1f ms %8.0f MiB/s\n", counts[side],
		       time * 1e3, mib / time);
	}
	printf("  ktask      %8.1f ms %8.0f MiB/s, %.2f of the best fixed "
	       "number (%u threads in the last round)\n",
	       own * 1e3, mib / own, best / own, last_threads);
}

static void measure(void)
{
	static double times[NR_COUNTS + 1][RUNS_MAX];
	size_t turn, side;
	unsigned run;

	for (run = 0; run < nr_runs; run++)
		for (turn = 0; turn <= NR_COUNTS; turn++) {
			side = (turn + run) % (NR_COUNTS + 1);
			times[side][run] = side < NR_COUNTS
						   ? by_threads(counts[side])
						   : by_ktask(0);
		}
	report(times);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "files", required_argument, NULL, 'n' },
		{ "folder", required_argument, NULL, 'f' },
		{ "piece", required_argument, NULL, 'p' },
		{ "runs", required_argument, NULL, 'r' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			nr_files = (unsigned)atoi(optarg);
		else if (option == 'f')
			folder = optarg;
		else if (option == 'p')
			piece_bytes = (size_t)atoi(optarg) << 10;
		else if (option == 'r')
			nr_runs = (unsigned)atoi(optarg);
		else
			return 2;
	}
	if (!nr_files || !nr_runs || nr_runs > RUNS_MAX ||
	    piece_bytes < ALIGN || piece_bytes > FILE_BYTES ||
	    FILE_BYTES % piece_bytes) {
		fprintf(stderr, "bench-blocked: files, runs or piece\n");
		return 2;
	}
	make_files();
	printf("%u files of %u MiB, direct I/O in pieces of %zu KiB, %u "
	       "rounds, medians\n",
	       nr_files, FILE_BYTES >> 20, piece_bytes >> 10, nr_runs);
	measure();
	return 0;
}
