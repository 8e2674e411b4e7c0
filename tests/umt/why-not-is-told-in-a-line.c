/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever is in the way of eBPF, umt_info() names it in one line and the next
 * backend serves: no type information, no rights, a kernel that is locked down
 * or too old, a verifier that refuses, no memory for what it keeps of threads.
 *
 * What this kernel cannot be is made up: by a filter on bpf(2), and by folders
 * that are mounted over those of sysfs, for the test's process only.
 */
#include "support/users.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* bpf(2) fails with @error; with @cmd >= 0 only that command does. */
static void refuse_bpf(int cmd, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)cmd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { KTEST_ARRAY_SIZE(code), code };

	if (cmd < 0)
		code[3] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, nr));
	ktest_check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	ktest_check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* An empty folder over @path, for this process only. */
static void hide(const char *path)
{
	ktest_check(!unshare(CLONE_NEWNS));
	ktest_check(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ktest_check(!mount("none", path, "tmpfs", 0, NULL));
}

static int expect(const char *words)
{
	struct umt_options options = { .size = sizeof(options) };
	struct umt_backends info = { .size = sizeof(info) };
	struct umt *user;

	ktest_check(umt_info(&info) == 0);
	fprintf(stderr, "# %s\n", info.why[UMT_BPF]);
	ktest_check(info.backend == UMT_PERF || info.backend == UMT_EXPLICIT);
	ktest_check(strstr(info.why[UMT_BPF], words) != NULL);
	ktest_check(!strchr(info.why[UMT_BPF], '\n'));
	ktest_check(umt_open(&user, NULL) == 0);
	ktest_check(umt_backend(user) == info.backend);
	ktest_check(umt_thread_add(user) == 0);
	umt_close(user);
	options.backend = UMT_BPF;
	ktest_check(umt_open(&user, &options) < 0);
	return 0;
}

static int without_types(void *unused)
{
	hide("/sys/kernel/btf");
	return expect("no type information of the kernel");
}

static int locked_down(void *unused)
{
	int fd;

	hide("/sys/kernel/security");
	fd = open("/sys/kernel/security/lockdown", O_CREAT | O_WRONLY, 0644);
	ktest_check(fd >= 0);
	ktest_check(write(fd, "none integrity [confidentiality]\n", 33) == 33);
	close(fd);
	refuse_bpf(BPF_PROG_LOAD, EPERM);
	return expect("locked down");
}

static int too_old(void *unused)
{
	/* What it calls itself then begins with 2.6. */
	ktest_check(personality(UNAME26) >= 0);
	refuse_bpf(BPF_MAP_CREATE, EINVAL);
	return expect("kernel 2.6");
}

static int refused_by_verifier(void *unused)
{
	refuse_bpf(BPF_PROG_LOAD, EACCES);
	return expect("the kernel refused the program: Permission denied (its "
		      "verifier)");
}

static int refused_by_policy(void *unused)
{
	refuse_bpf(BPF_MAP_CREATE, EPERM);
	return expect("(by a security policy)");
}

static int without_rights(void *unused)
{
	ktest_check(setgid(65534) == 0 && setuid(65534) == 0);
	return expect("CAP_BPF and CAP_PERFMON are needed");
}

static int without_memory_for_records(void *unused)
{
	refuse_bpf(BPF_MAP_DELETE_ELEM, ENOMEM);
	return expect("keeping records of threads: Cannot allocate memory");
}

static int without_bpf(void *unused)
{
	refuse_bpf(-1, ENOSYS);
	return expect("Function not implemented");
}

static void told(int (*child)(void *unused))
{
	if (getuid())
		ktest_skip("only root can make it so");
	setenv("UMT_SOCKET", "", 1);
	umt_close(user_of(UMT_BPF, 0));
	assert_int_equal(ktest_in_child(child, NULL), 0);
}

#define TOLD(child)                               \
	static void child##_is_told(void **state) \
	{                                         \
		told(child);                      \
	}

static void locked_down_is_told(void **state)
{
	if (access("/sys/kernel/security", F_OK))
		ktest_skip("no /sys/kernel/security to put a file into");
	told(locked_down);
}

TOLD(without_types)
TOLD(too_old)
TOLD(refused_by_verifier)
TOLD(refused_by_policy)
TOLD(without_rights)
TOLD(without_memory_for_records)
TOLD(without_bpf)

KTEST_MAIN(KTEST(without_types_is_told), KTEST(locked_down_is_told),
	   KTEST(too_old_is_told), KTEST(refused_by_verifier_is_told),
	   KTEST(refused_by_policy_is_told), KTEST(without_rights_is_told),
	   KTEST(without_memory_for_records_is_told),
	   KTEST(without_bpf_is_told))
