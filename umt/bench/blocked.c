/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs whose threads block: many files by direct I/O, cold.  In each round
 * ktask does them all, finding out by itself how many threads pay, and so do
 * fixed numbers of threads that take the next piece from one counter.
 *
 *	build/bench/blocked [--work read|warm|copy|sync|mutex|fault] [--runs N]
 *		[--directory PATH] [--files N] [--piece KIB] [--counts 1,2,4]
 *		[--policy idle|nice] [--pin] [--umt] [--huge] [--limited]
 *
 *	read	pread(2) of pieces, by ktask_run()
 *	warm	ktask_warm() of the files, as "ktask warm --direct"
 *	copy	the same, and pwrite(2) of them to another file, which has its
 *		blocks, so that all sides write the same way
 *	sync	fsync(2) of the files, each with some dirty pages
 *
 * and two where threads block, but more of them are of no use:
 *
 *	mutex	half of each piece is done under one mutex
 *	fault	fresh memory is touched, all in one address space
 *
 * The fixed threads are of normal priority, or as low as ktask's helpers with
 * --policy idle, or at nice 19; with --pin each is bound to one CPU, with --huge
 * their buffers are in huge pages, as those of ktask's operations on files are.
 * With --limited they are ktask itself with at most so many threads.  With --umt
 * ktask is told by libumt which of its threads are blocked, else it looks.
 * Ratios are between medians of times.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>
#include <ktask/ops.h>
#include <ktask/umt.h>

#define FILE_BYTES (4u << 20)
#define RUNS_MAX 100
#define COUNTS_MAX 16
#define THREADS_MAX 256
#define ALIGN 4096

static unsigned counts[COUNTS_MAX] = { 1, 2, 4, 8, 16, 32, 64 };
static unsigned nr_counts = 7;

static const char *directory = "/var/tmp";
static unsigned nr_files = 64, nr_runs = 5;
static size_t piece_bytes;
static bool idle, nice19, pinned, huge, limited;
static unsigned most_threads; /* 0: ktask finds out */
static int *fds, *copies;

static void die_of(const char *what)
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
static void fill_buffer(char *buffer, size_t bytes)
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

	snprintf(path, sizeof(path), "%s/ktask-blocked-XXXXXX", directory);
	fd = mkstemp(path);
	if (fd < 0)
		die_of("making a file");
	unlink(path);
	fill_buffer(buffer, FILE_BYTES);
	if (write(fd, buffer, FILE_BYTES) != FILE_BYTES || fsync(fd))
		die_of("writing a file");
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (fcntl(fd, F_SETFL, O_DIRECT))
		die_of("direct I/O");
	return fd;
}

static int *make_files(void)
{
	char *buffer = malloc(FILE_BYTES);
	int *made = calloc(nr_files, sizeof(*made));
	unsigned i;

	if (!buffer || !made)
		die_of("memory");
	for (i = 0; i < nr_files; i++)
		made[i] = make_file(buffer);
	free(buffer);
	return made;
}

static size_t nr_pieces(void)
{
	return nr_files * (FILE_BYTES / piece_bytes);
}

#define HUGE_BYTES (2u << 20)

static __thread char *own_buffer;

/* Return: NULL without memory. */
static char *take_buffer(void)
{
	size_t bytes = huge ? HUGE_BYTES : piece_bytes;
	void *buffer;

	if (posix_memalign(&buffer, huge ? HUGE_BYTES : ALIGN, bytes))
		return NULL;
	if (huge)
		madvise(buffer, bytes, MADV_HUGEPAGE);
	return buffer;
}

static int move_piece(size_t piece)
{
	size_t each = FILE_BYTES / piece_bytes;
	off_t at = (off_t)(piece % each * piece_bytes);
	ssize_t size = (ssize_t)piece_bytes;

	if (!own_buffer)
		own_buffer = take_buffer();
	if (!own_buffer)
		return -ENOMEM;
	if (pread(fds[piece / each], own_buffer, piece_bytes, at) != size)
		return -EIO;
	if (copies &&
	    pwrite(copies[piece / each], own_buffer, piece_bytes, at) != size)
		return -EIO;
	return 0;
}

/* ---- fsync ---- */

#define DIRTY_BYTES (64u << 10)

/* Through the page cache, and on disk they were: only this is dirty. */
static void make_dirty(void)
{
	static char bytes[DIRTY_BYTES];
	unsigned i;

	for (i = 0; i < nr_files; i++) {
		fill_buffer(bytes, sizeof(bytes));
		if (fcntl(fds[i], F_SETFL, 0) ||
		    pwrite(fds[i], bytes, sizeof(bytes), 0) != sizeof(bytes))
			die_of("making a file dirty");
	}
}

static int sync_piece(size_t piece)
{
	return fsync(fds[piece]) ? -errno : 0;
}

/* ---- work that does not wait for devices ---- */

#define HALF_NS 20000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void compute_half(void)
{
	double until = now_s() + HALF_NS / 1e9;

	while (now_s() < until)
		;
}

static int lock_piece(size_t unused)
{
	pthread_mutex_lock(&mutex);
	compute_half();
	pthread_mutex_unlock(&mutex);
	compute_half();
	return 0;
}

static char *memory;

static void take_memory(void)
{
	size_t bytes = (size_t)nr_files * FILE_BYTES;

	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die_of("memory");
	madvise(memory, bytes, MADV_NOHUGEPAGE);
}

static void give_memory(void)
{
	munmap(memory, (size_t)nr_files * FILE_BYTES);
}

static int fault_piece(size_t piece)
{
	size_t at;

	for (at = 0; at < piece_bytes; at += ALIGN)
		((volatile char *)memory)[piece * piece_bytes + at] = 1;
	return 0;
}

/* ---- the sides ---- */

static const struct work {
	const char *name;
	int (*run)(void);
	int (*piece)(size_t piece);
	size_t piece_kib; /* as long as one request of the operation */
	void (*before)(void); /* not timed; NULL: nothing */
	void (*after)(void);
} * work;

static unsigned last_threads;

static int do_pieces(void *start, void *end, void *unused)
{
	size_t piece;
	int error = 0;

	for (piece = (size_t)start; piece < (size_t)end && !error; piece++)
		error = work->piece(piece);
	return error;
}

static int by_run(void)
{
	DEFINE_KTASK_CTL(ctl, do_pieces, NULL, 1);
	struct ktask_result result = KTASK_RESULT_INIT;
	int error;

	ktask_ctl_set_result(&ctl, &result);
	ktask_ctl_set_name(&ctl, "bench-blocked");
	ktask_ctl_set_max_threads(&ctl, most_threads);
	error = ktask_run(NULL, nr_pieces(), &ctl);
	last_threads = result.threads;
	return error;
}

static int by_op(const char *name, unsigned flags)
{
	struct ktask_file *files = calloc(nr_files, sizeof(*files));
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .files = files,
				      .nr_files = nr_files,
				      .flags = flags };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	unsigned i;
	int error;

	if (!files)
		return -ENOMEM;
	for (i = 0; i < nr_files; i++)
		files[i] = (struct ktask_file){ .struct_size = sizeof(
							struct ktask_file),
						.fd = fds[i],
						.len = KTASK_TO_END };
	opts.result = &result;
	opts.max_threads = most_threads;
	error = ktask_op_run(ktask_op_find(name), &args, &opts);
	last_threads = result.threads;
	free(files);
	return error;
}

static int work_warm(void)
{
	return by_op("warm", KTASK_FILE_DIRECT);
}

static int work_copy(void)
{
	return by_run();
}

static const struct work works[] = {
	{ "read", by_run, move_piece, 128, NULL, NULL },
	{ "warm", work_warm, move_piece, 1024, NULL, NULL },
	{ "copy", work_copy, move_piece, 1024, NULL, NULL },
	{ "sync", by_run, sync_piece, FILE_BYTES >> 10, make_dirty, NULL },
	{ "mutex", by_run, lock_piece, 64, NULL, NULL },
	{ "fault", by_run, fault_piece, 64, take_memory, give_memory },
};

static double by_ktask(unsigned at)
{
	double start = now_s();
	int error;

	most_threads = at;
	error = work->run();
	if (error) {
		errno = -error;
		die_of(work->name);
	}
	return now_s() - start;
}

static size_t next_piece;

static void place_thread(unsigned number)
{
	struct sched_param none = { 0 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
	if (pinned)
		sched_setaffinity(0, sizeof(set), &set);
	if (idle)
		sched_setscheduler(0, SCHED_IDLE, &none);
	if (idle || nice19)
		setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
}

static void *works_on(void *number)
{
	size_t piece;

	place_thread((unsigned)(uintptr_t)number);
	while ((piece = __atomic_fetch_add(&next_piece, 1, __ATOMIC_RELAXED)) <
	       nr_pieces())
		if (work->piece(piece))
			die_of("working on a piece");
	free(own_buffer);
	return NULL;
}

static double by_threads(unsigned nr)
{
	pthread_t threads[THREADS_MAX];
	double start = now_s();
	unsigned i;

	next_piece = 0;
	for (i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, works_on,
				   (void *)(uintptr_t)i))
			die_of("making a thread");
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

static double find_median(double *values)
{
	qsort(values, nr_runs, sizeof(*values), by_value);
	return values[nr_runs / 2];
}

static void print_side(const char *name, double time, double least)
{
	double mib = (double)nr_files * FILE_BYTES / (1 << 20);

	printf("  %-11s %8.1f ms %8.0f MiB/s, least %8.1f ms %8.0f MiB/s\n",
	       name, time * 1e3, mib / time, least * 1e3, mib / least);
}

/* find_median() sorts: the first is then the least. */
static void report_times(double times[][RUNS_MAX])
{
	double own = find_median(times[nr_counts]),
	       own_least = times[nr_counts][0];
	double best = 0, least = 0;
	char name[32];
	size_t side;

	for (side = 0; side < nr_counts; side++) {
		double time = find_median(times[side]);

		if (!side || time < best)
			best = time;
		if (!side || times[side][0] < least)
			least = times[side][0];
		snprintf(name, sizeof(name), "%3u threads", counts[side]);
		print_side(name, time, times[side][0]);
	}
	print_side("ktask", own, own_least);
	printf("  %.2f of the best fixed number, %.2f by the least times (%u "
	       "threads in the last round)\n",
	       best / own, least / own_least, last_threads);
}

static double by_side(size_t side)
{
	unsigned count = side < nr_counts ? counts[side] : 0;

	return count && !limited ? by_threads(count) : by_ktask(count);
}

static void measure_sides(void)
{
	static double times[COUNTS_MAX + 1][RUNS_MAX];
	size_t turn, side;
	unsigned run;

	for (run = 0; run < nr_runs; run++)
		for (turn = 0; turn <= nr_counts; turn++) {
			side = (turn + run) % (nr_counts + 1);
			if (work->before)
				work->before();
			times[side][run] = by_side(side);
			if (work->after)
				work->after();
		}
	report_times(times);
}

static bool take_counts(char *text)
{
	char *one;

	nr_counts = 0;
	while ((one = strsep(&text, ","))) {
		int count = atoi(one);

		if (count < 1 || count > THREADS_MAX || nr_counts == COUNTS_MAX)
			return false;
		counts[nr_counts++] = (unsigned)count;
	}
	return true;
}

static bool take_work(const char *name)
{
	size_t i;

	work = NULL;
	for (i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (!strcmp(works[i].name, name))
			work = &works[i];
	return work;
}

static bool take_policy(const char *name)
{
	idle = !strcmp(name, "idle");
	nice19 = !strcmp(name, "nice");
	return idle || nice19;
}

static bool use_umt(void)
{
	struct umt *subscriber;
	int error = umt_open(&subscriber, NULL);

	if (!error)
		error = ktask_use_umt(subscriber);
	errno = -error;
	if (error)
		die_of("opening UMT");
	printf("UMT by %s; ", umt_backend_name(umt_backend(subscriber)));
	return true;
}

static bool take_option(int option)
{
	if (option == 'n')
		nr_files = (unsigned)atoi(optarg);
	else if (option == 'f')
		directory = optarg;
	else if (option == 'p')
		piece_bytes = (size_t)atoi(optarg) << 10;
	else if (option == 'r')
		nr_runs = (unsigned)atoi(optarg);
	else if (option == 'c')
		return take_counts(optarg);
	else if (option == 'l')
		return take_policy(optarg);
	else if (option == 'i')
		pinned = true;
	else if (option == 'g')
		huge = true;
	else if (option == 'h')
		limited = true;
	else if (option == 'u')
		return use_umt();
	else if (option == 'w')
		return take_work(optarg);
	else
		return false;
	return true;
}

static bool makes_sense(void)
{
	return nr_files && nr_runs && nr_runs <= RUNS_MAX &&
	       piece_bytes >= ALIGN && piece_bytes <= FILE_BYTES &&
	       FILE_BYTES % piece_bytes == 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "counts", required_argument, NULL, 'c' },
		{ "files", required_argument, NULL, 'n' },
		{ "directory", required_argument, NULL, 'f' },
		{ "limited", no_argument, NULL, 'h' },
		{ "huge", no_argument, NULL, 'g' },
		{ "pin", no_argument, NULL, 'i' },
		{ "piece", required_argument, NULL, 'p' },
		{ "policy", required_argument, NULL, 'l' },
		{ "runs", required_argument, NULL, 'r' },
		{ "umt", no_argument, NULL, 'u' },
		{ "work", required_argument, NULL, 'w' },
		{ 0 },
	};
	int option;

	work = &works[0];
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(option))
			return 2;
	if (!piece_bytes)
		piece_bytes = work->piece_kib << 10;
	if (!makes_sense()) {
		fprintf(stderr, "bench-blocked: files, runs or piece\n");
		return 2;
	}
	if (work->piece == move_piece || work->piece == sync_piece)
		fds = make_files();
	if (work->run == work_copy)
		copies = make_files();
	printf("%s: %u times %u MiB in pieces of %zu KiB, %u rounds, medians"
	       "%s%s%s%s%s\n",
	       work->name, nr_files, FILE_BYTES >> 20, piece_bytes >> 10,
	       nr_runs, idle ? ", fixed threads as low as helpers" : "",
	       nice19 ? ", fixed threads at nice 19" : "",
	       pinned ? ", fixed threads bound to CPUs" : "",
	       huge ? ", their buffers in huge pages" : "",
	       limited ? ", by ktask with at most so many threads" : "");
	measure_sides();
	return 0;
}
