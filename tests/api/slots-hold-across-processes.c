/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Over all processes no more helpers work at once than the cap allows, every
 * job ends, and a process that is killed leaves no slot behind.
 *
 * Counts helpers in memory that all the processes share.
 */
#include "ktest.h"

#include <stdbool.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "lib/slots.h"
#include "lib/table.h"

#define NR_PROCESSES 6
#define NR_KILLED 1000
/* A user whom no other test is, for a table of slots that only this one uses;
 * without root it is the machine's, and must be idle. */
#define USER 65531

static struct {
	int working; /* helpers that are in a chunk */
	int most;
	int units;
} * shared;

static unsigned cap(void)
{
	struct ktask_limit limits[16];
	unsigned nr = ktask_limits(limits, 16);

	for (unsigned i = 0; i < nr && i < 16; i++)
		if (!strcmp(limits[i].name, "cap"))
			return limits[i].threads - 1;
	return 0;
}

static void burn(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}

/* @arg: the thread that is no helper */
static int count(void *start, void *end, void *arg)
{
	bool helper = (pid_t)(intptr_t)arg != gettid();
	int working;

	if (helper) {
		working = __atomic_add_fetch(&shared->working, 1,
					     __ATOMIC_RELAXED);
		if (working > shared->most)
			shared->most = working;
	}
	burn(20000);
	__atomic_add_fetch(&shared->units, (int)((char *)end - (char *)start),
			   __ATOMIC_RELAXED);
	if (helper)
		__atomic_add_fetch(&shared->working, -1, __ATOMIC_RELAXED);
	return 0;
}

static int run_counted(size_t units)
{
	DEFINE_KTASK_CTL(ctl, count, (void *)(intptr_t)gettid(), 1);

	return ktask_run(NULL, units, &ctl);
}

static int child(void *arg)
{
	return run_counted((size_t)(intptr_t)arg) != 0;
}

static pid_t start_child(size_t units)
{
	pid_t pid = fork();

	if (!pid)
		_exit(child((void *)units));
	return pid;
}

static int map_shared(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

/* Before the library is used for the first time: it keeps its table. */
static void become_user(void)
{
	if (!geteuid())
		ktest_check(!setresuid(USER, USER, USER));
}

static int many_processes(void *arg)
{
	pid_t pids[NR_PROCESSES];
	int status;

	become_user();
	for (int i = 0; i < NR_PROCESSES; i++)
		pids[i] = start_child(4000);
	for (int i = 0; i < NR_PROCESSES; i++) {
		ktest_check(waitpid(pids[i], &status, 0) == pids[i]);
		ktest_check(!status);
	}
	ktest_check(shared->units == NR_PROCESSES * 4000);
	ktest_check(shared->most <= (int)cap());
	ktest_check(!shared->working);
	return 0;
}

static void the_cap_holds_and_all_work_is_done(void **state)
{
	assert_int_equal(ktest_in_child_for(many_processes, NULL, 120), 0);
}

/* All slots of a user whom nobody else uses, taken at once by one thread. */
static int take_all_slots(void *arg)
{
	ktest_check(!run_counted(100));
	for (unsigned i = 0; i < cap(); i++)
		ktest_check(slots_take((uint32_t)gettid()) == (int)i);
	ktest_check(slots_take((uint32_t)gettid()) == -1);
	ktest_check(slots_used() == cap());
	for (unsigned i = 0; i < cap(); i++)
		slots_put((int)i);
	ktest_check(slots_used() == 0);
	return 0;
}

/* As helpers do all the time; these only where a CPU idles. */
static _Noreturn void take_and_put(void)
{
	/* Opens the table. */
	cap();
	for (unsigned i = 0;; i++) {
		int slot = slots_take((uint32_t)gettid());

		burn(i % 64);
		if (slot >= 0)
			slots_put(slot);
	}
}

static pid_t start_holder(void)
{
	pid_t pid = fork();

	if (!pid)
		take_and_put();
	return pid;
}

static void table_path(char *path, size_t size, uid_t uid)
{
	snprintf(path, size, TABLE_DIR "/ktask-slots-%u.0", (unsigned)uid);
}

/* Slots that say they are held; looked at without becoming one of those who
 * share them. */
static unsigned count_held(void)
{
	static const struct table *table;
	unsigned nr = 0;
	char path[64];
	int fd;

	table_path(path, sizeof(path), geteuid());
	if (!table && (fd = open(path, O_RDONLY)) >= 0) {
		table = mmap(NULL, sizeof(*table), PROT_READ, MAP_SHARED, fd,
			     0);
		ktest_check(table != MAP_FAILED);
		close(fd);
	}
	for (unsigned i = 0; table && i < TABLE_SLOTS; i++)
		nr += __atomic_load_n(&table->slots[i].held,
				      __ATOMIC_RELAXED) != 0;
	return nr;
}

static int kill_at_random_moments(void *arg)
{
	uint64_t random = ktest_seed();
	unsigned nr_holding = 0;

	become_user();
	for (int i = 0; i < NR_KILLED; i++) {
		pid_t pid = i % 2 ? start_child(100000000) : start_holder();

		usleep((useconds_t)ktest_random_below(&random, 4000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		nr_holding += count_held() > 0;
	}
	fprintf(stderr, "# of %d killed %u held a slot\n", NR_KILLED,
		nr_holding);
	ktest_check(nr_holding);
	return ktest_in_child(take_all_slots, NULL);
}

static void killed_processes_leave_no_slot_behind(void **state)
{
	assert_int_equal(ktest_in_child_for(kill_at_random_moments, NULL, 120),
			 0);
}

static int die_with_all_slots(void *arg)
{
	ktest_check(!run_counted(100));
	for (unsigned i = 0; i < cap(); i++)
		slots_take((uint32_t)gettid());
	raise(SIGKILL);
	return 0;
}

static int die_and_look(void *arg)
{
	become_user();
	for (int i = 0; i < 20; i++) {
		ktest_in_child(die_with_all_slots, NULL);
		ktest_check(!ktest_in_child(take_all_slots, NULL));
	}
	return 0;
}

static void who_dies_with_all_slots_leaves_them_free(void **state)
{
	assert_int_equal(ktest_in_child_for(die_and_look, NULL, 120), 0);
}

static int clean_up(void **state)
{
	char path[64];

	table_path(path, sizeof(path), USER);
	return geteuid() ? 0 : unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(the_cap_holds_and_all_work_is_done),
		KTEST(killed_processes_leave_no_slot_behind),
		KTEST(who_dies_with_all_slots_leaves_them_free),
	};

	return cmocka_run_group_tests(tests, map_shared, clean_up);
}
