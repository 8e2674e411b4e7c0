/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs and operations may be asked for by threads with little stack, as language
 * runtimes and callbacks have it: 32 KiB, the thread's own block included.
 */
#include "ktest.h"

#include <pthread.h>
#include <signal.h>

#include "failalloc.h"
#include "files.h"
#include "pages.h"

#define LEN (32 * MIB)
#define STACK_BYTES (32 * KIB)
/* A frame may be larger than the C library's guard page. */
#define GUARD_BYTES (1 * MIB)

static char *path;

struct call {
	const char *name; /* NULL: a plain job */
	unsigned flags;
	bool without_memory;
};

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static int continue_always(const struct ktask_progress *progress, void *arg)
{
	return 0;
}

static void run_jobs(void)
{
	struct ktask_job *job;
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);

	ktask_ctl_set_result(&ctl, &result);
	ktask_ctl_set_progress(&ctl, continue_always, NULL, 1);
	ktest_check(!ktask_run((void *)1, 100000, &ctl));
	ktest_check(!ktask_start(&job, (void *)1, 100000, &ctl));
	ktest_check(!ktask_wait(job));
}

static bool is_on_files(const char *name)
{
	return !strcmp(name, "warm");
}

/* Whether it succeeds is not the question. */
static void run_call(const struct call *call)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = path,
				   .len = KTASK_TO_END };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .flags = call->flags };

	opts.result = &result;
	if (is_on_files(call->name)) {
		args.files = &file;
		args.nr_files = 1;
	} else {
		args.addr = map_private(LEN);
		args.len = LEN;
	}
	if (call->without_memory)
		failalloc_arm_from(1, FAILALLOC_MEMORY);
	ktask_op_run(ktask_op_find(call->name), &args, &opts);
	failalloc_disarm();
}

static void *run_one(void *arg)
{
	const struct call *call = arg;

	if (call->name)
		run_call(call);
	else
		run_jobs();
	return NULL;
}

static int in_a_small_thread(void *arg)
{
	char *guard = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = guard + GUARD_BYTES;
	pthread_attr_t attr;
	pthread_t thread;

	/* cmocka has a handler, whose frame would be put behind a guard. */
	signal(SIGSEGV, SIG_DFL);
	ktest_check(guard != MAP_FAILED);
	ktest_check(!mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE));
	ktest_check(!pthread_attr_init(&attr));
	ktest_check(!pthread_attr_setstack(&attr, stack, STACK_BYTES));
	ktest_check(!pthread_create(&thread, &attr, run_one, arg));
	ktest_check(!pthread_join(thread, NULL));
	return 0;
}

static void check_call(const char *name, unsigned flags, bool without_memory)
{
	struct call call = { name, flags, without_memory };
	int status = ktest_in_child(in_a_small_thread, &call);

	if (status)
		fail_msg("%s, flags %x%s: status %x", name ? name : "a job",
			 flags, without_memory ? ", without memory" : "",
			 (unsigned)status);
}

static void every_operation(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers need stack of their own");
	path = files_make("from", 9 * MIB, 1);
	check_call(NULL, 0, false);
	for (unsigned i = 0; ktask_op_at(i); i++) {
		const char *name = ktask_op_name(ktask_op_at(i));

		check_call(name, 0, false);
		check_call(name, 0, true);
	}
	/* Past the page cache everything goes through memory of ours. */
	for (int without = 0; without < 2; without++)
		check_call("warm", KTASK_FILE_DIRECT, without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_operation, files_begin,
						files_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
