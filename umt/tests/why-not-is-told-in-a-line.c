/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever is in the way of eBPF, umt_info() names it in one line and the next
 * backend serves: no type information, arguments in another order, no rights, a
 * kernel that is locked down or too old, a verifier that refuses, no memory for
 * what it keeps of threads.
 *
 * What this kernel cannot be is made up: by a filter on bpf(2), and by directories
 * that are mounted over those of sysfs, for the test's process only.
 */
#include "support/subscribers.h"
#include "refuse.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TYPES "/sys/kernel/btf/vmlinux"
#define TYPES_MAX (64u << 20)

/* bpf(2) fails with @error; with @cmd >= 0 only that command does. */
static void refuse_bpf(int cmd, int error)
{
	if (cmd < 0)
		ktest_check(refuse_whole(SYS_bpf, (unsigned)error));
	else
		ktest_check(refuse_call(SYS_bpf, 0, (unsigned)cmd,
					(unsigned)cmd, (unsigned)error));
}

/* ---- other types ---- */

/*
 * What follows a type of this kind: bytes, and bytes for each of its members.
 */
static size_t bytes_behind(const struct btf_type *type)
{
	static const struct {
		size_t bytes, each;
	} kinds[] = {
		[BTF_KIND_INT] = { 4, 0 },
		[BTF_KIND_ARRAY] = { 12, 0 },
		[BTF_KIND_STRUCT] = { 0, 12 },
		[BTF_KIND_UNION] = { 0, 12 },
		[BTF_KIND_ENUM] = { 0, 8 },
		[BTF_KIND_FUNC_PROTO] = { 0, 8 },
		[BTF_KIND_VAR] = { 4, 0 },
		[BTF_KIND_DATASEC] = { 0, 12 },
		[BTF_KIND_DECL_TAG] = { 4, 0 },
		[BTF_KIND_ENUM64] = { 0, 12 },
	};
	unsigned kind = BTF_INFO_KIND(type->info);

	if (kind >= KTEST_ARRAY_SIZE(kinds))
		return 0;
	return kinds[kind].bytes + kinds[kind].each * BTF_INFO_VLEN(type->info);
}

static struct btf_type *type_at(struct btf_header *btf, uint32_t wanted)
{
	char *at = (char *)btf + btf->hdr_len + btf->type_off;
	char *end = at + btf->type_len;
	uint32_t id;

	for (id = 1; at < end; id++) {
		struct btf_type *type = (struct btf_type *)at;

		if (id == wanted)
			return type;
		at += sizeof(*type) + bytes_behind(type);
	}
	return NULL;
}

static struct btf_type *type_named(struct btf_header *btf, const char *name)
{
	char *names = (char *)btf + btf->hdr_len + btf->str_off;
	char *at = (char *)btf + btf->hdr_len + btf->type_off;
	char *end = at + btf->type_len;

	while (at < end) {
		struct btf_type *type = (struct btf_type *)at;

		if (!strcmp(names + type->name_off, name))
			return type;
		at += sizeof(*type) + bytes_behind(type);
	}
	return NULL;
}

/* As in 5.18: the state is told before the threads and not behind them. */
static void put_state_first(struct btf_header *btf)
{
	struct btf_type *type = type_named(btf, "btf_trace_sched_switch");
	struct btf_param *params, state;

	ktest_check(type != NULL);
	type = type_at(btf, type_at(btf, type->type)->type);
	ktest_check(BTF_INFO_KIND(type->info) == BTF_KIND_FUNC_PROTO);
	ktest_check(BTF_INFO_VLEN(type->info) == 5);
	params = (struct btf_param *)(type + 1);
	state = params[4];
	memmove(&params[3], &params[2], 2 * sizeof(*params));
	params[2] = state;
}

static char *read_all(const char *path, size_t *size)
{
	char *text = malloc(TYPES_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t nr = 1;

	ktest_check(text && fd >= 0);
	for (*size = 0; nr > 0; *size += (size_t)nr)
		nr = read(fd, text + *size, TYPES_MAX - *size);
	ktest_check(!nr && *size < TYPES_MAX);
	close(fd);
	return text;
}

/* An empty directory over @path, for this process only. */
static void hide_path(const char *path)
{
	ktest_check(!unshare(CLONE_NEWNS));
	ktest_check(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ktest_check(!mount("none", path, "tmpfs", 0, NULL));
}

static int expect_words(const char *words)
{
	struct umt_options options = { .size = sizeof(options) };
	struct umt_backends info = { .size = sizeof(info) };
	struct umt *subscriber;

	ktest_check(umt_info(&info) == 0);
	fprintf(stderr, "# %s\n", info.why[UMT_BPF]);
	ktest_check(info.backend == UMT_PERF || info.backend == UMT_EXPLICIT);
	ktest_check(strstr(info.why[UMT_BPF], words) != NULL);
	ktest_check(!strchr(info.why[UMT_BPF], '\n'));
	ktest_check(umt_open(&subscriber, NULL) == 0);
	ktest_check(umt_backend(subscriber) == info.backend);
	ktest_check(umt_thread_add(subscriber) == 0);
	umt_close(subscriber);
	options.backend = UMT_BPF;
	ktest_check(umt_open(&subscriber, &options) < 0);
	return 0;
}

static int without_types(void *unused)
{
	hide_path("/sys/kernel/btf");
	return expect_words("no type information of the kernel");
}

/* It is the kernel that refuses; what is told comes from its types. */
static int without_known_arguments(void *unused)
{
	size_t size;
	char *types = read_all(TYPES, &size);
	int fd;

	put_state_first((struct btf_header *)types);
	hide_path("/sys/kernel/btf");
	fd = open(TYPES, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ktest_check(fd >= 0 && write(fd, types, size) == (ssize_t)size);
	close(fd);
	refuse_bpf(BPF_PROG_LOAD, EACCES);
	return expect_words("sched_switch has other arguments here");
}

static int locked_down(void *unused)
{
	int fd;

	hide_path("/sys/kernel/security");
	fd = open("/sys/kernel/security/lockdown", O_CREAT | O_WRONLY, 0644);
	ktest_check(fd >= 0);
	ktest_check(write(fd, "none integrity [confidentiality]\n", 33) == 33);
	close(fd);
	refuse_bpf(BPF_PROG_LOAD, EPERM);
	return expect_words("locked down");
}

static int too_old(void *unused)
{
	/* What it calls itself then begins with 2.6. */
	ktest_check(personality(UNAME26) >= 0);
	refuse_bpf(BPF_MAP_CREATE, EINVAL);
	return expect_words("kernel 2.6");
}

static int refused_by_verifier(void *unused)
{
	refuse_bpf(BPF_PROG_LOAD, EACCES);
	return expect_words(
		"the kernel refused the program: Permission denied (its "
		"verifier)");
}

static int refused_by_policy(void *unused)
{
	refuse_bpf(BPF_MAP_CREATE, EPERM);
	return expect_words("(by a security policy)");
}

static int without_rights(void *unused)
{
	ktest_check(setgid(65534) == 0 && setuid(65534) == 0);
	return expect_words("CAP_BPF and CAP_PERFMON are needed");
}

#define NO_NAMESPACE 77

/* As root of a container that a user without rights has made. */
static int with_rights_over_a_namespace(void *unused)
{
	if (unshare(CLONE_NEWUSER))
		return NO_NAMESPACE;
	return expect_words("rights over a user namespace are not enough");
}

static int without_memory_for_records(void *unused)
{
	refuse_bpf(BPF_MAP_DELETE_ELEM, ENOMEM);
	return expect_words(
		"keeping records of threads: Cannot allocate memory");
}

static int without_bpf(void *unused)
{
	refuse_bpf(-1, ENOSYS);
	return expect_words("there is no bpf(2)");
}

static int without_perf(void *unused)
{
	struct umt_backends info = { .size = sizeof(info) };

	ktest_check(refuse_whole(SYS_perf_event_open, ENOSYS));
	ktest_check(umt_info(&info) == 0);
	fprintf(stderr, "# %s\n", info.why[UMT_PERF]);
	ktest_check(strstr(info.why[UMT_PERF], "perf_event_open(2)") != NULL);
	return 0;
}

static void check_told(int (*child)(void *unused))
{
	if (getuid())
		ktest_skip("only root can make it so");
	need_own_program();
	assert_int_equal(ktest_in_child(child, NULL), 0);
}

#define TOLD(child)                               \
	static void child##_is_told(void **state) \
	{                                         \
		check_told(child);                \
	}

static void locked_down_is_told(void **state)
{
	if (access("/sys/kernel/security", F_OK))
		ktest_skip("no /sys/kernel/security to put a file into");
	check_told(locked_down);
}

static void without_known_arguments_is_told(void **state)
{
	if (access(TYPES, R_OK))
		ktest_skip("no type information of the kernel");
	check_told(without_known_arguments);
}

static void with_rights_over_a_namespace_is_told(void **state)
{
	int status;

	if (getuid())
		ktest_skip("only root can make it so");
	/* Its thread is in the way. */
	if (KTEST_TSAN)
		ktest_skip("no user namespaces under the thread sanitizer");
	need_own_program();
	status = ktest_in_child(with_rights_over_a_namespace, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE)
		ktest_skip("no user namespace may be made here");
	assert_int_equal(status, 0);
}

TOLD(without_types)
TOLD(too_old)
TOLD(refused_by_verifier)
TOLD(refused_by_policy)
TOLD(without_rights)
TOLD(without_memory_for_records)
TOLD(without_bpf)
TOLD(without_perf)

KTEST_MAIN(KTEST(without_types_is_told), KTEST(without_known_arguments_is_told),
	   KTEST(locked_down_is_told), KTEST(too_old_is_told),
	   KTEST(refused_by_verifier_is_told), KTEST(refused_by_policy_is_told),
	   KTEST(without_rights_is_told),
	   KTEST(with_rights_over_a_namespace_is_told),
	   KTEST(without_memory_for_records_is_told),
	   KTEST(without_bpf_is_told), KTEST(without_perf_is_told))
