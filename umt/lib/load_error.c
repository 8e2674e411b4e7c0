/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See load_error.h.  Called only after something failed: reading the kernel's type
 * information once more takes as long as loading.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "rights.h"
#include "load_error.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 15
#define RELEASE_MAX 41

/* ---- what the running kernel must have ---- */

static bool is_task(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const char *name;

	if (!type || !btf_is_ptr(type))
		return false;
	type = btf__type_by_id(btf, type->type);
	name = type ? btf__name_by_offset(btf, type->name_off) : NULL;
	return name && btf_is_struct(type) && !strcmp(name, "task_struct");
}

/*
 * The typedef must be of a pointer to a function (void *, bool, prev, next...).  With
 * other arguments the program would use a number as a pointer to a thread, and the
 * kernel refuses it.
 */
static bool switch_is_as_we_read_it(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch",
					BTF_KIND_TYPEDEF);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_param *params;

	type = type ? btf__type_by_id(btf, type->type) : NULL;
	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type)
					: NULL;
	if (!type || !btf_is_func_proto(type) || btf_vlen(type) < 4)
		return false;
	params = btf_params(type);
	return !is_task(btf, params[1].type) && is_task(btf, params[2].type) &&
	       is_task(btf, params[3].type);
}

static bool is_too_old(char release[RELEASE_MAX])
{
	struct utsname name;
	int major, minor;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return false;
	snprintf(release, RELEASE_MAX, "%.40s", name.release);
	return major < OLDEST_MAJOR ||
	       (major == OLDEST_MAJOR && minor < OLDEST_MINOR);
}

static bool is_locked_down(void)
{
	char text[100];
	ssize_t nr = -1;
	int fd = open(LOCKDOWN, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		nr = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (nr <= 0)
		return false;
	text[nr] = 0;
	return strstr(text, "[confidentiality]");
}

static bool has_capability(const struct __user_cap_data_struct *data, int cap)
{
	return data[cap / 32].effective & (1u << (cap % 32));
}

static bool has_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return false;
	return has_capability(data, CAP_SYS_ADMIN) ||
	       (has_capability(data, CAP_BPF) &&
		has_capability(data, CAP_PERFMON));
}

static const char *hint_for(int error)
{
	if (error != -EPERM && error != -EACCES)
		return "";
	if (!has_rights())
		return " (CAP_BPF and CAP_PERFMON are needed)";
	if (!rights_are_whole())
		return " (rights over a user namespace are not enough)";
	if (is_locked_down())
		return " (the kernel is locked down for confidentiality)";
	return error == -EACCES ? " (its verifier)" : " (by a security policy)";
}

/* The only system call that fails here is bpf(2). */
int why_not(int error, const char *what, char *why, size_t size)
{
	if (error == -ENOSYS)
		snprintf(why, size,
			 "%s: there is no bpf(2) (CONFIG_BPF_SYSCALL, or a "
			 "sandbox hides it)",
			 what);
	else
		snprintf(why, size, "%s: %s%s", what, strerror(-error),
			 hint_for(error));
	return error;
}

static int why_no_types(char *why, size_t size)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int error = 0;

	if (!btf) {
		error = errno ? -errno : -ENOENT;
		snprintf(why, size,
			 "no type information of the kernel "
			 "(CONFIG_DEBUG_INFO_BTF): %s",
			 strerror(-error));
	} else if (!switch_is_as_we_read_it(btf)) {
		error = -EPROTO;
		snprintf(why, size, "sched_switch has other arguments here");
	}
	btf__free(btf);
	return error;
}

int why_refused(int error, char *why, size_t size)
{
	char release[RELEASE_MAX];
	int found;

	if (is_too_old(release)) {
		snprintf(why, size, "kernel %s: %d.%d or newer is needed",
			 release, OLDEST_MAJOR, OLDEST_MINOR);
		return error;
	}
	/* Without rights libbpf fails at the same step as without type information. */
	if (!has_rights())
		return why_not(error == -ESRCH ? -EPERM : error,
			       "the kernel refused the program", why, size);
	found = why_no_types(why, size);
	return found ? found
		     : why_not(error, "the kernel refused the program", why,
			       size);
}
