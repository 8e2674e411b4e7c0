/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of umtd share: one that listens on a socket of the test's
 * own, and children that are some unprivileged user.
 */
#ifndef UMT_TEST_UMTD_H
#define UMT_TEST_UMTD_H

#include "subscribers.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/broker_client.h"

#define SOMEBODY 65534u

/* A client waits for umtd for ten seconds: a call that took them is made again, so often. */
#define LATE_NS 9000000000ull
#define LATE_TRIES 8

struct umtd {
	char directory[32];
	char path[48];
	pid_t pid;
};

static inline void umtd_exec(const struct umtd *umtd)
{
	const char *build = getenv("KTASK_BUILD");
	char program[4096];

	snprintf(program, sizeof(program), "%s/umtd", build ? build : "build");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(program, "umtd", "--socket", umtd->path, NULL);
	perror(program);
	_exit(1);
}

static inline bool umtd_answers(void)
{
	int fd = broker_connect();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static inline void umtd_run(struct umtd *umtd)
{
	fflush(stdout);
	umtd->pid = fork();
	if (!umtd->pid)
		umtd_exec(umtd);
	assert_true(holds_soon(umtd_answers()));
}

/* Skips the test where there can be none. */
static inline void umtd_begin(struct umtd *umtd)
{
	if (getuid())
		ktest_skip("only root may run umtd");
	need_own_program();
	strcpy(umtd->directory, "/tmp/umtd-XXXXXX");
	assert_non_null(mkdtemp(umtd->directory));
	assert_int_equal(chmod(umtd->directory, 0755), 0);
	snprintf(umtd->path, sizeof(umtd->path), "%s/socket", umtd->directory);
	setenv("UMT_SOCKET", umtd->path, 1);
	umtd_run(umtd);
}

static inline void umtd_kill(struct umtd *umtd)
{
	kill(umtd->pid, SIGKILL);
	assert_int_equal(waitpid(umtd->pid, NULL, 0), umtd->pid);
}

static inline void umtd_end(struct umtd *umtd)
{
	umtd_kill(umtd);
	unlink(umtd->path);
	rmdir(umtd->directory);
	unsetenv("UMT_SOCKET");
}

/* In a child. */
static inline void become_somebody(unsigned id)
{
	ktest_check(setgid(id) == 0 && setuid(id) == 0);
}

/* As somebody, with a limit in time. */
static inline int as_somebody(int (*func)(void *arg), void *arg)
{
	return ktest_in_child_for(func, arg, 200);
}

/* A subscriber by umtd, in a child; there is no other way to have eBPF. */
static inline struct umt *subscribe_by_umtd(unsigned flags)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF,
				       .flags = flags };
	struct umt *subscriber = NULL;
	uint64_t begin_ns;
	int error, tries = 0;

	do {
		begin_ns = ktest_now_ns();
		error = umt_open(&subscriber, &options);
	} while (error && ktest_now_ns() - begin_ns >= LATE_NS &&
		 ++tries < LATE_TRIES);
	if (error)
		fprintf(stderr, "# umt_open: %s\n", strerror(-error));
	return error ? NULL : subscriber;
}

/* What umtd says to that, in a child. */
static inline void ask_backends(struct umt_backends *info)
{
	uint64_t begin_ns;
	int tries = 0;

	do {
		begin_ns = ktest_now_ns();
		ktest_check(umt_info(info) == 0);
	} while (ktest_now_ns() - begin_ns >= LATE_NS && ++tries < LATE_TRIES);
}

/* The service is as it should be, for whoever asks. */
static inline int is_served(void *unused)
{
	struct umt *subscriber;

	become_somebody(SOMEBODY);
	subscriber = subscribe_by_umtd(0);
	ktest_check(subscriber != NULL);
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(holds_soon(ready_of(subscriber) == 1));
	/* A nap that is over before it began is none. */
	ktest_check(holds_soon(sums_of(subscriber).sleeps >= 10));
	ktest_check(holds_soon(ready_of(subscriber) == 1));
	ktest_check(umt_thread_remove(subscriber) == 0);
	ktest_check(ready_of(subscriber) == 0);
	umt_close(subscriber);
	return 0;
}

#endif /* UMT_TEST_UMTD_H */
