/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs begin with what is known of their name: this process's knowledge or the
 * file's, which small jobs do not read.  What jobs find themselves counts when
 * two agree, is written seldom, never replaces what was measured, and never
 * comes from a forked child.
 */
#define MANY_CPUS 24
#include "support/many_cpus.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "support/work.h"

#include "jobs.h"
#include "tree.h"

#include "lib/file.h"
#include "lib/learn.h"
#include "lib/pool.h"
#include "lib/run.h"

#define MANY (KT_TUNE_START + 3)
#define SECOND_NS 1000000000ull

static struct tree tree;

static int begin(void **state)
{
	tree_begin(&tree);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	return 0;
}

static int end(void **state)
{
	tree_end(&tree);
	return 0;
}

static struct ktask_learnt learnt_of(const char *name, unsigned threads)
{
	struct ktask_learnt learnt = KTASK_LEARNT_INIT;

	snprintf(learnt.name, sizeof(learnt.name), "%s", name);
	learnt.threads = threads;
	learnt.max_threads = MANY_CPUS;
	learnt.measured = 1;
	return learnt;
}

static void know(const char *name, unsigned threads, unsigned chunk_us)
{
	struct ktask_learnt learnt = learnt_of(name, threads);

	learnt.chunk_us = chunk_us;
	ktest_check(!ktask_learnt_put(&learnt, NULL, 0));
}

/* What a job begins with, as its caller sees it in its first chunk. */
struct first {
	unsigned threads;
	uint64_t target_ns;
};

static int note_first(void *start, void *end, void *arg)
{
	struct run *run = run_context()->run;
	struct first *first = arg;

	if (run_context()->worker != &run->caller || first->threads)
		return 0;
	first->threads = run->wanted;
	first->target_ns = run->job.split.target_ns;
	return 0;
}

static struct first begin_with(const char *name, size_t units,
			       unsigned chunk_us)
{
	struct first first = { 0 };
	DEFINE_KTASK_CTL(ctl, note_first, &first, 1);

	ktask_ctl_set_name(&ctl, name);
	ktask_ctl_set_chunk_us(&ctl, chunk_us);
	/* A helper may be so quick that nothing is left for the caller. */
	for (int i = 0; i < 1000 && !first.threads; i++)
		ktest_check(!ktask_run(NULL, units, &ctl));
	return first;
}

static int jobs_in_this_process(void *arg)
{
	ktest_check(begin_with("new", 100000, 0).threads == KT_TUNE_START);
	know("many", MANY, 300);
	know("one", 1, 0);
	ktest_check(begin_with("many", 100000, 0).threads == MANY);
	ktest_check(begin_with("many", 100000, 0).target_ns == 300000);
	ktest_check(begin_with("many", 100000, 70).target_ns == 70000);
	ktest_check(begin_with("one", 100000, 0).threads == 1);
	ktest_check(begin_with("one", 100000, 0).target_ns == 1000000);
	ktest_check(begin_with("new", 100000, 0).threads == KT_TUNE_START);
	ktest_check(begin_with(NULL, 100000, 0).threads == KT_TUNE_START);
	know("many", 2, 0);
	ktest_check(begin_with("many", 100000, 0).threads == 2);
	return 0;
}

static int jobs_of_the_next_process(void *arg)
{
	struct ktask_learnt learnt = KTASK_LEARNT_INIT;

	ktest_check(!ktask_learnt_get("many", &learnt));
	ktest_check(learnt.threads == 2 && learnt.measured);
	ktest_check(begin_with("many", 100000, 0).threads == 2);
	ktest_check(begin_with("one", 100000, 0).threads == 1);
	return 0;
}

#define assert_child(func) assert_int_equal(ktest_in_child(func, NULL), 0)

static void jobs_begin_with_what_is_known(void **state)
{
	if (job_threads() < MANY)
		ktest_skip("a job gets %u threads here", job_threads());
	assert_child(jobs_in_this_process);
	assert_child(jobs_of_the_next_process);
}

static int small_then_large(void *arg)
{
	struct learn_entry entry;

	begin_with("one", 20, 0);
	ktest_check(!learn_find("one", false, &entry));
	begin_with("one", 64, 0);
	ktest_check(learn_find("one", false, &entry));
	return 0;
}

static int know_one(void *arg)
{
	know("one", 1, 0);
	return 0;
}

static void small_jobs_read_no_file(void **state)
{
	need_helper();
	assert_child(know_one);
	assert_child(small_then_large);
}

static int bad_arguments(void *arg)
{
	struct ktask_learnt good = learnt_of("a", 1), learnt = good;

	ktest_check(ktask_learnt_put(NULL, NULL, 0) == -EINVAL);
	ktest_check(ktask_learnt_get("a", NULL) == -EINVAL);
	ktest_check(ktask_learnt_get(NULL, &learnt) == -EINVAL);
	ktest_check(ktask_learnt_get("a b", &learnt) == -EINVAL);
	ktest_check(ktask_learnt_get("a", &learnt) == -ENOENT);
	learnt.struct_size--;
	ktest_check(ktask_learnt_put(&learnt, NULL, 0) == -EINVAL);
	ktest_check(ktask_learnt_get("a", &learnt) == -EINVAL);
	learnt = good;
	learnt.threads = 0;
	ktest_check(ktask_learnt_put(&learnt, NULL, 0) == -EINVAL);
	learnt.threads = MANY_CPUS + 1;
	ktest_check(ktask_learnt_put(&learnt, NULL, 0) == -EINVAL);
	learnt = good;
	learnt.chunk_us = LEARN_CHUNK_US_MAX + 1;
	ktest_check(ktask_learnt_put(&learnt, NULL, 0) == -EINVAL);
	learnt = good;
	memset(learnt.name, 'x', sizeof(learnt.name));
	ktest_check(ktask_learnt_put(&learnt, NULL, 0) == -EINVAL);
	return 0;
}

static void wrong_arguments_are_refused(void **state)
{
	assert_child(bad_arguments);
}

static int more_names_than_there_is_room(void *arg)
{
	struct ktask_learnt learnt = KTASK_LEARNT_INIT;
	char name[16];

	for (unsigned i = 0; i < 3 * LEARN_MAX; i++) {
		snprintf(name, sizeof(name), "op-%u", i);
		know(name, 1 + i % MANY, 0);
	}
	ktest_check(!ktask_learnt_get("op-0", &learnt));
	ktest_check(ktask_learnt_get("op-191", &learnt) == -ENOENT);
	return 0;
}

static void the_table_has_an_end(void **state)
{
	assert_child(more_names_than_there_is_room);
}

/* Two tables, root's and the user's own: each name as it should count. */
static void put_for(const char *cache, const char *name, unsigned threads,
		    bool measured)
{
	struct learn_entry entry = { .threads = threads,
				     .max_threads = MANY_CPUS,
				     .seen = LEARN_SEEN_MAX,
				     .measured = measured };
	char machine[LEARN_MACHINE];

	setenv("XDG_CACHE_HOME", cache, 1);
	snprintf(entry.name, sizeof(entry.name), "%s", name);
	learn_machine(machine);
	ktest_check(!learn_write(&entry, machine, 0, NULL, 0));
}

static int own_and_root_s(void *arg)
{
	static const struct {
		const char *name;
		unsigned roots, own, counts;
		bool roots_measured, own_measured;
	} cases[] = {
		{ "a", 5, 0, 5, true, false },	{ "b", 0, 6, 6, false, false },
		{ "c", 5, 6, 5, true, false },	{ "d", 5, 6, 6, true, true },
		{ "e", 5, 6, 6, false, false }, { "f", 5, 6, 6, false, true },
	};
	struct ktask_learnt learnt = KTASK_LEARNT_INIT;

	file_root = tree.root;
	tree_put(&tree, "/var/cache/x", "");
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(cases); i++) {
		if (cases[i].roots)
			put_for("", cases[i].name, cases[i].roots,
				cases[i].roots_measured);
		if (cases[i].own)
			put_for(tree.root, cases[i].name, cases[i].own,
				cases[i].own_measured);
	}
	setenv("XDG_CACHE_HOME", tree.root, 1);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(cases); i++) {
		ktest_check(!ktask_learnt_get(cases[i].name, &learnt));
		ktest_check(learnt.threads == cases[i].counts);
	}
	return 0;
}

static void root_measures_for_everybody(void **state)
{
	if (geteuid())
		ktest_skip("needs root");
	assert_child(own_and_root_s);
}

/* ---- what jobs find ---- */

static bool knows(const char *name, unsigned threads)
{
	struct learn_entry entry;

	if (!learn_find(name, true, &entry))
		return !threads;
	return entry.threads == threads;
}

static int two_jobs_agree(void *arg)
{
	uint64_t now_ns = SECOND_NS;

	ktest_check(knows("x", 0));
	/* What a job begins with anyway is nothing. */
	learn_job("x", KT_TUNE_START, 24, now_ns);
	learn_job("x", KT_TUNE_START, 24, now_ns);
	ktest_check(knows("x", 0));
	learn_job("x", 12, 24, now_ns);
	ktest_check(knows("x", 0));
	learn_job("x", 1, 24, now_ns);
	ktest_check(knows("x", 0));
	learn_job("x", 11, 24, now_ns);
	ktest_check(knows("x", 0));
	learn_job("x", 12, 24, now_ns);
	ktest_check(knows("x", 11));
	learn_job("x", 10, 24, now_ns);
	/* One that disagrees is not yet believed, two are. */
	learn_job("x", 2, 24, now_ns);
	ktest_check(knows("x", 11));
	learn_job("x", 2, 24, now_ns);
	learn_job("x", 2, 24, now_ns);
	ktest_check(!knows("x", 11));
	learn_job("x", 2, 24, now_ns);
	ktest_check(knows("x", 2));
	return 0;
}

static int small_jobs_say_little(void *arg)
{
	learn_job("x", 12, 24, SECOND_NS);
	ktest_check(knows("x", 0));
	learn_job("x", 12, 24, SECOND_NS);
	learn_job("x", 12, 24, SECOND_NS);
	ktest_check(knows("x", 12));
	/* It had no more than three. */
	for (int i = 0; i < 9; i++)
		learn_job("x", 3, 3, SECOND_NS);
	ktest_check(knows("x", 12));
	/* It could have had more than two. */
	for (int i = 0; i < 9; i++)
		learn_job("x", 2, 3, SECOND_NS);
	ktest_check(knows("x", 2));
	for (int i = 0; i < 3; i++)
		learn_job("y", 5, 5, SECOND_NS);
	ktest_check(knows("y", 5));
	learn_job("y", 20, 24, SECOND_NS);
	learn_job("y", 20, 24, SECOND_NS);
	ktest_check(knows("y", 20));
	return 0;
}

static void jobs_that_could_not_have_more_say_little(void **state)
{
	assert_child(small_jobs_say_little);
}

static void counts_need_a_second_witness(void **state)
{
	assert_child(two_jobs_agree);
}

static int measured_stays(void *arg)
{
	know("x", 7, 0);
	for (int i = 0; i < 9; i++)
		learn_job("x", 1, 24, SECOND_NS);
	ktest_check(knows("x", 7));
	return 0;
}

static void what_was_measured_stays(void **state)
{
	assert_child(measured_stays);
}

/* What a new process would read. */
static unsigned seen_in_file(const char *name)
{
	static struct learn_table table;
	char machine[LEARN_MACHINE];

	learn_machine(machine);
	learn_read(false, machine, &table);
	for (unsigned i = 0; i < table.nr; i++)
		if (!strcmp(table.entries[i].name, name))
			return table.entries[i].seen;
	return 0;
}

static int writes(void *arg)
{
	ktest_check(knows("x", 0));
	learn_job("x", 12, 24, SECOND_NS);
	ktest_check(seen_in_file("x") == 1);
	learn_job("x", 12, 24, 2 * SECOND_NS);
	learn_job("x", 12, 24, 60 * SECOND_NS);
	ktest_check(knows("x", 12));
	ktest_check(seen_in_file("x") == 1);
	learn_job("y", 12, 24, 60 * SECOND_NS);
	ktest_check(seen_in_file("y") == 1);
	learn_job("y", 12, 24, 121 * SECOND_NS);
	ktest_check(seen_in_file("y") == 2);
	return 0;
}

static void a_name_is_written_once_a_minute(void **state)
{
	assert_child(writes);
}

static int from_a_child(void *arg)
{
	learn_job("z", 12, 24, SECOND_NS);
	ktest_check(!seen_in_file("z"));
	ktest_check(begin_with("z", 100000, 0).threads);
	return 0;
}

static int forks(void *arg)
{
	/* The pool is in use, and with it what happens at forks. */
	ktest_check(begin_with("z", 100000, 0).threads);
	ktest_check(!ktest_in_child(from_a_child, NULL));
	learn_job("z", 12, 24, SECOND_NS);
	ktest_check(seen_in_file("z") == 1);
	return 0;
}

static void forked_children_write_nothing(void **state)
{
	if (KTEST_ASAN)
		ktest_skip("a fork beside allocations takes the sanitizer's "
			   "locks along");
	need_helper();
	assert_child(forks);
}

static int behind_a_filter(void *arg)
{
	struct sock_filter all[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 1, .filter = all };

	ktest_check(knows("f", 0));
	ktest_check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	learn_job("f", 12, 24, SECOND_NS);
	learn_job("f", 12, 24, SECOND_NS);
	ktest_check(knows("f", 12));
	ktest_check(!seen_in_file("f"));
	return 0;
}

static void behind_a_filter_of_calls_nothing_is_written(void **state)
{
	int status = ktest_in_child(behind_a_filter, NULL);

	if (status == 77 << 8)
		ktest_skip("no filter may be set");
	assert_int_equal(status, 0);
}

/* ---- whole jobs ---- */

/* Each thread more makes all of them slower, as a bad lock does. */
static int worse_together(void *start, void *end, void *arg)
{
	unsigned threads = kt_load(&run_context()->run->job.threads);

	burn_us((unsigned)((char *)end - (char *)start) * 5 * threads *
		threads);
	return 0;
}

static int run_worse(unsigned max_threads)
{
	DEFINE_KTASK_CTL(ctl, worse_together, NULL, 1);

	ktask_ctl_set_name(&ctl, "worse");
	ktask_ctl_set_max_threads(&ctl, max_threads);
	return ktask_run(NULL, 100000, &ctl);
}

static int held_back(void *arg)
{
	ktest_check(!run_worse(3));
	ktest_check(!seen_in_file("worse"));
	return 0;
}

static int free_to_choose(void *arg)
{
	uint64_t end_ns = ktest_now_ns() + 60 * SECOND_NS;

	while (!seen_in_file("worse") && ktest_now_ns() < end_ns)
		ktest_check(!run_worse(0));
	ktest_check(seen_in_file("worse"));
	return 0;
}

static void a_job_that_settles_is_remembered(void **state)
{
	if (job_threads() < MANY || limits_idle_only())
		ktest_skip("a job gets %u threads here, or those that idle",
			   job_threads());
	assert_child(held_back);
	assert_int_equal(ktest_in_child_for(free_to_choose, NULL, 100), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

KTEST_MAIN(T(jobs_begin_with_what_is_known), T(small_jobs_read_no_file),
	   T(wrong_arguments_are_refused), T(the_table_has_an_end),
	   T(root_measures_for_everybody), T(counts_need_a_second_witness),
	   T(jobs_that_could_not_have_more_say_little),
	   T(what_was_measured_stays), T(a_name_is_written_once_a_minute),
	   T(forked_children_write_nothing),
	   T(behind_a_filter_of_calls_nothing_is_written),
	   T(a_job_that_settles_is_remembered))
