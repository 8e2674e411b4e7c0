/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * --prefault: helpers make a new mapping present while the program goes on.  With
 * --prefault=wait they do so before mmap() returns.
 *
 * This applies to large mappings that may be read and written: private and shared
 * anonymous memory, files on tmpfs and hugetlbfs up to their end, and segments of
 * System V.  It does not apply if the program says that it may leave memory unused
 * (MAP_NORESERVE), or if the calling thread has a memory policy, which helpers would
 * not follow.  Running jobs may make half of the available memory, --prefault=wait seven
 * eighths of it in one mapping.  Once some of what was made is untouched, all of that may
 * take half at most (prefaulted_pages.c).
 *
 * The second half is made first, then the second half of the first half, and so on.  A
 * program that touches its memory from the start and does nothing else makes half of it
 * itself.  A program that also computes finds all of it present.
 *
 * Programs mostly give advice on their memory right after mmap(), so helpers wait a
 * millisecond.  A call that changes a mapping stops its job first
 * (shim_prefault_stop()).  After mere advice the job begins again.
 *
 * A job may be stopped anywhere: under the lock of an allocator that unmaps, or in a
 * handler that has interrupted an allocator.  So this code holds no lock while memory may
 * be allocated, and stopping allocates and frees nothing.  Jobs are in a table, each with
 * a state of its own:
 *
 *	FREE --begin--> CLAIMED --range set--> STARTING --started--> RUNNING
 *	RUNNING --stop, poll--> HELD --> FREE, RUNNING or STARTING (again)
 *	STARTING --stop--> DOOMED, which the starter then ends
 *
 * Locking: there is no lock.  Whoever brings a job from FREE or RUNNING into another
 * state, by compare-and-swap, owns it until it is FREE or RUNNING again.  Others only
 * turn STARTING into DOOMED.
 *
 *	O: written by the owner; constant while the job runs, so helpers read it
 *	A: atomic; of any thread
 *
 * A job is HELD only briefly and with all signals blocked, so other threads wait for the
 * end of that state.  They never wait for a job that is STARTING, because starting
 * allocates.  Of such a job they wait only for pieces that helpers are making already,
 * each by one system call.
 *
 * Behaves badly: it uses memory that the program would never have touched.  If a mapping
 * gets a policy after its pages were made, they stay on the helper's node.  A mapping
 * that is changed by a system call without libc is still populated.  That is why users
 * have to ask for it.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "ops/lent_threads.h"
#include "preload/prefault/uninterrupted.h"
#include "preload/shim.h"
#include "util/assertion.h"
#include "util/clock.h"
#include "util/large_static.h"
#include "util/memory.h"
#include "util/scoped.h"

#define NR_JOBS 32
/* 2 to 3 ms of 4 KiB pages. */
#define BLOCK_BYTES ((size_t)8 << 20)
/* Made by one system call, which holds the lock of the process's mappings: 70 us of 4 KiB
 * pages.  A thread of the program that maps memory waits for one.  A thread that stops the
 * job waits for one, or for a helper's nap of HURRY_NS. */
#define PIECE_BYTES ((size_t)256 << 10)
#define DELAY_NS 1000000
/* How long a call of the program that maps memory may take where nobody holds the lock, and
 * how often a helper gives way to such calls before each piece. */
#define HURRY_NS 100000
#define HURRY_NAPS 10
/* Whoever waits for another thread that ends a job polls this often. */
#define HELD_POLL_NS 50000

enum state { FREE, CLAIMED, STARTING, DOOMED, RUNNING, HELD };

struct prefault {
	_Atomic int state; /* A */
	_Atomic uintptr_t
		base; /* O; who looks for overlaps reads it any time */
	_Atomic size_t len; /* O; as base */
	struct ktask_job *job; /* O */
	size_t nr_blocks; /* O */
	atomic_uint nr_making; /* A: threads in a piece, or about to check */
	atomic_size_t made_bytes; /* A: of pieces */
	atomic_bool delayed; /* A: the first chunk has waited */
	atomic_bool stopping; /* A: written by the owner; helpers leave */
	struct ktask_result result; /* O */
};

static struct prefault prefault_jobs[NR_JOBS] LARGE_STATIC;
static atomic_uint nr_jobs; /* A: that are not FREE */
static _Atomic uint64_t hurried_ns; /* A: when the program last called */
static struct lent_threads piece_makers; /* A: in a system call for a piece */

static bool change_state(struct prefault *job, int from, int to)
{
	return atomic_compare_exchange_strong(&job->state, &from, to);
}

/* Is the job in one of the two states?  The caller is its owner, so it stays there. */
static void assert_state(const struct prefault *job, int one, int other)
{
	int state = atomic_load(&job->state);

	util_assert(state == one || state == other);
}

/* The owner of a job is not interrupted. */
static void begin_owning(struct uninterrupted *before)
{
	uninterrupted_begin(before);
	shim_set_busy(true);
}

static void end_owning(const struct uninterrupted *before)
{
	shim_set_busy(false);
	uninterrupted_end(before);
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

static size_t lesser_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool program_has_just_called(void)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	/* Less than zero if another thread has called since. */
	return (int64_t)(now_ns - atomic_load(&hurried_ns)) < HURRY_NS;
}

static bool is_stopped(const struct prefault *job)
{
	return atomic_load(&job->stopping) ||
	       atomic_load(&job->state) == DOOMED;
}

static bool gives_way(const struct prefault *job)
{
	return program_has_just_called() && !is_stopped(job);
}

/*
 * Threads that read the mappings pass one that waits to write them, for up to 4 ms.  So no
 * helper begins to read while the program is known to be in a call that writes them.  Enter
 * first, then look: a thread that calls finds this one, or this one sees its call.
 */
static int enter_makers(const struct prefault *job)
{
	int index = lent_threads_enter(&piece_makers);

	for (int i = 0; i < HURRY_NAPS && gives_way(job); i++) {
		lent_threads_leave(&piece_makers, index);
		real_sleep(HURRY_NS);
		index = lent_threads_enter(&piece_makers);
	}
	return index;
}

/*
 * Count first, then check: a thread that dooms the job sees the count, or this thread sees
 * DOOMED.  The thread gives way before it is counted: who dooms the job does not wait for that.
 *
 * Return: false if the piece cannot be made now; the program faults on it itself.
 */
static bool populate_piece(struct prefault *job, size_t start, size_t end)
{
	int index = enter_makers(job);
	bool made;

	atomic_fetch_add(&job->nr_making, 1);
	made = !is_stopped(job) &&
	       !real_madvise((char *)job->base + start, end - start,
			     MADV_POPULATE_WRITE);
	if (made)
		atomic_fetch_add(&job->made_bytes, end - start);
	atomic_fetch_sub(&job->nr_making, 1);
	lent_threads_leave(&piece_makers, index);
	return made;
}

static void populate_block(struct prefault *job, size_t block)
{
	size_t start = block * BLOCK_BYTES;
	size_t end = lesser_of(start + BLOCK_BYTES, job->len), next;
	bool made = true;

	for (; made && start < end; start = next) {
		next = lesser_of(start + PIECE_BYTES, end);
		made = populate_piece(job, start, next);
	}
}

/* By naps, because whoever stops the job waits for the end of one. */
static void delay_start(const struct prefault *job)
{
	for (int i = 0; i < DELAY_NS / HURRY_NS && !is_stopped(job); i++)
		real_sleep(HURRY_NS);
}

/* Positions are turns, from 1 on. */
static int prefault_chunk(void *start, void *end, void *arg)
{
	struct prefault *job = arg;

	if (!atomic_exchange(&job->delayed, true))
		delay_start(job);
	for (size_t turn = (size_t)start; turn < (size_t)end; turn++)
		populate_block(job, block_of(job->nr_blocks, turn - 1));
	return 0;
}

/* By the owner, which stays the owner. */
static void finish_job(struct prefault *job)
{
	assert_state(job, HELD, DOOMED);
	atomic_store(&job->stopping, true);
	ktask_cancel(job->job);
	ktask_wait(job->job);
	shim_count(SHIM_PREFAULT, &(struct shim_work){
					  .bytes = job->made_bytes,
					  .cpu_ns = job->result.cpu_ns,
					  .done = true,
				  });
}

static void set_free(struct prefault *job)
{
	atomic_store(&job->state, FREE);
	atomic_fetch_sub(&nr_jobs, 1);
}

/* By the owner, once the range is set and while the job does not run. */
static bool start_claimed(struct prefault *job)
{
	struct ktask_ctl ctl;

	assert_state(job, CLAIMED, HELD);
	job->nr_blocks = (job->len - 1) / BLOCK_BYTES + 1;
	job->result = (struct ktask_result)KTASK_RESULT_INIT;
	atomic_store(&job->made_bytes, 0);
	atomic_store(&job->delayed, false);
	atomic_store(&job->stopping, false);
	atomic_store(&job->state, STARTING);
	ktask_ctl_init(&ctl, prefault_chunk, job, 1);
	ktask_ctl_set_name(&ctl, "prefault");
	ktask_ctl_set_result(&ctl, &job->result);
	if (ktask_start(&job->job, (void *)1, job->nr_blocks, &ctl)) {
		set_free(job);
		return false;
	}
	if (!change_state(job, STARTING, RUNNING)) {
		finish_job(job);
		set_free(job);
	}
	return true;
}

static bool start_job(uintptr_t base, size_t len)
{
	for (struct prefault *job = prefault_jobs;
	     job < prefault_jobs + NR_JOBS; job++) {
		if (!change_state(job, FREE, CLAIMED))
			continue;
		atomic_fetch_add(&nr_jobs, 1);
		job->base = base;
		job->len = len;
		return start_claimed(job);
	}
	return false;
}

/* Return: bytes that are still being made.  Ends jobs that are done. */
static size_t pending_bytes(void)
{
	size_t bytes = 0;

	for (struct prefault *job = prefault_jobs;
	     job < prefault_jobs + NR_JOBS; job++) {
		if (!change_state(job, RUNNING, HELD))
			continue;
		if (ktask_poll(job->job, NULL)) {
			bytes += job->len;
			atomic_store(&job->state, RUNNING);
		} else {
			finish_job(job);
			set_free(job);
		}
	}
	return bytes;
}

/* If nothing is known, assume that nothing is available. */
size_t shim_available_bytes(void)
{
	uint64_t bytes = memory_available();

	return bytes == UINT64_MAX ? 0 : bytes;
}

/* A mapping counts as made only if its job began. */
static void start_prefault(char *base, size_t len, bool pool,
			   enum shim_made_kind kind)
{
	size_t pending = pending_bytes();

	if (!pool && shim_available_bytes() / 2 < pending + len)
		shim_decline(WHY_MEMORY, len);
	else if (!pool && !shim_made_add(base, len, kind))
		shim_decline(WHY_UNTOUCHED, len);
	else if (!start_job((uintptr_t)base, len))
		shim_made_drop(base, len);
}

/* For --prefault=wait: this thread takes part. */
static void populate_mapping(char *base, size_t len, bool pool,
			     enum shim_made_kind kind)
{
	if (!pool && !shim_made_add(base, len, kind))
		shim_decline(WHY_UNTOUCHED, len);
	else
		shim_populate(SHIM_PREFAULT, base, len, 0);
}

/* Helpers do not follow the policy: they would make pages on other nodes. */
static bool has_policy(void)
{
	int mode = 0;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) || mode;
}

/*
 * A single mapping, such as a guest's memory, may take most of what is available.  If an
 * earlier one is not touched yet, all untouched memory together may take half at most.
 */
static bool fits_in_memory(size_t len)
{
	size_t available = shim_available_bytes(), untouched;

	if (len >= available - available / 8) {
		shim_decline(WHY_MEMORY, len);
		return false;
	}
	untouched = shim_made_untouched();
	if (untouched && untouched + len > (available + untouched) / 2) {
		shim_decline(WHY_UNTOUCHED, len);
		return false;
	}
	return true;
}

static bool can_take(size_t len, bool pool, const void *from)
{
	if (!shim_is_large(len) || !shim_wants(SHIM_PREFAULT, len, from) ||
	    !real_knows_advice(MADV_POPULATE_WRITE))
		return false;
	if (!pool && !fits_in_memory(len))
		return false;
	if (!shim_prefault_waits && has_policy()) {
		shim_decline(WHY_POLICY, len);
		return false;
	}
	return shim_takes(SHIM_PREFAULT, len);
}

void shim_prefault(void *base, size_t len, bool pool, enum shim_made_kind kind,
		   const void *from)
{
	keep_errno();
	struct uninterrupted before;

	block_cancellation();
	if (!can_take(len, pool, from))
		return;
	if (shim_prefault_waits) {
		populate_mapping(base, len, pool, kind);
		return;
	}
	begin_owning(&before);
	start_prefault(base, len, pool, kind);
	end_owning(&before);
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

	/* Before anything is asked about the file. */
	if ((prot & READ_WRITE) != READ_WRITE || flags & NO_FLAGS ||
	    !shim_wants(SHIM_PREFAULT, len, from))
		return;
	if (!(flags & MAP_ANONYMOUS))
		len = (flags & MAP_TYPE) == MAP_PRIVATE
			      ? 0
			      : backed_bytes(len, fd, offset);
	errno = saved_errno;
	shim_prefault(base, len, flags & MAP_HUGETLB,
		      (flags & MAP_TYPE) == MAP_PRIVATE ? MADE_PRIVATE
							: MADE_SHARED,
		      from);
}

static bool overlaps_range(const struct prefault *job, const void *addr,
			   size_t len)
{
	uintptr_t start = (uintptr_t)addr;

	return job->base < start + len && start < job->base + job->len;
}

/* By the owner.  No page of [addr, addr + len) is being made when this returns. */
static void stop_held(struct prefault *job, const void *addr, size_t len,
		      bool again)
{
	assert_state(job, HELD, HELD);
	if (!overlaps_range(job, addr, len)) {
		/* The entry has another job by now. */
		atomic_store(&job->state, RUNNING);
		return;
	}
	finish_job(job);
	if (again)
		start_claimed(job);
	else
		set_free(job);
}

static void stop_overlapping(struct prefault *job, const void *addr, size_t len,
			     bool again)
{
	for (;;) {
		int state = atomic_load(&job->state);

		if (state == FREE || state == CLAIMED ||
		    !overlaps_range(job, addr, len))
			return;
		if (state == STARTING && again)
			return;
		/* From then on wait for pieces that are being made. */
		if (state == STARTING)
			change_state(job, STARTING, DOOMED);
		if (state == DOOMED && !atomic_load(&job->nr_making))
			return;
		if (state == RUNNING && change_state(job, RUNNING, HELD)) {
			stop_held(job, addr, len, again);
			return;
		}
		if (state == HELD || state == DOOMED) {
			/* Such a helper may be one without a CPU. */
			lent_threads_lend(&piece_makers);
			real_sleep(HELD_POLL_NS);
		}
	}
}

static bool any_overlaps(const void *addr, size_t len)
{
	for (size_t i = 0; i < NR_JOBS; i++)
		if (atomic_load(&prefault_jobs[i].state) != FREE &&
		    overlaps_range(&prefault_jobs[i], addr, len))
			return true;
	return false;
}

void shim_prefault_hurry(void)
{
	if (!atomic_load(&nr_jobs) || !shim_is_ours())
		return;
	atomic_store(&hurried_ns, clock_ns(CLOCK_MONOTONIC));
	lent_threads_lend(&piece_makers);
}

bool shim_prefault_pending(const void *addr)
{
	return atomic_load(&nr_jobs) && any_overlaps(addr, 1);
}

static void stop_all(const void *addr, size_t len, bool again)
{
	keep_errno();
	struct uninterrupted before;

	if (!atomic_load(&nr_jobs) || !any_overlaps(addr, len) || shim_busy() ||
	    !shim_is_ours())
		return;
	begin_owning(&before);
	for (size_t i = 0; i < NR_JOBS; i++)
		stop_overlapping(&prefault_jobs[i], addr, len, again);
	end_owning(&before);
}

void shim_prefault_stop(const void *addr, size_t len, bool again)
{
	if (!again)
		shim_made_drop(addr, len);
	stop_all(addr, len, again);
}

void shim_prefault_stop_segment(const void *addr)
{
	shim_made_drop_segment(addr);
	stop_all(addr, 1, false);
}

void shim_prefault_end(void)
{
	stop_all(NULL, UINTPTR_MAX, false);
}

/* Running jobs are the parent's.  A job whose owner is in the parent is lost. */
void shim_prefault_forked(void)
{
	for (struct prefault *job = prefault_jobs;
	     job < prefault_jobs + NR_JOBS; job++) {
		if (atomic_load(&job->state) == RUNNING)
			ktask_wait(job->job);
		atomic_store(&job->nr_making, 0);
		atomic_store(&job->state, FREE);
	}
	atomic_store(&nr_jobs, 0);
	lent_threads_forked(&piece_makers);
	shim_made_forked();
}
