/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread whose last event the kernel did not tell, here one that was attached
 * when it had ended already, keeps no number of a user in use for good.
 */
#include "support/users.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "umt/lib/program.h"
#include "umt/lib/user.h"

/*
 * A process of one thread that is over, but not yet waited for.  Its last switch
 * comes a moment later; should it come later still it is told, which is no harm.
 */
static pid_t a_zombie(void)
{
	siginfo_t info;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	usleep(20000);
	return pid;
}

static void the_last_event_was_missed(void **state)
{
	struct umt *stays, *user;
	unsigned int index;
	pid_t pid;

	/* A program of our own, that only we use. */
	setenv("UMT_SOCKET", "", 1);
	stays = user_of(UMT_BPF, 0);
	user = user_of(UMT_BPF, 0);
	index = user->index;
	pid = a_zombie();
	assert_int_equal(bpf_attach(user, pid), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(holds_soon(!program_user_lingers(index)));
	assert_int_equal(ready_of(user), 0);
	umt_close(user);
	user = user_of(UMT_BPF, 0);
	assert_int_equal(user->index, index);
	umt_close(user);
	umt_close(stays);
}

KTEST_MAIN(KTEST(the_last_event_was_missed))
