/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs begin with what was measured for their name, in this process or in the file,
 * which small jobs do not read; else with all threads that they may have, whatever
 * jobs before them found: a busy hour leaves nothing to the idle one after it, in
 * the same process or in a new one.
 *
 * A job of so many threads and chunks begins with a ramp, if nothing was measured for
 * it: then all are those that the ramp leads to.
 */
#define MANY_CPUS 24
#include "support/many_cpus.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/inotify.h>

#include "support/work.h"

#include "jobs.h"
#include "tree.h"

#include "util/file.h"
#include "user/history/autotune.h"
#include "user/pool/user_pool.h"
#include "user/user_job.h"

#define MANY 7
#define CANNOT 70
#define SECOND_NS 1000000000ull

static struct tree tree;

static int make_cache(void **state)
{
	tree_begin(&tree);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	return 0;
}

static int remove_cache(void **state)
{
	tree_end(&tree);
	return 0;
}

static struct ktask_autotune tuned_of(const char *name, unsigned threads)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;

	snprintf(tuned.name, sizeof(tuned.name), "%s", name);
	tuned.threads = threads;
	tuned.max_threads = MANY_CPUS;
	return tuned;
}

static void put_tuned(const char *name, unsigned threads, unsigned chunk_us)
{
	struct ktask_autotune tuned = tuned_of(name, threads);

	tuned.chunk_us = chunk_us;
	ktest_check(!ktask_autotune_put(&tuned, NULL, 0));
}

/* What a job begins with, as its caller sees it in its first chunk. */
struct first {
	unsigned threads;
	uint64_t target_ns;
};

static int note_first(void *start, void *end, void *arg)
{
	struct user_job *job = job_current()->job;
	struct first *first = arg;

	if (job_current()->worker != &job->ctx.caller || first->threads)
		return 0;
	first->threads = job->ctx.ramping ? job->ctx.tune.max : job->ctx.wanted;
	first->target_ns = job->ctx.ramping ? job->ctx.target_ns
					    : job->ctx.job.split.target_ns;
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
	for (int i = 0; i < 1000 && !first.threads; i++) {
		/* A helper of the job before may have starved. */
		forget_overload();
		ktest_check(!ktask_run(NULL, units, &ctl));
	}
	return first;
}

static int jobs_in_this_process(void *arg)
{
	ktest_check(begin_with("new", 100000, 0).threads == job_threads());
	put_tuned("many", MANY, 300);
	put_tuned("one", 1, 0);
	ktest_check(begin_with("many", 100000, 0).threads == MANY);
	ktest_check(begin_with("many", 100000, 0).target_ns == 300000);
	ktest_check(begin_with("many", 100000, 70).target_ns == 70000);
	ktest_check(begin_with("one", 100000, 0).threads == 1);
	ktest_check(begin_with("one", 100000, 0).target_ns == 1000000);
	ktest_check(begin_with("new", 100000, 0).threads == job_threads());
	ktest_check(begin_with(NULL, 100000, 0).threads == job_threads());
	put_tuned("many", 2, 0);
	ktest_check(begin_with("many", 100000, 0).threads == 2);
	return 0;
}

static int jobs_of_the_next_process(void *arg)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;

	ktest_check(!ktask_autotune_get("many", &tuned));
	ktest_check(tuned.threads == 2);
	ktest_check(begin_with("many", 100000, 0).threads == 2);
	ktest_check(begin_with("one", 100000, 0).threads == 1);
	return 0;
}

#define assert_child(func) assert_int_equal(ktest_in_child(func, NULL), 0)

static void jobs_begin_with_what_is_known(void **state)
{
	if (job_threads() < MANY)
		ktest_skip("a job gets %u threads here", job_threads());
	need_sure_helper();
	assert_child(jobs_in_this_process);
	assert_child(jobs_of_the_next_process);
}

static int small_then_large(void *arg)
{
	struct autotune_entry entry;

	begin_with("one", 20, 0);
	ktest_check(!autotune_find("one", false, &entry));
	begin_with("one", 64, 0);
	ktest_check(autotune_find("one", false, &entry));
	return 0;
}

static int know_one(void *arg)
{
	put_tuned("one", 1, 0);
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
	struct ktask_autotune good = tuned_of("a", 1), tuned = good;

	ktest_check(ktask_autotune_put(NULL, NULL, 0) == -EINVAL);
	ktest_check(ktask_autotune_get("a", NULL) == -EINVAL);
	ktest_check(ktask_autotune_get(NULL, &tuned) == -EINVAL);
	ktest_check(ktask_autotune_get("a b", &tuned) == -EINVAL);
	ktest_check(ktask_autotune_get("a", &tuned) == -ENOENT);
	tuned.struct_size = sizeof(size_t) - 1;
	ktest_check(ktask_autotune_put(&tuned, NULL, 0) == -EINVAL);
	ktest_check(ktask_autotune_get("a", &tuned) == -EINVAL);
	tuned = good;
	tuned.threads = 0;
	ktest_check(ktask_autotune_put(&tuned, NULL, 0) == -EINVAL);
	tuned.threads = MANY_CPUS + 1;
	ktest_check(ktask_autotune_put(&tuned, NULL, 0) == -EINVAL);
	tuned = good;
	tuned.chunk_us = AUTOTUNE_CHUNK_US_MAX + 1;
	ktest_check(ktask_autotune_put(&tuned, NULL, 0) == -EINVAL);
	tuned = good;
	memset(tuned.name, 'x', sizeof(tuned.name));
	ktest_check(ktask_autotune_put(&tuned, NULL, 0) == -EINVAL);
	return 0;
}

static void wrong_arguments_are_refused(void **state)
{
	assert_child(bad_arguments);
}

static int more_names_than_fit(void *arg)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;
	char name[16];

	for (unsigned i = 0; i < 3 * AUTOTUNE_MAX; i++) {
		snprintf(name, sizeof(name), "op-%u", i);
		put_tuned(name, 1 + i % MANY, 0);
	}
	ktest_check(!ktask_autotune_get("op-0", &tuned));
	ktest_check(ktask_autotune_get("op-191", &tuned) == -ENOENT);
	return 0;
}

static void the_cache_has_an_end(void **state)
{
	assert_child(more_names_than_fit);
}

/* Two files, root's and the user's own: each name as it should count. */
static void put_for(const char *cache, const char *name, unsigned threads)
{
	struct autotune_entry entry = { .threads = threads,
					.max_threads = MANY_CPUS };
	char machine[AUTOTUNE_MACHINE];

	setenv("XDG_CACHE_HOME", cache, 1);
	snprintf(entry.name, sizeof(entry.name), "%s", name);
	autotune_machine(machine);
	ktest_check(!autotune_write(&entry, machine, 0, NULL, 0));
}

static int own_and_root_s(void *arg)
{
	static const struct {
		const char *name;
		unsigned roots, own, counts;
	} cases[] = { { "a", 5, 0, 5 }, { "b", 0, 6, 6 }, { "c", 5, 6, 6 } };
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;

	file_root = tree.root;
	tree_put(&tree, "/var/cache/x", "");
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(cases); i++) {
		if (cases[i].roots)
			put_for("", cases[i].name, cases[i].roots);
		if (cases[i].own)
			put_for(tree.root, cases[i].name, cases[i].own);
	}
	setenv("XDG_CACHE_HOME", tree.root, 1);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(cases); i++) {
		ktest_check(!ktask_autotune_get(cases[i].name, &tuned));
		ktest_check(tuned.threads == cases[i].counts);
	}
	return 0;
}

static void root_measures_for_everybody(void **state)
{
	if (geteuid())
		ktest_skip("needs root");
	assert_child(own_and_root_s);
}

/* Has a file been opened since @notices began? */
static bool was_opened(int notices)
{
	char event[4096];

	return read(notices, event, sizeof(event)) > 0;
}

static int read_counts(void *arg)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT;
	int notices = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	bool has_cache = *(bool *)arg;
	char path[PATH_MAX];

	if (notices < 0)
		return CANNOT;
	file_root = tree.root;
	tree_put(&tree, "/proc/cpuinfo", "model name : any\n");
	setenv("XDG_CACHE_HOME", tree.root, 1);
	if (has_cache)
		tree_put(&tree, "/ktask/x", "");
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", tree.root);
	ktest_check(inotify_add_watch(notices, path, IN_OPEN) >= 0);
	ktest_check(ktask_autotune_get("unknown", &tuned) == -ENOENT);
	ktest_check(was_opened(notices) == has_cache);
	close(notices);
	return 0;
}

/* Some kernels take 10 ms for that. */
static void the_machine_is_told_only_where_a_file_may_be(void **state)
{
	bool has_cache = false;
	int status = ktest_in_child(read_counts, &has_cache);

	if (status == CANNOT << 8)
		ktest_skip("no inotify here");
	assert_int_equal(status, 0);
	has_cache = true;
	assert_int_equal(ktest_in_child(read_counts, &has_cache), 0);
}

/* ---- what jobs find ---- */

#define HOUR_NS (3600 * SECOND_NS)

/* The clock and the rates of an hour in which each thread more makes the whole
 * job slower: its tune gives threads up until one is left.  It judges nothing before
 * the ramp has ended. */
static void spend_busy_hour(struct user_job *job)
{
	uint64_t now_ns = kt_now_ns(), units = 0;

	job->ctx.start_ns -= HOUR_NS;
	if (kt_tune_ramps(&job->ctx.tune))
		kt_tune_ramp_end(&job->ctx.tune, now_ns, 0);
	for (unsigned i = 0; i < HOUR_NS / KT_TUNE_EPOCH_NS; i++) {
		now_ns += KT_TUNE_EPOCH_NS;
		units += 1000000 / job->ctx.tune.threads;
		kt_tune_step(&job->ctx.tune, now_ns, units);
	}
	ktest_check(job->ctx.tune.threads == 1);
}

static int note_busy_hour(void *start, void *end, void *arg)
{
	struct user_job *job = job_current()->job;
	bool *spent = arg;

	if (job_current()->worker == &job->ctx.caller && !*spent) {
		spend_busy_hour(job);
		*spent = true;
	}
	return 0;
}

static void run_busy_job(void)
{
	bool spent = false;
	DEFINE_KTASK_CTL(ctl, note_busy_hour, &spent, 1);

	ktask_ctl_set_name(&ctl, "fickle");
	for (int i = 0; i < 1000 && !spent; i++)
		ktest_check(!ktask_run(NULL, 100000, &ctl));
	ktest_check(spent);
}

static int busy_then_idle_jobs(void *arg)
{
	for (int i = 0; i < 5; i++)
		run_busy_job();
	ktest_check(begin_with("fickle", 100000, 0).threads == job_threads());
	return 0;
}

static int idle_job(void *arg)
{
	ktest_check(begin_with("fickle", 100000, 0).threads == job_threads());
	return 0;
}

/* The directory is looked at, not the file: no other name either. */
static void assert_nothing_was_written(void)
{
	char path[sizeof(tree.root) + 8];

	snprintf(path, sizeof(path), "%s/ktask", tree.root);
	assert_null(opendir(path));
}

static void a_busy_hour_leaves_nothing_behind(void **state)
{
	need_sure_helper();
	assert_child(busy_then_idle_jobs);
	assert_nothing_was_written();
	assert_child(idle_job);
}

/* As versions before this one wrote it after such an hour. */
static int put_old_file(void *arg)
{
	char machine[AUTOTUNE_MACHINE], path[256], text[1024];
	struct autotune_entry entry = { .threads = 1, .max_threads = 2 };
	uint64_t sum = 0xcbf29ce484222325ull;
	FILE *file;

	strcpy(entry.name, "fickle");
	autotune_machine(machine);
	ktest_check(!autotune_write(&entry, machine, 0, path, sizeof(path)));
	snprintf(text, sizeof(text),
		 "ktask-autotune 1\nmachine %s\n"
		 "fickle threads 1 of 2 chunk_us 0 seen 2 measured 0 rate 0\n",
		 machine);
	for (const char *c = text; *c; c++)
		sum = (sum ^ (unsigned char)*c) * 0x100000001b3ull;
	file = fopen(path, "w");
	ktest_check(file != NULL);
	fprintf(file, "%ssum %016" PRIx64 "\n", text, sum);
	ktest_check(!fclose(file));
	return 0;
}

static void what_jobs_once_wrote_is_ignored(void **state)
{
	need_sure_helper();
	assert_child(put_old_file);
	assert_child(idle_job);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_cache, remove_cache)

KTEST_MAIN(T(jobs_begin_with_what_is_known), T(small_jobs_read_no_file),
	   T(the_machine_is_told_only_where_a_file_may_be),
	   T(wrong_arguments_are_refused), T(the_cache_has_an_end),
	   T(root_measures_for_everybody), T(a_busy_hour_leaves_nothing_behind),
	   T(what_jobs_once_wrote_is_ignored))
