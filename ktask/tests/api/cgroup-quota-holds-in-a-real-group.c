/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * In a group of this kernel with half a CPU a job has one thread; moved out of
 * it, the process is free again in a while (a second, where files are quick).  If the
 * process is moved into it, out of it, and the group removed, all in the middle of a
 * job, each unit is done once and helpers are there only while there is capacity.
 */
#include "ktest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <ktask/ktask.h>

#include "user/limits/cgroup.h"

/* Only to end a test that hangs. */
#define PATIENCE_SECONDS 100
#define PATIENCE_NS (PATIENCE_SECONDS * 1000000000ull)

static struct cgroup cg; /* ours, before */
static char group[CGROUP_PATH + 64];
static unsigned outside; /* threads that our own groups allow */

static bool put_file(const char *directory, const char *name, const char *text)
{
	char path[CGROUP_PATH + 128];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static bool set_quota(void)
{
	if (cg.dirs[CGROUP_CPU].version == 2)
		return put_file(group, "cpu.max", "50000 100000");
	return put_file(group, "cpu.cfs_period_us", "100000") &&
	       put_file(group, "cpu.cfs_quota_us", "50000");
}

static int make_group(void **state)
{
	const struct cgroup_own alone = { 0, 1 };

	cgroup_init(&cg, "");
	cgroup_refresh(&cg, 1, &alone);
	outside = cgroup_most(&cg);
	snprintf(group, sizeof(group), "%s/ktask-test-%d",
		 cg.dirs[CGROUP_CPU].path, getpid());
	return 0;
}

static int remove_group(void **state)
{
	rmdir(group);
	return 0;
}

static unsigned quota_threads(char *why, size_t size)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, "cgroup-quota")) {
			snprintf(why, size, "%s", limits[i].why);
			return limits[i].threads;
		}
	return 0;
}

static void burn_ns(uint64_t ns)
{
	uint64_t end_ns = ktest_now_ns() + ns;

	while (ktest_now_ns() < end_ns)
		;
}

static int spin_chunk(void *start, void *end, void *arg)
{
	burn_ns(10000);
	return 0;
}

static int run_job(unsigned *threads)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, spin_chunk, NULL, 1);
	int error;

	ktask_ctl_set_result(&ctl, &result);
	error = ktask_run(NULL, 500, &ctl);
	*threads = result.threads;
	return error;
}

/* Looks come once a second, and seldomer where they take long. */
static bool threads_become(unsigned threads)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;

	while (cgroup_threads(kt_now_ns()) != threads &&
	       ktest_now_ns() < end_ns)
		usleep(10000);
	return cgroup_threads(0) == threads;
}

static int live_in_group(void *arg)
{
	unsigned threads;
	char why[128];

	ktest_check(put_file(group, "cgroup.procs", "0"));
	ktest_check(quota_threads(why, sizeof(why)) == 1);
	ktest_check(strstr(why, "ktask-test-"));
	ktest_check(!run_job(&threads));
	ktest_check(threads == 1);
	ktest_check(put_file(cg.dirs[CGROUP_CPU].path, "cgroup.procs", "0"));
	ktest_check(threads_become(outside));
	ktest_check(quota_threads(why, sizeof(why)) == outside);
	return 0;
}

static void half_a_cpu_is_one_thread(void **state)
{
	if (!cg.dirs[CGROUP_CPU].version)
		ktest_skip("no control group with CPU quotas is to be seen");
	if (mkdir(group, 0755))
		ktest_skip("no group can be made: %s", strerror(errno));
	if (!set_quota())
		ktest_skip("groups get no CPU quota here");
	assert_int_equal(
		ktest_in_child_for(live_in_group, NULL, 2 * PATIENCE_SECONDS),
		0);
}

/* ---- in the middle of a job ---- */

#define UNITS 6000
/* Chunks of the caller, who looks every few of them. */
#define BEFORE 150
#define SETTLE 60
#define INSIDE 500

static struct {
	uint32_t phase; /* 1 in the group, 2 out of it and it is gone */
	uint32_t chunks; /* of the caller */
	uint32_t
		told; /* chunks since the library knows that there is no capacity */
	uint32_t helped_inside; /* chunks, when that was settled */
	uint8_t done[UNITS];
} now;

/*
 * Moving a process sleeps for 8 to 18 ms.  A caller that did so in a chunk would
 * be one that blocks, for which other threads join whatever the quota is.  So
 * another process moves it.
 */
static struct mover {
	uint32_t asked, done; /* phases */
	bool failed;
} * mover;

static void move_as_asked(pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	for (uint32_t phase = 1; phase <= 2; phase++) {
		const char *to = phase == 1 ? group : cg.dirs[CGROUP_CPU].path;

		while (__atomic_load_n(&mover->asked, __ATOMIC_ACQUIRE) < phase)
			usleep(500);
		if (!put_file(to, "cgroup.procs", text) ||
		    (phase == 2 && rmdir(group)))
			mover->failed = true;
		__atomic_store_n(&mover->done, phase, __ATOMIC_RELEASE);
	}
}

static void start_mover(void)
{
	pid_t pid = getpid();

	mover = mmap(NULL, sizeof(*mover), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ktest_check(mover != MAP_FAILED);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == pid)
		move_as_asked(pid);
	_exit(0);
}

static void ask_to_move(uint32_t phase)
{
	__atomic_store_n(&mover->asked, phase, __ATOMIC_RELEASE);
}

static void move_when_it_is_time(void)
{
	now.phase = __atomic_load_n(&mover->done, __ATOMIC_ACQUIRE);
	if (now.phase == 0 && now.chunks++ > BEFORE) {
		ask_to_move(1);
	} else if (now.phase == 1 && mover->asked == 1 &&
		   (now.told || cgroup_threads(0) == 1) &&
		   __atomic_add_fetch(&now.told, 1, __ATOMIC_RELAXED) >
			   INSIDE) {
		__atomic_store_n(&now.told, 0, __ATOMIC_RELAXED);
		ask_to_move(2);
	}
}

/* Without sleep: threads that block are replaced, quota or not. */
static int count_and_move(void *start, void *end, void *arg)
{
	burn_ns(100000);
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		__atomic_add_fetch(&now.done[i], 1, __ATOMIC_RELAXED);
	if (gettid() == getpid())
		move_when_it_is_time();
	else if (__atomic_load_n(&now.told, __ATOMIC_RELAXED) > SETTLE)
		__atomic_add_fetch(&now.helped_inside, 1, __ATOMIC_RELAXED);
	return 0;
}

static int move_during_a_job(void *arg)
{
	uint64_t end_ns = ktest_now_ns() + PATIENCE_NS;
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	DEFINE_KTASK_CTL(ctl, count_and_move, NULL, 1);

	ktask_ctl_set_chunk_us(&ctl, 1);
	start_mover();
	while (now.phase < 2 && ktest_now_ns() < end_ns) {
		memset(now.done, 0, sizeof(now.done));
		ktest_check(!ktask_run(NULL, UNITS, &ctl));
		for (unsigned i = 0; i < UNITS; i++)
			ktest_check(now.done[i] == 1);
	}
	ktest_check(now.phase == 2 && !mover->failed);
	/* A chunk of each may have begun before it was time to leave. */
	if (now.helped_inside > cpus)
		fprintf(stderr, "# chunks of helpers: %u\n", now.helped_inside);
	ktest_check(now.helped_inside <= cpus);
	return 0;
}

static void moved_and_removed_in_the_middle(void **state)
{
	if (!cg.dirs[CGROUP_CPU].version || mkdir(group, 0755))
		ktest_skip("no group can be made");
	if (!set_quota())
		ktest_skip("groups get no CPU quota here");
	assert_int_equal(ktest_in_child_for(move_during_a_job, NULL,
					    2 * PATIENCE_SECONDS),
			 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_group, remove_group)

KTEST_MAIN(T(half_a_cpu_is_one_thread), T(moved_and_removed_in_the_middle))
