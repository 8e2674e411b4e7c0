/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The environment, and whether this process may use the library now.
 *
 * The environment is read once, when the shim is loaded: reading it at the
 * first large call could race with setenv() in another thread of the program.
 * Calls from constructors that run before this one find nothing ready and are
 * plain.  secure_getenv() keeps the environment's hands off a privileged
 * program into which an administrator loads the shim; LD_PRELOAD alone never
 * gets that far.
 *
 * A wrong value counts as not set: the shim has nobody to complain to (the
 * command, which sets these variables, checks its own options).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

/*
 * Below this the plain call is used.  The first job starts the helpers, which
 * takes 0.3 ms.  One thread populates 32 MiB of huge pages in 1.4 ms (23 GB/s)
 * and of 4 KiB pages in 10 ms: a second one saves 0.7 ms at the least, and at
 * half the size what it saves is lost to the start.  Programs that only ever
 * map less never get a thread.
 */
#define DEFAULT_MIN_BYTES ((size_t)32 << 20)

const char *const shim_call_names[SHIM_NR_CALLS] = { "mmap", "madvise",
						     "mlock" };

static size_t min_bytes = DEFAULT_MIN_BYTES;
static unsigned calls_mask = (1u << SHIM_NR_CALLS) - 1;
static const char *report_target;
/* Whose helpers the library has; 0 until the constructor ran. */
static pid_t owner_pid;

static pid_t current_pid(void)
{
	return (pid_t)syscall(SYS_getpid);
}

const char *shim_report_target(void)
{
	return report_target;
}

/*
 * A child of vfork() or of a bare clone() shares memory with a process whose
 * helpers it does not have: the process id tells.  A child of fork() went
 * through the library's own fork handlers and becomes an owner.
 */
bool shim_wants(enum shim_call call, size_t len)
{
	return len >= min_bytes && (calls_mask & (1u << call)) &&
	       !shim_busy() && owner_pid == current_pid();
}

static void forked(void)
{
	owner_pid = current_pid();
	shim_report_forked();
}

static void read_min_bytes(const char *text)
{
	unsigned long long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return;
	value = strtoull(text, &end, 10);
	if (!*end && value && value <= SIZE_MAX)
		min_bytes = (size_t)value;
}

static int call_named(const char *name, size_t len)
{
	for (int call = 0; call < SHIM_NR_CALLS; call++)
		if (strlen(shim_call_names[call]) == len &&
		    !memcmp(shim_call_names[call], name, len))
			return call;
	return -1;
}

static void read_calls(const char *text)
{
	unsigned mask = 0;

	if (!text)
		return;
	for (;;) {
		size_t len = strcspn(text, ",");
		int call = call_named(text, len);

		if (call < 0 && len)
			return;
		if (call >= 0)
			mask |= 1u << call;
		if (!text[len])
			break;
		text += len + 1;
	}
	calls_mask = mask;
}

static void __attribute__((constructor)) shim_init(void)
{
	const char *report = secure_getenv("KTASK_RUN_REPORT");

	read_min_bytes(secure_getenv("KTASK_RUN_MIN"));
	read_calls(secure_getenv("KTASK_RUN_OPS"));
	if (report && *report && strcmp(report, "0"))
		report_target = report;
	shim_report_init();
	if (pthread_atfork(NULL, NULL, forked))
		return;
	owner_pid = current_pid();
}
