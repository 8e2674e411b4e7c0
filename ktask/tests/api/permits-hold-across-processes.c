/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Over all processes no more helpers work at once than the cap allows, every
 * job ends, and a process that is killed leaves no permit behind.
 *
 * Counts helpers in memory that all the processes share; and of their registry of
 * permits, which helpers are passed over since they got no CPU: each of them has a
 * successor before it leaves its chunk.
 */
#include "ktest.h"

#include <stdbool.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "user/limits/permits.h"
#include "user/limits/registry.h"

#define NR_PROCESSES 6
#define NR_KILLED 1000
#define TRIES 10
/* Of two processes that wait for a CPU, and are counted. */
#define KILL_NS 60000000000ull
/* A user whom no other test is, for a registry of permits that only this one uses;
 * without root it is the machine's, and must be idle. */
#define USER 65531

/* The exit status of who saw nothing that could go wrong. */
#define NEVER_HELD 77

/* Between two looks of a helper that took longer others may have come, stood
 * aside and gone: what it counted says nothing. */
#define COUNT_MOST_NS 1000000

static struct {
	int working; /* helpers that are in a chunk */
	int counted, too_many; /* times they were counted, and were more */
	int units;
	int takes; /* of the process that is to be killed */
} * shared;

static unsigned read_cap(void)
{
	struct ktask_limit limits[16] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 16);

	for (unsigned i = 0; i < nr && i < 16; i++)
		if (!strcmp(limits[i].name, "cap"))
			return limits[i].threads - 1;
	return 0;
}

static void registry_path(char *path, size_t size, uid_t uid)
{
	snprintf(path, size, REGISTRY_DIR "/ktask-slots-%u.0", (unsigned)uid);
}

/* To be looked at without becoming one of those who share it. */
static const struct registry *find_registry(void)
{
	const struct registry *registry;
	char path[64];
	int fd;

	registry_path(path, sizeof(path), geteuid());
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	registry = mmap(NULL, sizeof(*registry), PROT_READ, MAP_SHARED, fd, 0);
	ktest_check(registry != MAP_FAILED);
	close(fd);
	return registry;
}

static void burn_turns(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}

/* What @count has to know. */
struct counting {
	pid_t caller;
	bool naps; /* the caller, in its chunks */
	unsigned cap;
	const struct registry *registry; /* NULL: there is none */
};

/* Marks the permits that are yielded. */
static void mark_yielded(const struct registry *registry, bool *yielded)
{
	for (unsigned i = 0; registry && i < REGISTRY_PERMITS; i++) {
		const struct permit *permit = &registry->permits[i];
		uint32_t held =
			__atomic_load_n(&permit->holder, __ATOMIC_SEQ_CST);

		if (held && held == __atomic_load_n(&permit->yielded_by,
						    __ATOMIC_SEQ_CST))
			yielded[i] = true;
	}
}

/* A helper that yielded before or after this one came may have been counted. */
static void helper_comes(const struct counting *counting)
{
	bool yielded[REGISTRY_PERMITS] = { false };
	uint64_t since = ktest_now_ns();
	unsigned may = counting->cap, working;

	mark_yielded(counting->registry, yielded);
	working = (unsigned)__atomic_add_fetch(&shared->working, 1,
					       __ATOMIC_SEQ_CST);
	mark_yielded(counting->registry, yielded);
	if (ktest_now_ns() - since > COUNT_MOST_NS)
		return;
	for (unsigned i = 0; i < REGISTRY_PERMITS; i++)
		may += yielded[i];
	__atomic_add_fetch(&shared->counted, 1, __ATOMIC_RELAXED);
	if (working > may)
		__atomic_add_fetch(&shared->too_many, 1, __ATOMIC_RELAXED);
}

static int count_chunk(void *start, void *end, void *arg)
{
	const struct counting *counting = arg;
	bool helper = counting->caller != gettid();

	if (helper)
		helper_comes(counting);
	/* Who naps leaves the CPU to others. */
	for (char *at = start; at < (char *)end; at++)
		if (counting->naps)
			usleep(50);
		else
			burn_turns(20000);
	__atomic_add_fetch(&shared->units, (int)((char *)end - (char *)start),
			   __ATOMIC_RELAXED);
	if (helper)
		__atomic_add_fetch(&shared->working, -1, __ATOMIC_SEQ_CST);
	return 0;
}

/* Who waits is replaced, by threads that need no permit: none where the number of
 * threads is fixed. */
static int run_counted(size_t units, bool naps)
{
	struct counting counting = { gettid(), naps, read_cap(),
				     find_registry() };
	DEFINE_KTASK_CTL(ctl, count_chunk, &counting, 1);

	if (naps)
		ktask_ctl_set_fixed_threads(&ctl, 1 + counting.cap);
	return ktask_run(NULL, units, &ctl);
}

static pid_t start_child(size_t units, bool naps)
{
	pid_t pid = fork();

	if (!pid)
		_exit(run_counted(units, naps) != 0);
	return pid;
}

static int map_shared(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

/* Before the library is used for the first time: it keeps its registry.  A user who
 * may raise priorities has helpers also while others compute. */
static void become_user(void)
{
	const struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid())
		return;
	setrlimit(RLIMIT_NICE, &any);
	ktest_check(!setresuid(USER, USER, USER));
}

static void run_many(void)
{
	pid_t pids[NR_PROCESSES];
	int status;

	shared->units = 0;
	for (int i = 0; i < NR_PROCESSES; i++)
		pids[i] = start_child(4000, i > 0);
	for (int i = 0; i < NR_PROCESSES; i++) {
		ktest_check(waitpid(pids[i], &status, 0) == pids[i]);
		ktest_check(!status);
	}
	ktest_check(shared->units == NR_PROCESSES * 4000);
	ktest_check(!shared->too_many);
	ktest_check(!shared->working);
}

static int many_processes(void *arg)
{
	become_user();
	/* Helpers may find no CPU. */
	for (int i = 0; i < TRIES && !shared->counted; i++)
		run_many();
	fprintf(stderr, "# helpers counted %d times\n", shared->counted);
	return 0;
}

static void the_cap_holds_and_all_work_is_done(void **state)
{
	assert_int_equal(ktest_in_child_for(many_processes, NULL, 120), 0);
}

/* All permits of a user whom nobody else uses, taken at once by one thread. */
static int take_all_permits(void *arg)
{
	ktest_check(!run_counted(100, false));
	for (unsigned i = 0; i < read_cap(); i++)
		ktest_check(permits_take((uint32_t)gettid()) == (int)i);
	ktest_check(permits_take((uint32_t)gettid()) == -1);
	ktest_check(permits_used() == read_cap());
	for (unsigned i = 0; i < read_cap(); i++)
		permits_put((int)i);
	ktest_check(permits_used() == 0);
	return 0;
}

/* As helpers do all the time; these only where a CPU idles. */
static _Noreturn void take_and_put(void)
{
	/* Opens the registry. */
	read_cap();
	for (unsigned i = 0;; i++) {
		int permit = permits_take((uint32_t)gettid());

		__atomic_store_n(&shared->takes, (int)i, __ATOMIC_RELAXED);
		burn_turns(i % 64);
		if (permit >= 0)
			permits_put(permit);
	}
}

/* @waits: until it takes permits, which may be long where it gets no CPU. */
static pid_t start_holder(bool waits)
{
	uint64_t end_ns = ktest_now_ns() + KILL_NS / 10;
	pid_t pid;

	shared->takes = 0;
	pid = fork();
	if (!pid)
		take_and_put();
	while (waits && ktest_now_ns() < end_ns &&
	       __atomic_load_n(&shared->takes, __ATOMIC_RELAXED) < 10)
		usleep(100);
	return pid;
}

/* Permits that say they are held. */
static unsigned count_held(void)
{
	static const struct registry *registry;
	unsigned nr = 0;

	if (!registry)
		registry = find_registry();
	for (unsigned i = 0; registry && i < REGISTRY_PERMITS; i++)
		nr += __atomic_load_n(&registry->permits[i].holder,
				      __ATOMIC_RELAXED) != 0;
	return nr;
}

/* Most are killed at any moment of their life.  If none of them held a permit yet, because
 * it got no CPU in time, the next ones are awaited first. */
static int kill_at_random_moments(void *arg)
{
	uint64_t random = ktest_seed(), begin_ns = ktest_now_ns(), ns = 0;
	unsigned nr_holding = 0, nr = 0;

	become_user();
	while (nr < NR_KILLED && ns < KILL_NS) {
		bool waits = !nr_holding &&
			     (nr > NR_KILLED / 10 || ns > KILL_NS / 4);
		pid_t pid = nr % 2 && !waits ? start_child(100000000, false)
					     : start_holder(waits);

		usleep((useconds_t)ktest_random_below(&random, 4000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		nr_holding += count_held() > 0;
		nr++;
		ns = ktest_now_ns() - begin_ns;
	}
	fprintf(stderr, "# of %u killed %u held a permit\n", nr, nr_holding);
	if (ktest_in_child(take_all_permits, NULL))
		return 1;
	return nr_holding ? 0 : NEVER_HELD;
}

static void killed_processes_leave_no_permit_behind(void **state)
{
	int status = ktest_in_child_for(kill_at_random_moments, NULL, 200);

	if (status == NEVER_HELD << 8)
		ktest_skip("no process was killed that held a permit");
	assert_int_equal(status, 0);
}

static int die_with_all_permits(void *arg)
{
	ktest_check(!run_counted(100, false));
	for (unsigned i = 0; i < read_cap(); i++)
		permits_take((uint32_t)gettid());
	raise(SIGKILL);
	return 0;
}

static int die_and_take(void *arg)
{
	become_user();
	for (int i = 0; i < 20; i++) {
		ktest_in_child(die_with_all_permits, NULL);
		ktest_check(!ktest_in_child(take_all_permits, NULL));
	}
	return 0;
}

static void who_dies_with_all_permits_leaves_them_free(void **state)
{
	assert_int_equal(ktest_in_child_for(die_and_take, NULL, 120), 0);
}

static int clean_up(void **state)
{
	char path[64];

	registry_path(path, sizeof(path), USER);
	return geteuid() ? 0 : unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(the_cap_holds_and_all_work_is_done),
		KTEST(killed_processes_leave_no_permit_behind),
		KTEST(who_dies_with_all_permits_leaves_them_free),
	};

	return cmocka_run_group_tests(tests, map_shared, clean_up);
}
