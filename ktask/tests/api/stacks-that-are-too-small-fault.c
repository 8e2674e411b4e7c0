/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A caller with too little stack is ended by the page that guards it: no frame
 * of the library steps over that page, so nothing behind it is written.
 *
 * What is left of a stack is made less and less, from what suffices to what does
 * for nothing.
 */
#include "ktest.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "files.h"
#include "pages.h"

#define LEN (4 * MIB)
#define STACK_BYTES (128 * KIB)
#define BEHIND_BYTES (256 * KIB)
#define CANARY 0xa5
#define LEFT_MOST (20 * KIB)
#define LEFT_LEAST 500

static char *path;
static char *behind; /* below the guard page, and seen by the parent */
static char *stack; /* its lower end */

struct call {
	const char *name;
	unsigned flags;
	size_t left; /* bytes of stack */
};

static void run_call(const struct call *call)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = path,
				   .len = KTASK_TO_END };
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .flags = call->flags };

	if (!strcmp(call->name, "warm")) {
		args.files = &file;
		args.nr_files = 1;
	} else {
		args.addr = map_private(LEN);
		args.len = LEN;
	}
	ktask_op_run(ktask_op_find(call->name), &args, NULL);
}

static void *leave_little(void *arg)
{
	const struct call *call = arg;
	size_t used = (size_t)((char *)__builtin_frame_address(0) - stack);
	volatile char *rest = alloca(used - call->left);

	rest[0] = 0;
	run_call(call);
	return NULL;
}

static int in_a_thread(void *arg)
{
	struct rlimit no_core = { 0 };
	pthread_attr_t attr;
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &no_core);
	/* cmocka has a handler, whose frame would be put behind the guard. */
	signal(SIGSEGV, SIG_DFL);
	ktest_check(!pthread_attr_init(&attr));
	ktest_check(!pthread_attr_setstack(&attr, stack, STACK_BYTES));
	ktest_check(!pthread_create(&thread, &attr, leave_little, arg));
	ktest_check(!pthread_join(thread, NULL));
	return 0;
}

static void map_stack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	behind =
		mmap(NULL, BEHIND_BYTES + page + STACK_BYTES,
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(behind, MAP_FAILED);
	assert_int_equal(mprotect(behind + BEHIND_BYTES, page, PROT_NONE), 0);
	stack = behind + BEHIND_BYTES + page;
	memset(behind, CANARY, BEHIND_BYTES);
}

/* Return: true if the call was done, false if its thread met the guard. */
static bool is_enough(struct call *call)
{
	int status = ktest_in_child(in_a_thread, call);

	for (size_t i = 0; i < BEHIND_BYTES; i++)
		if (behind[i] != (char)CANARY)
			fail_msg("%s with %zu bytes: written %zu behind",
				 call->name, call->left, BEHIND_BYTES - i);
	if (status && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV))
		fail_msg("%s with %zu bytes: status %x", call->name, call->left,
			 (unsigned)status);
	return !status;
}

static void check_call(const char *name, unsigned flags)
{
	struct call call = { name, flags, LEFT_MOST };
	unsigned done = 0, ended = 0;

	for (; call.left > LEFT_LEAST; call.left -= 500)
		++*(is_enough(&call) ? &done : &ended);
	/* Else nothing was tried. */
	assert_true(done && ended);
}

static void no_frame_steps_over_the_guard(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers need stack of their own");
	map_stack();
	path = files_make("file", 3 * MIB, 1);
	check_call("populate", 0);
	check_call("fill", 0);
	check_call("warm", KTASK_FILE_DIRECT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_frame_steps_over_the_guard,
						files_begin, files_end),
	};

	/* A function that is bound at its first call is so by a frame of the
	 * loader's that is no concern of ours. */
	if (!getenv("LD_BIND_NOW") && !setenv("LD_BIND_NOW", "1", 1))
		execv("/proc/self/exe", argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
