/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Restoring memory through userfaultfd from a file in the page cache: one thread
 * against two, by wall and CPU time.  Beside it a thread that reads pages at random,
 * as a program that was resumed does: what its faults wait for while two threads
 * drain, and while draining hardly runs.  Where other programs run too, a part of that is
 * the reader's wait for a CPU once its page is there: told beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include <ktask/uffd.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "part.h"

#define MAX_FAULTS 20000
#define FAULT_PAUSE_NS 200000
/* So few per cent that threads sleep nearly all the time. */
#define IDLE_PERCENT 1
#define IDLE_FAULTS 1000

struct reader {
	const char *at;
	size_t len;
	unsigned max; /* faults */
	_Atomic int stop;
	unsigned nr;
	double seconds[MAX_FAULTS];
	double served_seconds[MAX_FAULTS]; /* without waits for a CPU */
};

static int make_image(size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	char *at;

	check_that(fd >= 0 && !ftruncate(fd, (off_t)len), "making an image");
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check_that(at != MAP_FAILED, "mapping the image");
	for (size_t pos = 0; pos < len; pos += 4096)
		at[pos] = (char)(pos >> 12 | 1);
	munmap(at, len);
	return fd;
}

static int open_uffd(char *at, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)at, len },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	check_that(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
			   !ioctl(fd, UFFDIO_REGISTER, &range),
		   "making a userfaultfd");
	return fd;
}

/* Return: how long the thread of @schedstat has waited for a CPU; 0: it is not known. */
static double waited_seconds(int schedstat)
{
	unsigned long long ran_ns, waited_ns;
	char text[80] = "";

	if (pread(schedstat, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &waited_ns) != 2)
		return 0;
	return (double)waited_ns / 1e9;
}

static void read_page(struct reader *reader, const char *pos, int schedstat)
{
	double waited = waited_seconds(schedstat), seconds;
	uint64_t begin_ns = clock_ns();

	(void)*(const volatile char *)pos;
	seconds = (double)(clock_ns() - begin_ns) / 1e9;
	waited = waited_seconds(schedstat) - waited;
	reader->seconds[reader->nr] = seconds;
	reader->served_seconds[reader->nr++] =
		waited < seconds ? seconds - waited : 0;
}

/* Only a page that is not there makes a fault. */
static void *read_pages(void *arg)
{
	struct reader *reader = arg;
	unsigned seed = 1;
	unsigned char there;
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY);

	while (!reader->stop && reader->nr < reader->max) {
		size_t nr = reader->len / 4096;
		size_t page =
			((size_t)rand_r(&seed) << 15 ^ (size_t)rand_r(&seed)) %
			nr;
		const char *pos = reader->at + page * 4096;

		clock_pause_ns(FAULT_PAUSE_NS);
		if (mincore((void *)pos, 4096, &there) || there & 1)
			continue;
		read_page(reader, pos, schedstat);
	}
	close(schedstat);
	return NULL;
}

/* An idle drain is over when enough faults were seen. */
static int stop_with_reader(const struct ktask_progress *progress, void *arg)
{
	const struct reader *reader = arg;

	return reader->nr >= reader->max;
}

struct drain {
	double seconds;
	double cpu_seconds;
};

static void run_drain(struct drain *drain, int image, size_t len,
		      unsigned threads, unsigned cpu_percent,
		      struct reader *reader)
{
	struct ktask_uffd_ctl ctl = KTASK_UFFD_CTL_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	uint64_t begin_ns, cpu_ns;
	char *at = map_absent(len);
	pthread_t thread;
	int error;

	backing_renew(len, MADV_NOHUGEPAGE);
	ctl.addr = at;
	ctl.len = len;
	ctl.uffd = open_uffd(at, len);
	ctl.fd = image;
	ctl.cpu_percent = cpu_percent;
	opts.max_threads = threads;
	if (reader) {
		reader->at = at;
		reader->len = len;
		reader->stop = 0;
		if (cpu_percent) {
			opts.progress_func = stop_with_reader;
			opts.progress_arg = reader;
			opts.progress_ms = 1;
		}
		check_that(!pthread_create(&thread, NULL, read_pages, reader),
			   "making a thread");
	}
	cpu_ns = clock_cpu_ns();
	begin_ns = clock_ns();
	error = ktask_uffd_fill(&ctl, &opts);
	drain->seconds = (double)(clock_ns() - begin_ns) / 1e9;
	drain->cpu_seconds = (double)(clock_cpu_ns() - cpu_ns) / 1e9;
	errno = -error;
	check_that(!error || (cpu_percent && error == -ECANCELED), "filling");
	/* Who waits still goes on. */
	close(ctl.uffd);
	if (reader) {
		reader->stop = 1;
		pthread_join(thread, NULL);
	}
	munmap(at, len);
}

static int compare_doubles(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static double print_percentiles(const char *name, double *seconds, unsigned nr)
{
	double p99 = nr ? seconds[nr * 99 / 100] : 0;

	printf("  %-34s p50 %6.1f us  p99 %6.1f us  of %u\n", name,
	       nr ? seconds[nr / 2] * 1e6 : 0, p99 * 1e6, nr);
	return p99;
}

/* The 99th percentile, in seconds. */
struct fault_p99 {
	double whole;
	double served;
};

static struct fault_p99 print_faults(const char *name, struct reader *reader)
{
	struct fault_p99 p99;

	qsort(reader->seconds, reader->nr, sizeof(double), compare_doubles);
	qsort(reader->served_seconds, reader->nr, sizeof(double),
	      compare_doubles);
	p99.whole = print_percentiles(name, reader->seconds, reader->nr);
	p99.served = print_percentiles("  without waits for a CPU",
				       reader->served_seconds, reader->nr);
	return p99;
}

static void bench_faults(const struct plan *plan, int image)
{
	struct reader *busy = calloc(1, sizeof(*busy));
	struct reader *idle = calloc(1, sizeof(*idle));
	struct drain drain;
	struct fault_p99 busy_p99, idle_p99;

	check_that(busy && idle, "memory");
	busy->max = MAX_FAULTS;
	for (unsigned round = 0; round < plan->rounds; round++) {
		idle->max = (round + 1) * IDLE_FAULTS / plan->rounds;
		run_drain(&drain, image, plan->len, 0, IDLE_PERCENT, idle);
		run_drain(&drain, image, plan->len, 2, 0, busy);
	}
	printf("faults beside it\n");
	idle_p99 = print_faults("an idle drain", idle);
	busy_p99 = print_faults("two threads drain", busy);
	if (idle_p99.served > 0)
		printf("  p99 while draining: %.2f of that of an idle drain; "
		       "without waits for a CPU %.2f\n",
		       busy_p99.whole / idle_p99.whole,
		       busy_p99.served / idle_p99.served);
	free(busy);
	free(idle);
}

void bench_uffd(const struct plan *plan)
{
	double seconds[2][MAX_ROUNDS], cpu_seconds[2][MAX_ROUNDS];
	int image = make_image(plan->len);
	struct drain drain;

	for (unsigned round = 0; round < plan->rounds; round++)
		for (unsigned i = 0; i < 2; i++) {
			unsigned side = (i + round) % 2;

			run_drain(&drain, image, plan->len, side + 1, 0, NULL);
			seconds[side][round] = drain.seconds;
			cpu_seconds[side][round] = drain.cpu_seconds;
		}
	printf("userfaultfd, from a file in the page cache\n");
	print_median_row("one thread", seconds[0], plan->rounds, NULL);
	print_median_row("two threads", seconds[1], plan->rounds, seconds[0]);
	print_median_row("CPU time of one thread", cpu_seconds[0], plan->rounds,
			 NULL);
	print_median_row("CPU time of two threads", cpu_seconds[1],
			 plan->rounds, cpu_seconds[0]);
	bench_faults(plan, image);
	close(image);
}
