/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * --prefault: memory that a program maps and will touch page by page is made
 * present by helpers ahead of it, while the program goes on; or before mmap()
 * returns (--prefault=wait).
 *
 * Taken are large mappings that may be read and written: private and shared
 * anonymous memory, files on tmpfs and hugetlbfs as far as they reach, segments
 * of System V.  Not where the program says that it may leave memory unused
 * (MAP_NORESERVE), where the calling thread has a memory policy (helpers would
 * not follow it), nor beyond half of what is available.
 *
 * The order: the second half first, then the second half of the first half, and
 * so on.  A program that touches its memory from the start and does nothing
 * else then does half of the work; one that does more finds everything there.
 *
 * What a program says of its memory mostly comes right behind mmap(): so the
 * helpers wait a millisecond.  Whoever changes a mapping ends the job first
 * (shim_prefault_stop()), and begins it again where it was an advice only.
 *
 * Where it behaves badly: memory that the program would never have touched is
 * used; pages of a mapping that gets a policy later than that are where the
 * helper was; mappings that are changed by system calls without libc are
 * populated further on.  That is why it has to be asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "shim.h"

#define NR_JOBS 32
/* 2 to 3 ms of 4 KiB pages: so long somebody may have to wait. */
#define BLOCK_BYTES ((size_t)8 << 20)
#define DELAY_NS 1000000

struct prefault {
	struct ktask_job *job; /* NULL: not in use */
	char *base;
	size_t len;
	size_t nr_blocks;
	atomic_bool delayed;
	struct ktask_result result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prefault jobs[NR_JOBS]; /* under lock */
static atomic_uint nr_jobs;

/* No handler of the program may come back here while the lock is held. */
static void enter(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&lock);
	shim_set_busy(true);
}

static void leave(const sigset_t *old)
{
	shim_set_busy(false);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* The block that comes at place @turn of the order above. */
static size_t block_of(size_t nr_blocks, size_t turn)
{
	size_t end = nr_blocks;

	for (;;) {
		size_t half = end / 2;

		if (turn < end - half)
			return half + turn;
		turn -= end - half;
		end = half;
	}
}

static void populate_block(const struct prefault *job, size_t block)
{
	size_t start = block * BLOCK_BYTES, len = job->len - start;

	if (len > BLOCK_BYTES)
		len = BLOCK_BYTES;
	/* A page that cannot be had now the program will ask for itself. */
	real_madvise(job->base + start, len, MADV_POPULATE_WRITE);
}

/* Positions are turns, from 1 on. */
static int chunk(void *start, void *end, void *arg)
{
	struct prefault *job = arg;
	struct timespec delay = { .tv_nsec = DELAY_NS };

	if (!atomic_exchange(&job->delayed, true))
		nanosleep(&delay, NULL);
	for (size_t turn = (size_t)start; turn < (size_t)end; turn++)
		populate_block(job, block_of(job->nr_blocks, turn - 1));
	return 0;
}

static void finish(struct prefault *job)
{
	ktask_cancel(job->job);
	ktask_wait(job->job);
	job->job = NULL;
	atomic_fetch_sub(&nr_jobs, 1);
	shim_count(SHIM_PREFAULT, job->result.units * BLOCK_BYTES, 0,
		   job->result.cpu_ns, job->result.threads + 1, true);
}

static size_t pending_bytes(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < NR_JOBS; i++) {
		if (jobs[i].job && !ktask_poll(jobs[i].job, NULL))
			finish(&jobs[i]);
		bytes += jobs[i].job ? jobs[i].len : 0;
	}
	return bytes;
}

static void start_job(char *base, size_t len)
{
	struct prefault *job = jobs;
	struct ktask_ctl ctl;

	while (job < jobs + NR_JOBS && job->job)
		job++;
	if (job == jobs + NR_JOBS)
		return;
	job->base = base;
	job->len = len;
	job->nr_blocks = (len - 1) / BLOCK_BYTES + 1;
	job->result = (struct ktask_result)KTASK_RESULT_INIT;
	atomic_store(&job->delayed, false);
	ktask_ctl_init(&ctl, chunk, job, 1);
	ktask_ctl_set_name(&ctl, "prefault");
	ktask_ctl_set_result(&ctl, &job->result);
	if (!ktask_start(&job->job, (void *)1, job->nr_blocks, &ctl))
		atomic_fetch_add(&nr_jobs, 1);
}

static void start(char *base, size_t len, bool pool)
{
	size_t pending = pending_bytes();

	if (pool || shim_room_bytes() / 2 >= pending + len)
		start_job(base, len);
}

/* Helpers would make pages where the thread itself would not. */
static bool has_policy(void)
{
	int mode = 0;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) || mode;
}

static bool takes(size_t len, bool pool, const void *from)
{
	return len >= shim_min_bytes && shim_wants(SHIM_PREFAULT, len, from) &&
	       real_knows_advice(MADV_POPULATE_WRITE) &&
	       (pool || len < shim_room_bytes()) &&
	       (shim_prefault_waits || !has_policy()) &&
	       shim_takes(SHIM_PREFAULT, len);
}

void shim_prefault(void *base, size_t len, bool pool, const void *from)
{
	int saved_errno = errno, cancel_state;
	sigset_t old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (takes(len, pool, from)) {
		if (shim_prefault_waits) {
			shim_populate(SHIM_PREFAULT, base, len, 0);
		} else {
			enter(&old);
			start(base, len, pool);
			leave(&old);
		}
	}
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

/* Bytes of a mapping that are backed; 0: not a kind that is taken. */
static size_t backed_bytes(size_t len, int fd, int64_t offset)
{
	struct statfs fs;
	struct stat file;

	if (fstatfs(fd, &fs) || fstat(fd, &file) ||
	    ((unsigned long)fs.f_type != TMPFS_MAGIC &&
	     (unsigned long)fs.f_type != HUGETLBFS_MAGIC) ||
	    offset < 0 || offset >= file.st_size)
		return 0;
	return (uint64_t)(file.st_size - offset) < len
		       ? (size_t)(file.st_size - offset)
		       : len;
}

#define READ_WRITE (PROT_READ | PROT_WRITE)
#define NO_FLAGS \
	(MAP_NORESERVE | MAP_GROWSDOWN | MAP_STACK | MAP_POPULATE | MAP_LOCKED)

void shim_prefault_mapping(void *base, size_t len, int prot, int flags, int fd,
			   int64_t offset, const void *from)
{
	int saved_errno = errno;

	if ((prot & READ_WRITE) != READ_WRITE || flags & NO_FLAGS)
		return;
	if (!(flags & MAP_ANONYMOUS))
		len = (flags & MAP_TYPE) == MAP_PRIVATE
			      ? 0
			      : backed_bytes(len, fd, offset);
	errno = saved_errno;
	shim_prefault(base, len, flags & MAP_HUGETLB, from);
}

static bool overlap(const struct prefault *job, const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr;

	return job->job && (uintptr_t)job->base < start + len &&
	       start < (uintptr_t)job->base + job->len;
}

void shim_prefault_stop(const void *addr, size_t len, bool again)
{
	int saved_errno = errno;
	sigset_t old;

	if (!atomic_load(&nr_jobs) || shim_busy() || !shim_is_ours())
		return;
	enter(&old);
	for (size_t i = 0; i < NR_JOBS; i++) {
		struct prefault *job = &jobs[i];

		if (!overlap(job, addr, len))
			continue;
		finish(job);
		if (again)
			start_job(job->base, job->len);
	}
	leave(&old);
	errno = saved_errno;
}

void shim_prefault_end(void)
{
	shim_prefault_stop(NULL, UINTPTR_MAX, false);
}

/* What runs is the parent's. */
void shim_prefault_forked(void)
{
	for (size_t i = 0; i < NR_JOBS; i++)
		jobs[i].job = NULL;
	atomic_store(&nr_jobs, 0);
	pthread_mutex_init(&lock, NULL);
}
