/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of how many helpers there are: the pool that shrinks and grows, caps, and
 * the parameters of both.
 *
 * Each leaves the parameters as they were.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "processes.h"

int set_parameter(const char *name, const char *value)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/module/ktask/parameters/%s", name);
	return write_file(path, value);
}

/* Return: 1 if it is one. */
static long count_helper(const char *pid)
{
	char path[300], comm[64];

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	read_file(path, comm, sizeof(comm));
	return !strncmp(comm, "ktask/", 6);
}

unsigned nr_helpers(void)
{
	return (unsigned)sum_over_processes(count_helper);
}

unsigned await_helpers(unsigned least, unsigned most)
{
	unsigned nr = nr_helpers();

	for (int ms = 0; ms < PATIENCE_MS && (nr < least || nr > most);
	     ms += 100) {
		sleep_ms(100);
		nr = nr_helpers();
	}
	return nr;
}

/* All but the one that is kept. */
static void idle_helpers_leave(void)
{
	unsigned before, after;

	run_in_kernel("caps-hold-for-all-jobs");
	before = nr_helpers();
	set_parameter("idle_ms", "20");
	set_parameter("keep", "1");
	after = await_helpers(1, 1);
	set_parameter("idle_ms", "5000");
	set_parameter("keep", "0");
	if (before < 2)
		say_verdict(true, __func__, "the cap allows one helper");
	else if (after == 1)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%u helpers, then %u", before,
			    after);
}

/* Return: as many helpers as there are once jobs have asked for some. */
static unsigned ask_for_helpers(void)
{
	double until = seconds_now() + PATIENCE_MS / 1000;
	unsigned nr;

	do {
		run_in_kernel("caps-hold-for-all-jobs");
		nr = nr_helpers();
	} while (nr < 2 && seconds_now() < until);
	return nr;
}

/* Beyond the one that is kept, as far as the cap allows that. */
static void jobs_that_find_no_helper_have_some_made(void)
{
	unsigned limit = (unsigned)stat_of("helpers_limit");
	unsigned none, some;

	if (limit < 2) {
		say_verdict(true, __func__, "the cap allows one helper");
		return;
	}
	set_parameter("cap_percent", "0");
	set_parameter("idle_ms", "20");
	set_parameter("keep", "1");
	none = await_helpers(0, 0);
	set_parameter("idle_ms", "5000");
	/* By itself it makes the one that is kept. */
	set_parameter("cap_percent", "80");
	some = ask_for_helpers();
	set_parameter("keep", "0");
	if (!none && some > 1 && some <= limit)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%u helpers, then %u, of %u", none,
			    some, limit);
}

/* ---- caps ---- */

static void bad_parameters_are_refused(void)
{
	int above = set_parameter("cap_percent", "101");
	int garbage = set_parameter("cap_percent", "x");
	int of_node = set_parameter("node_cap_percent", "101");
	int none = set_parameter("cap_percent", "0");
	int back = set_parameter("cap_percent", "80");

	if (above == EINVAL && garbage == EINVAL && of_node == EINVAL &&
	    !none && !back)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%d %d %d %d %d", above, garbage,
			    of_node, none, back);
}

/* Rounded down; one at least, and of all CPUs one is left to the caller. */
static unsigned part_of(unsigned cpus, unsigned percent, bool of_node)
{
	unsigned part = cpus * percent / 100;

	if (!percent || cpus < (of_node ? 1 : 2))
		return 0;
	if (!of_node && part == cpus)
		part--;
	return part ? part : 1;
}

static unsigned cpus_of_node(unsigned node)
{
	unsigned nr = 0;
	char path[80];

	for (unsigned cpu = 0; cpu < (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	     cpu++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/node%u", cpu, node);
		nr += !access(path, F_OK);
	}
	return nr;
}

/* Return: the first node whose limit is another, -1 for the machine's, or 16. */
static int wrong_limit(unsigned percent)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	char name[40];

	if (stat_of("helpers_limit") != part_of(cpus, percent, false))
		return -1;
	for (unsigned node = 0; node < 16; node++) {
		snprintf(name, sizeof(name), "node%u_helpers_limit", node);
		if (stat_of(name) != part_of(cpus_of_node(node), percent, true))
			return (int)node;
	}
	return 16;
}

static void caps_are_a_part_of_the_cpus(void)
{
	static const unsigned percents[] = { 0, 40, 50, 99, 100, 80 };
	int wrong = 16;
	unsigned i;

	for (i = 0; i < 6 && wrong == 16; i++) {
		char text[20];

		snprintf(text, sizeof(text), "%u", percents[i]);
		CHECK(!set_parameter("cap_percent", text));
		CHECK(!set_parameter("node_cap_percent", text));
		wrong = wrong_limit(percents[i]);
	}
	set_parameter("cap_percent", "80");
	set_parameter("node_cap_percent", "80");
	if (wrong == 16)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%u %%: node %d", percents[i - 1],
			    wrong);
}

static void no_job_is_helped_where_the_cap_is_zero(void)
{
	int without, with;

	set_parameter("cap_percent", "0");
	without = run_in_kernel("+unhelped-jobs");
	set_parameter("cap_percent", "80");
	with = run_in_kernel("helpers-do-a-part");
	if (!without && (!with || with == EOPNOTSUPP))
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s, then %s", strerror(without),
			    strerror(with));
}

/* A full node does not refuse helpers, it only binds none. */
static void no_helper_is_bound_where_the_nodes_cap_is_zero(void)
{
	int error;

	set_parameter("node_cap_percent", "0");
	error = run_in_kernel("+helpers-are-bound-to-no-node");
	set_parameter("node_cap_percent", "80");
	if (!error)
		say_verdict(true, __func__, NULL);
	else if (error == EOPNOTSUPP)
		say_verdict(true, __func__,
			    "not two nodes with CPUs, or no helper");
	else
		say_verdict(false, __func__, "%s", strerror(error));
}

void test_pool(void)
{
	idle_helpers_leave();
	jobs_that_find_no_helper_have_some_made();
	bad_parameters_are_refused();
	caps_are_a_part_of_the_cpus();
	no_job_is_helped_where_the_cap_is_zero();
	no_helper_is_bound_where_the_nodes_cap_is_zero();
}
