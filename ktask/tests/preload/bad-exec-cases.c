/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of exec with what cannot be read, which the kernel refuses.  Prints what they
 * return.  With an argument: becomes another program where nothing can be read by
 * process_vm_readv(), as on a kernel without it.
 */
#include <fcntl.h>

#include "probe.h"
#include "refuse.h"

#define LARGE_BYTES ((size_t)64 << 20)

static void say_result(const char *what, int rc)
{
	printf("%s: %d, %s\n", what, rc, strerror(errno));
}

static int become_unread(void)
{
	must_hold(refuse_whole(SYS_process_vm_readv, ENOSYS), "filter");
	say_result("nothing", execl("/nonexistent", "nonexistent", NULL));
	fflush(stdout);
	return execl("/bin/true", "true", NULL);
}

int main(int argc, char **argv)
{
	const char *volatile none = NULL, *volatile bad = (char *)8;
	char *const *volatile bad_list = (char **)8;
	char *args[] = { "none", NULL },
	     *bad_args[] = { "none", (char *)8, NULL };

	must_hold(mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		       0) != MAP_FAILED,
		  "mmap");
	if (argc > 1)
		return become_unread();
	say_result("no path", execve(none, args, environ));
	say_result("a bad path", execve(bad, args, environ));
	say_result("a bad path", execv(bad, args));
	say_result("a bad path", execveat(AT_FDCWD, bad, args, environ, 0));
	say_result("a bad environment", execve("/bin/true", args, bad_list));
	say_result("a bad environment",
		   execve("/bin/true", args, bad_args + 1));
	say_result("a bad environment", execve("/none", args, bad_list));
	say_result("a bad list", execve("/bin/true", bad_list, environ));
	say_result("a bad argument", execve("/bin/true", bad_args, environ));
	say_result("no descriptor", fexecve(-1, args, environ));
	say_result("an empty name", execvp("", args));
	return 0;
}
