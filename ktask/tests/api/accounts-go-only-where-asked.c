/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Each job that ends adds one whole line to the file that KTASK_STAT names, if
 * that was made for it and belongs to the user alone; nothing else is ever
 * touched, and no job fails for it.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/work.h"

#include "jobs.h"
#include "tree.h"

#include "user/account.h"

#define UNITS 1000

static struct tree tree;
static char path[128];

static int make_accounts(void **state)
{
	tree_begin(&tree);
	snprintf(path, sizeof(path), "%s/accounts", tree.root);
	tree_put(&tree, "/accounts", ACCOUNT_HEADER);
	assert_int_equal(chmod(path, 0600), 0);
	setenv("KTASK_STAT", path, 1);
	return 0;
}

static int remove_accounts(void **state)
{
	unsetenv("KTASK_STAT");
	tree_end(&tree);
	return 0;
}

static int do_nothing(void *start, void *end, void *arg)
{
	return (int)(intptr_t)arg;
}

static int run_named(const char *name, int result)
{
	DEFINE_KTASK_CTL(ctl, do_nothing, (void *)(intptr_t)result, 1);

	ktask_ctl_set_name(&ctl, name);
	return ktask_run(NULL, UNITS, &ctl);
}

/* One process reads its environment once. */
static int three_jobs(void *arg)
{
	ktest_check(!run_named("first", 0));
	ktest_check(run_named(NULL, 5) == 5);
	ktest_check(!run_named("a b\n\033[2J", 0));
	ktest_check(job_works());
	return 0;
}

static void run_jobs(void)
{
	assert_int_equal(ktest_in_child(three_jobs, NULL), 0);
}

static size_t text_of(char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, text, size - 1);

	close(fd);
	assert_true(len >= 0);
	text[len] = '\0';
	return (size_t)len;
}

struct line {
	char name[20];
	int pid, error;
	unsigned threads, lent;
	unsigned long long units, chunks, wall_ns, caller_ns, helper_ns;
};

/* The line at *text, which is moved behind it. */
static bool next_line(char **text, struct line *line)
{
	int end = 0;

	if (sscanf(*text, "%15s %d %d %u %u %llu %llu %llu %llu %llu%n",
		   line->name, &line->pid, &line->error, &line->threads,
		   &line->lent, &line->units, &line->chunks, &line->wall_ns,
		   &line->caller_ns, &line->helper_ns, &end) != 10)
		return false;
	assert_int_equal((*text)[end], '\n');
	*text += end + 1;
	return true;
}

static void every_job_adds_its_line(void **state)
{
	char buf[4096], *text = buf + sizeof(ACCOUNT_HEADER) - 1;
	struct line line;

	run_jobs();
	text_of(buf, sizeof(buf));
	assert_memory_equal(buf, ACCOUNT_HEADER, sizeof(ACCOUNT_HEADER) - 1);
	assert_true(next_line(&text, &line));
	assert_string_equal(line.name, "first");
	assert_int_equal(line.error, 0);
	assert_true(line.pid > 0 && line.threads >= 1 && line.wall_ns > 0);
	assert_int_equal(line.units, UNITS);
	assert_true(line.chunks >= 1 && line.caller_ns > 0);
	assert_true(next_line(&text, &line));
	assert_string_equal(line.name, "job");
	assert_int_equal(line.error, 5);
	assert_true(next_line(&text, &line));
	assert_string_equal(line.name, "a?b??[2J");
	assert_true(next_line(&text, &line));
	assert_int_equal(line.units, TALLY_UNITS);
	assert_false(next_line(&text, &line));
	assert_string_equal(text, "");
}

static void assert_untouched(const char *content)
{
	char buf[4096];

	run_jobs();
	text_of(buf, sizeof(buf));
	assert_string_equal(buf, content);
}

static void other_files_are_not_touched(void **state)
{
	tree_put(&tree, "/accounts", "something else\n");
	assert_int_equal(chmod(path, 0600), 0);
	assert_untouched("something else\n");
	tree_put(&tree, "/accounts", "");
	assert_int_equal(chmod(path, 0600), 0);
	assert_untouched("");
	tree_put(&tree, "/accounts", ACCOUNT_HEADER);
	assert_int_equal(chmod(path, 0644), 0);
	assert_untouched(ACCOUNT_HEADER);
	assert_int_equal(chmod(path, 0620), 0);
	assert_untouched(ACCOUNT_HEADER);
	if (geteuid())
		ktest_skip("a file can be given away by root only");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_untouched(ACCOUNT_HEADER);
}

static void other_things_are_not_waited_for(void **state)
{
	static const char *const values[] = {
		"",	     "relative",       "/dev/null",
		"/dev/full", "/proc/self/mem", "/nosuch/file",
		"/"
	};
	char longer[4096];

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(values); i++) {
		setenv("KTASK_STAT", values[i], 1);
		run_jobs();
	}
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	setenv("KTASK_STAT", longer, 1);
	run_jobs();
	setenv("KTASK_STAT", path, 1);
	unlink(path);
	run_jobs();
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(mkfifo(path, 0600), 0);
	run_jobs();
}

static int with_a_small_limit(void *arg)
{
	struct rlimit limit = { sizeof(ACCOUNT_HEADER) + 20,
				sizeof(ACCOUNT_HEADER) + 20 };

	ktest_check(!setrlimit(RLIMIT_FSIZE, &limit));
	return three_jobs(NULL);
}

static void a_limit_on_files_is_no_signal(void **state)
{
	char buf[4096];

	assert_int_equal(ktest_in_child(with_a_small_limit, NULL), 0);
	text_of(buf, sizeof(buf));
	assert_string_equal(buf, ACCOUNT_HEADER);
}

static void it_does_not_grow_for_ever(void **state)
{
	struct stat st;

	assert_int_equal(truncate(path, ACCOUNT_BYTES_MAX + 1), 0);
	run_jobs();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, ACCOUNT_BYTES_MAX + 1);
}

#define PROCESSES 4
#define JOBS 100

static int many_jobs(void *arg)
{
	for (unsigned i = 0; i < JOBS; i++)
		ktest_check(!run_named("many", 0));
	return 0;
}

static void lines_of_processes_do_not_mix(void **state)
{
	static char buf[1 << 17];
	char *text = buf + sizeof(ACCOUNT_HEADER) - 1;
	struct line line;
	unsigned nr = 0;
	int status;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (!fork())
			_exit(many_jobs(NULL));
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	text_of(buf, sizeof(buf));
	for (; next_line(&text, &line); nr++)
		assert_string_equal(line.name, "many");
	assert_int_equal(nr, PROCESSES * JOBS);
	assert_string_equal(text, "");
}

#define T(name) \
	cmocka_unit_test_setup_teardown(name, make_accounts, remove_accounts)

KTEST_MAIN(T(every_job_adds_its_line), T(other_files_are_not_touched),
	   T(other_things_are_not_waited_for), T(a_limit_on_files_is_no_signal),
	   T(it_does_not_grow_for_ever), T(lines_of_processes_do_not_mix))
