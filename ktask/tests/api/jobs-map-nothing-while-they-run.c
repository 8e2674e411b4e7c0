/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Once a job's threads are there, no memory is mapped, also where other users have
 * registries that are read.  To map takes the lock of the process's mappings for writing,
 * which threads that populate memory hold for reading nearly all the time: a helper of
 * the lowest priority would wait for it instead of working.  Stacks of new threads are
 * mapped by the C library.
 */
#include "ktest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "pages.h"
#include "refuse.h"
#include "user/limits/registry.h"

/* A job of some 50 ms: what others want is read after the first ones. */
#define LEN (256 * MIB)
#define OTHER_UID 54321
#define OTHER_REGISTRY REGISTRY_DIR "/ktask-slots-54321.0"
/* Registries are read again after a second at the latest. */
#define PAUSE_US 1100000
#define JOBS 4
#define CANNOT 70

/* Sanitizers map memory, and machines of 32 bits do so by mmap2(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	!defined(__LP64__)
#define CAN_TELL 0
#else
#define CAN_TELL 1
#endif

/* mmap() without MAP_STACK ends the process. */
static bool forbid_mappings(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		/* The low half of the flags, on little-endian machines. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_STACK, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return refuse_by(steps, sizeof(steps) / sizeof(steps[0]),
			 REFUSE_SECCOMP_ALL);
}

/* A valid one of another user: a copy of this process's, which it has from its first job. */
static bool make_other_registry(void)
{
	struct registry *own = registry_open();
	bool made;
	int fd;

	unlink(OTHER_REGISTRY);
	fd = open(OTHER_REGISTRY, O_CREAT | O_EXCL | O_WRONLY, 0644);
	made = own && fd >= 0 &&
	       write(fd, own, sizeof(*own)) == (ssize_t)sizeof(*own) &&
	       !fchown(fd, OTHER_UID, (gid_t)-1);

	close(fd);
	return made;
}

static void populate_once(char *at)
{
	ktest_check(!ktask_populate(at, LEN, 0));
	ktest_check(!madvise(at, LEN, MADV_DONTNEED));
}

static int do_jobs(void *arg)
{
	char *at = map_private(LEN);

	populate_once(at);
	if (!make_other_registry())
		return CANNOT;
	/* Threads are made, and files read that are read once. */
	for (int i = 0; i < JOBS; i++)
		populate_once(at);
	if (!forbid_mappings())
		return CANNOT;
	usleep(PAUSE_US);
	for (int i = 0; i < JOBS; i++)
		populate_once(at);
	return 0;
}

/* Return: the status of a child that calls @func; @cannot: why it may not be told */
static int run_child(int (*func)(void *arg), const char *cannot)
{
	int status;

	if (!CAN_TELL)
		ktest_skip("a sanitizer maps memory, or mmap2() is called");
	status = ktest_in_child(func, NULL);
	unlink(OTHER_REGISTRY);
	if (status == CANNOT << 8)
		ktest_skip("%s", cannot);
	return status;
}

static void other_users_have_registries(void **state)
{
	assert_int_equal(
		run_child(do_jobs, "not root, or no seccomp filters here"), 0);
}

/* The filter sees what it should. */
static int map_once(void *arg)
{
	if (!forbid_mappings())
		return CANNOT;
	map_private(MIB);
	return 0;
}

static void a_mapping_is_noticed(void **state)
{
	int status = run_child(map_once, "no seccomp filters here");

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

KTEST_MAIN(KTEST(a_mapping_is_noticed), KTEST(other_users_have_registries))
