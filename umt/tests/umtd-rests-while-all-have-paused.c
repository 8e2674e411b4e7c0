/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * While all subscribers of umtd have paused its program is attached to nothing but the end
 * of tasks; when one goes on, or another process opens one, it is.  It is not attached
 * anew for each of many pauses, and who ends in a pause leaves nothing in use.
 */
#include "support/umtd.h"
#include "bpf_links.h"

#include <pthread.h>

#include "lib/bpf_program.h"

static struct umtd umtd;

static bool umtd_watches(void)
{
	return nr_bpf_links_of(umtd.pid) > LINKS_AT_REST;
}

/* umtd detaches some time after the last has paused. */
static bool comes_to_rest(void)
{
	return !nr_bpf_links() && holds_soon(!umtd_watches());
}

static bool is_attached(void)
{
	return nr_bpf_links() && umtd_watches();
}

static int pause_by_turns(void *unused)
{
	struct umt *one = subscribe_by_umtd(0), *other = subscribe_by_umtd(0);
	struct umt *third;

	ktest_check(one && other && is_attached());
	ktest_check(umt_pause(one) == 0 && umt_pause(one) == 0);
	ktest_check(is_attached());
	ktest_check(umt_pause(other) == 0);
	ktest_check(comes_to_rest());
	third = subscribe_by_umtd(0);
	ktest_check(third && is_attached());
	umt_close(third);
	ktest_check(comes_to_rest());
	ktest_check(umt_resume(other) == 0);
	ktest_check(is_attached());
	umt_close(other);
	ktest_check(comes_to_rest());
	ktest_check(umt_resume(one) == 0);
	ktest_check(is_attached());
	umt_close(one);
	return 0;
}

static int counts_again(void *unused)
{
	struct umt *umt;

	become_somebody(SOMEBODY);
	umt = subscribe_by_umtd(0);
	ktest_check(umt != NULL);
	for (int round = 0; round < 5; round++) {
		uint64_t before;

		ktest_check(umt_pause(umt) == 0);
		ktest_check(umt_resume(umt) == 0);
		ktest_check(umt_thread_add(umt) == 0);
		before = sums_of(umt).sleeps;
		for (int i = 0; i < 20; i++)
			nap_us(100);
		ktest_check(holds_soon(sums_of(umt).sleeps > before));
		ktest_check(umt_thread_remove(umt) == 0);
		ktest_check(holds_soon(ready_of(umt) == 0));
	}
	umt_close(umt);
	return 0;
}

static void all_may_pause(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(pause_by_turns, NULL), 0);
	assert_int_equal(as_somebody(counts_again, NULL), 0);
	umtd_end(&umtd);
}

static int pauses_beside_others(void *unused)
{
	struct umt *umt = subscribe_by_umtd(0);

	ktest_check(umt && umt_pause(umt) == 0);
	ktest_check(comes_to_rest());
	ktest_check(ktest_in_child_for(is_served, NULL, 60) == 0);
	/* That one has ended. */
	ktest_check(comes_to_rest());
	ktest_check(umt_resume(umt) == 0 && is_attached());
	umt_close(umt);
	return 0;
}

static void others_are_served_meanwhile(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(pauses_beside_others, NULL), 0);
	umtd_end(&umtd);
}

static int outlives_umtd(void *unused)
{
	struct umt *umt = subscribe_by_umtd(0);

	ktest_check(umt && umt_pause(umt) == 0);
	kill(umtd.pid, SIGKILL);
	ktest_check(umt_resume(umt) < 0);
	ktest_check(umt_resume(umt) < 0);
	umt_close(umt);
	return 0;
}

static void a_killed_umtd_is_told_of(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(outlives_umtd, NULL), 0);
	umtd_end(&umtd);
}

/* ---- refused ---- */

static int try_open(struct umt **subscriber)
{
	const struct umt_options options = { .size = sizeof(options),
					     .backend = UMT_BPF };

	return umt_open(subscriber, &options);
}

/* More than there may be in all. */
static int opens_too_many(void *unused)
{
	struct umt *subscriber;
	unsigned nr = 0;
	int error;

	while (!(error = try_open(&subscriber)))
		ktest_check(umt_pause(subscriber) == 0 && ++nr <= 256);
	ktest_check(error == -EUSERS && nr > 200);
	ktest_check(comes_to_rest());
	ktest_check(try_open(&subscriber) == -EUSERS);
	ktest_check(comes_to_rest());
	return 0;
}

static void what_is_refused_attaches_nothing(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(ktest_in_child_for(opens_too_many, NULL, 300), 0);
	umtd_end(&umtd);
}

/* ---- by turns ---- */

#define TURNS 100

/* Each attachment has links of its own. */
static int pauses_by_turns(void *unused)
{
	struct umt *umt = subscribe_by_umtd(0);
	uint64_t begin_ns = ktest_now_ns();
	unsigned nr_attached = 0;
	uint32_t last = 0;

	ktest_check(umt != NULL);
	for (int i = 0; i < TURNS; i++) {
		uint32_t link = program_link_id(any_bpf_link());

		ktest_check(link != 0);
		nr_attached += link != last;
		last = link;
		ktest_check(umt_pause(umt) == 0 && umt_resume(umt) == 0);
	}
	umt_close(umt);
	printf("# attached %u times\n", nr_attached);
	ktest_check(nr_attached <=
		    1 + (ktest_now_ns() - begin_ns) / 1000000000);
	return 0;
}

static void pauses_by_turns_attach_nothing(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(pauses_by_turns, NULL), 0);
	umtd_end(&umtd);
}

/* ---- killed ---- */

#define SUBSCRIBERS 16
#define KILLED 3

static void *add_and_sleep(void *subscriber)
{
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(umt_pause(subscriber) == 0);
	for (;;)
		pause();
}

static void be_killed(int told)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	become_somebody(SOMEBODY);
	for (int i = 0; i < SUBSCRIBERS; i++) {
		struct umt *umt;
		pthread_t thread;

		/* Those before may not have ended quite. */
		ktest_check(holds_soon(!try_open(&umt)));
		ktest_check(!pthread_create(&thread, NULL, add_and_sleep, umt));
	}
	ktest_check(write(told, "", 1) == 1);
	for (;;)
		pause();
}

/* Once it has paused, and umtd has detached the program. */
static void kill_paused(void)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_killed(fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	assert_true(holds_soon(!umtd_watches()));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void the_killed_leave_no_number_in_use(void **state)
{
	struct umt *umt;

	umtd_begin(&umtd);
	umt = subscribe_by_umtd(0);
	assert_non_null(umt);
	assert_int_equal(umt_pause(umt), 0);
	for (int i = 0; i < KILLED; i++)
		kill_paused();
	assert_int_equal(as_somebody(is_served, NULL), 0);
	umt_close(umt);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(all_may_pause), KTEST(others_are_served_meanwhile),
	   KTEST(a_killed_umtd_is_told_of),
	   KTEST(what_is_refused_attaches_nothing),
	   KTEST(pauses_by_turns_attach_nothing),
	   KTEST(the_killed_leave_no_number_in_use))
