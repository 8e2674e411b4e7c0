/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever asks how many permits are used is told of one moment, and never of more
 * than the limit: a permit that goes from one helper to another is counted once,
 * and so is a helper that ends its chunk after its permit went to another.  Of each
 * job only helpers that have a permit are listed.
 *
 * What is told is cut to the limit, which would hide a permit that is counted twice.
 * So the moment is judged by permits_running(), which is not.
 */
#define ONE_PERMIT_USER 65528u
#include "support/onepermit.h"
#include "syscalls.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/deps.h"

/* Threads that live. */
#define FIRST 1u
#define SECOND ((uint32_t)getppid())

static unsigned permits_in_use(void)
{
	struct ktask_permits_info info = KTASK_PERMITS_INFO_INIT;

	ktask_jobs(NULL, 0, &info);
	return info.used;
}

/* The first helper yielded and left; the second works beyond the limit. */
static int leave_late(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	permits_put(0);
	ktest_check(permits_running() == 1);
	ktest_check(permits_must_leave(1, SECOND));
	ktest_check(permits_take(FIRST) == 0);
	/* Two work, one of them beyond the limit. */
	ktest_check(permits_running() == 2);
	ktest_check(permits_in_use() == 1);
	permits_put(1);
	ktest_check(permits_running() == 1);
	ktest_check(permits_in_use() == 1);
	permits_put(0);
	ktest_check(permits_in_use() == 0);
	return 0;
}

static void helpers_that_must_leave_count_no_more(void **state)
{
	assert_int_equal(ktest_in_child(leave_late, NULL), 0);
}

/* While a count asks the kernel about the first helper, its permit moves on. */
static bool move_permit(long number, const long args[6], long *result)
{
	if (number != SYS_sched_getattr || (uint32_t)args[0] != FIRST)
		return false;
	syscalls_answer = NULL;
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	return false;
}

static int count_while_moving(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	syscalls_answer = move_permit;
	ktest_check(permits_running() == 1);
	ktest_check(!syscalls_answer);
	ktest_check(permits_running() == 1);
	permits_put(1);
	ktest_check(permits_in_use() == 0);
	permits_put(0);
	return 0;
}

static void a_permit_that_moves_behind_a_count_is_counted_once(void **state)
{
	assert_int_equal(ktest_in_child(count_while_moving, NULL), 0);
}

/* ---- while a count reads the permits ---- */

/*
 * The permits fill several pages.  One page cannot be read: whoever counts gets a signal
 * in the middle of its pass, and there a permit moves.  Then the first page cannot be
 * read, so that the begin of the next pass is seen too.
 */
#define MOVES_MOST 20u

static struct {
	char *page; /* of the first permit */
	unsigned far; /* the first permit that lies wholly behind that page */
	size_t page_bytes;
	unsigned moves_left;
	void (*move)(void);
} the_count;

static void protect_page(unsigned page, int protection)
{
	ktest_check(!mprotect(the_count.page + page * the_count.page_bytes,
			      the_count.page_bytes, protection));
}

static void see_fault(int number, siginfo_t *info, void *context)
{
	bool first =
		(char *)info->si_addr < the_count.page + the_count.page_bytes;

	protect_page(!first, PROT_READ | PROT_WRITE);
	if (first) {
		protect_page(1, PROT_NONE);
		return;
	}
	the_count.move();
	if (--the_count.moves_left)
		protect_page(0, PROT_NONE);
}

static void prepare_count(void (*move)(void))
{
	struct sigaction action = { .sa_sigaction = see_fault,
				    .sa_flags = SA_SIGINFO };
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct registry *registry;
	char *permits;

	one_permit();
	registry = (struct registry *)((char *)permits_changes() -
				       offsetof(struct registry, head.changes));
	permits = (char *)registry->permits;
	the_count.page_bytes = bytes;
	the_count.page = permits - (uintptr_t)permits % bytes;
	the_count.far = (unsigned)((size_t)(the_count.page + bytes - permits +
					    sizeof(struct permit) - 1) /
				   sizeof(struct permit));
	the_count.move = move;
	ktest_check(the_count.far < REGISTRY_PERMITS);
	ktest_check(!sigaction(SIGSEGV, &action, NULL));
}

/* Return: what one count sees, while permits move in @moves of its passes. */
static unsigned count_during_moves(unsigned moves)
{
	unsigned seen;

	the_count.moves_left = moves;
	protect_page(1, PROT_NONE);
	seen = permits_running();
	ktest_check(!the_count.moves_left);
	return seen;
}

/* Those that fill a page. */
static void need_many_locks(void)
{
	if (KTEST_TSAN)
		ktest_skip("the thread sanitizer allows a thread 64 locks");
}

static void take_permits(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		ktest_check(permits_take(FIRST) == (int)i);
}

static void put_permits(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		permits_put((int)i);
	ktest_check(permits_running() == 0);
}

/* From the first helper to one that is read later in a pass, or back: there are
 * never more at work than before. */
static void move_there_or_back(void)
{
	static bool there;

	if (there) {
		permits_yield((int)the_count.far, SECOND);
		ktest_check(permits_take(FIRST) == 0);
		permits_put((int)the_count.far);
	} else {
		permits_yield(0, FIRST);
		ktest_check(permits_take(SECOND) == (int)the_count.far);
		permits_put(0);
	}
	there = !there;
}

static int count_while_moving_often(void *arg)
{
	unsigned far;

	prepare_count(move_there_or_back);
	far = the_count.far;
	permits_set_limit(far);
	take_permits(far);
	for (unsigned moves = 1; moves <= MOVES_MOST; moves++)
		ktest_check(count_during_moves(moves) == far);
	/* They moved 20 * 21 / 2 times: back again. */
	put_permits(far);
	return 0;
}

static void a_permit_that_moves_during_a_count_is_counted_once(void **state)
{
	need_many_locks();
	assert_int_equal(ktest_in_child(count_while_moving_often, NULL), 0);
}

/* To what was read already. */
static void move_down(void)
{
	ktest_check(permits_take(SECOND) == 0);
	permits_put((int)the_count.far);
}

static int count_while_moving_down(void *arg)
{
	prepare_count(move_down);
	permits_set_limit(the_count.far + 1);
	take_permits(the_count.far + 1);
	for (unsigned i = 0; i < the_count.far; i++)
		permits_put((int)i);
	ktest_check(permits_running() == 1);
	ktest_check(count_during_moves(1) == 1);
	put_permits(1);
	return 0;
}

static void nor_is_it_overlooked(void **state)
{
	need_many_locks();
	assert_int_equal(ktest_in_child(count_while_moving_down, NULL), 0);
}

/* ---- what each job says ---- */

#define UNITS 400

static struct {
	pthread_t caller;
	bool taken; /* the permit, by nobody who works here */
	unsigned units;
	uint32_t helped; /* chunks of the helper */
} listed_job;

static unsigned listed_helpers(void)
{
	struct ktask_job_info jobs[8] = { KTASK_JOB_INFO_INIT };
	unsigned nr = ktask_jobs(jobs, 8, NULL), helpers = 0;

	for (unsigned i = 0; i < nr && i < 8; i++)
		if (jobs[i].pid == getpid())
			helpers = jobs[i].helpers;
	return helpers;
}

/* The first half of the caller's time the permit is another's. */
static int list_in_chunk(void *start, void *end, void *arg)
{
	bool caller = pthread_equal(pthread_self(), listed_job.caller);

	usleep(500);
	if (!caller) {
		/* 0: it shall leave, or the job is over otherwise. */
		ktest_check(listed_helpers() <= 1);
		kt_add(&listed_job.helped, 1);
	} else if (listed_job.taken) {
		ktest_check(listed_helpers() == 0);
		if (++listed_job.units < UNITS / 2)
			return 0;
		listed_job.taken = false;
		permits_put(0);
	}
	return 0;
}

static int list_own_job(void *arg)
{
	DEFINE_KTASK_CTL(ctl, list_in_chunk, NULL, 1);

	one_permit();
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 1);
	listed_job.caller = pthread_self();
	listed_job.taken = true;
	ktest_check(permits_take(FIRST) == 0);
	ktest_check(!ktask_run(NULL, UNITS, &ctl));
	ktest_check(permits_used() == 0);
	/* Beside much other work no helper may have come. */
	printf("# the helper did %u of %u chunks\n", listed_job.helped, UNITS);
	return 0;
}

static void who_waits_for_a_permit_is_no_helper_yet(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("a job gets one thread here: it has no entry");
	assert_int_equal(ktest_in_child(list_own_job, NULL), 0);
}

/* The list has a permit twice, which has moved from one job to the other meanwhile. */
static int other_entry;

static bool hide_the_other(long number, const long args[6], long *result)
{
	if (number != SYS_sched_getattr || (uint32_t)args[0] != FIRST)
		return false;
	syscalls_answer = NULL;
	permits_show_helpers(other_entry, 0);
	return false;
}

/* Of this process; other users have jobs, too. */
static unsigned sum_helpers(struct ktask_permits_info *permits)
{
	struct ktask_job_info jobs[256] = { KTASK_JOB_INFO_INIT };
	unsigned nr = (unsigned)ktask_jobs(jobs, 256, permits), sum = 0;

	for (unsigned i = 0; i < nr && i < 256; i++)
		if (jobs[i].pid == getpid())
			sum += jobs[i].helpers;
	return sum;
}

static int list_while_moving(void *arg)
{
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;
	bool for_ever = *(bool *)arg;
	int entry;

	one_permit();
	entry = permits_entry_begin(1, "one", 1, kt_now_ns());
	other_entry = permits_entry_begin(1, "other", 1, kt_now_ns());
	ktest_check(permits_take(FIRST) == 0);
	permits_show_helpers(entry, 1);
	permits_show_helpers(other_entry, 1);
	if (!for_ever)
		syscalls_answer = hide_the_other;
	ktest_check(sum_helpers(&permits) == 1);
	ktest_check(!syscalls_answer);
	ktest_check(permits.used == 1);
	permits_entry_end(entry);
	permits_entry_end(other_entry);
	permits_put(0);
	return 0;
}

static void a_permit_that_moves_during_a_list_is_listed_once(void **state)
{
	bool for_ever = false;

	assert_int_equal(ktest_in_child(list_while_moving, &for_ever), 0);
}

/* The helper that gives it back gets no CPU before it says so. */
static void so_is_one_that_two_jobs_claim_for_long(void **state)
{
	bool for_ever = true;

	assert_int_equal(ktest_in_child(list_while_moving, &for_ever), 0);
}

/* ---- while a permit is yielded ---- */

#define YIELD_UNITS 20000
#define AWAITED_S 10
#define NO_HELPER 77

static struct {
	pthread_t caller;
	struct registry *registry;
	bool tried; /* a helper has come, and sleeps until its permit is yielded */
	bool yielded;
	unsigned listed; /* helpers of the job at that moment */
	sem_t awake;
} yielding_job;

static unsigned own_helpers(const struct registry_head *head)
{
	unsigned sum = 0;

	for (uint32_t i = 0; i < registry_nr_entries(head); i++)
		if (kt_load(&head->entries[i].seen_ns) &&
		    head->entries[i].pid == (uint32_t)getpid())
			sum += kt_load(&head->entries[i].helpers);
	return sum;
}

static void protect_permits(int protection)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *first = (char *)yielding_job.registry->permits;

	first -= (uintptr_t)first % bytes;
	ktest_check(!mprotect(first, bytes, protection));
}

/* The caller is about to write that the permit is yielded.  Another helper may come instead:
 * then nothing is seen. */
static void see_yield(int number, siginfo_t *info, void *context)
{
	protect_permits(PROT_READ | PROT_WRITE);
	if (info->si_addr != &yielding_job.registry->permits[0].yielded_by ||
	    !pthread_equal(pthread_self(), yielding_job.caller))
		return;
	yielding_job.listed = own_helpers(&yielding_job.registry->head);
	kt_store(&yielding_job.yielded, true);
	sem_post(&yielding_job.awake);
}

/* Whoever sleeps uses no CPU time, as a helper that gets no CPU. */
static int sleep_in_chunk(void *start, void *end, void *arg)
{
	struct timespec until;

	if (pthread_equal(pthread_self(), yielding_job.caller)) {
		if (!kt_load(&yielding_job.yielded))
			usleep(500);
	} else if (!yielding_job.tried) {
		ktest_check(!clock_gettime(CLOCK_REALTIME, &until));
		until.tv_sec += AWAITED_S;
		kt_store(&yielding_job.tried, true);
		protect_permits(PROT_READ);
		sem_timedwait(&yielding_job.awake, &until);
		protect_permits(PROT_READ | PROT_WRITE);
	}
	return 0;
}

static int yield_own_permit(void *arg)
{
	struct sigaction action = { .sa_sigaction = see_yield,
				    .sa_flags = SA_SIGINFO };
	DEFINE_KTASK_CTL(ctl, sleep_in_chunk, NULL, 1);

	one_permit();
	yielding_job.registry =
		(struct registry *)((char *)permits_changes() -
				    offsetof(struct registry, head.changes));
	yielding_job.caller = pthread_self();
	ktest_check(!sem_init(&yielding_job.awake, 0, 0));
	ktest_check(!sigaction(SIGSEGV, &action, NULL));
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktask_ctl_set_chunk_us(&ctl, 1);
	ktest_check(!ktask_run(NULL, YIELD_UNITS, &ctl));
	if (!kt_load(&yielding_job.yielded))
		return NO_HELPER;
	ktest_check(yielding_job.listed == 0);
	return 0;
}

/* From the moment on at which another helper can take it. */
static void who_yields_a_permit_is_no_helper_any_more(void **state)
{
	int status;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("a job gets one thread here: it has no entry");
	status = ktest_in_child(yield_own_permit, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_HELPER)
		ktest_skip("no helper came: the CPUs are busy");
	assert_int_equal(status, 0);
}

static int clear_registry(void **state)
{
	return remove_registry();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(helpers_that_must_leave_count_no_more),
		KTEST(a_permit_that_moves_behind_a_count_is_counted_once),
		KTEST(a_permit_that_moves_during_a_count_is_counted_once),
		KTEST(nor_is_it_overlooked),
		KTEST(a_permit_that_moves_during_a_list_is_listed_once),
		KTEST(so_is_one_that_two_jobs_claim_for_long),
		KTEST(who_waits_for_a_permit_is_no_helper_yet),
		KTEST(who_yields_a_permit_is_no_helper_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, clear_registry);
}
