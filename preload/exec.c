/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Becoming another program: what was counted until then is reported first, for
 * the new program begins with nothing.  Where nothing was counted, the new
 * program's own line is enough.  Where the shim will not be loaded into the new
 * program, its line is written here, before the call, which may still fail.
 *
 * These functions may be called in a signal handler and in a child of vfork():
 * nothing is allocated here, and such a child, which is not ours, reports
 * nothing of its own.
 *
 * Not seen: posix_spawn(), whose child has made no calls of its own, and
 * system calls without the C library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "shim.h"
#include "util/program.h"

static struct {
	int (*execve)(const char *, char *const *, char *const *);
	int (*execv)(const char *, char *const *);
	int (*execvp)(const char *, char *const *);
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*fexecve)(int, char *const *, char *const *);
} next;

/* The file name of the shim, as LD_PRELOAD has it. */
static const char *own_name = "";

static void find_own_name(void)
{
	Dl_info own;
	const char *slash;

	if (!dladdr(&own_name, &own) || !own.dli_fname)
		return;
	slash = strrchr(own.dli_fname, '/');
	own_name = slash ? slash + 1 : own.dli_fname;
}

static void find_next(void)
{
	*(void **)&next.execve = dlsym(RTLD_NEXT, "execve");
	*(void **)&next.execv = dlsym(RTLD_NEXT, "execv");
	*(void **)&next.execvp = dlsym(RTLD_NEXT, "execvp");
	*(void **)&next.execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&next.fexecve = dlsym(RTLD_NEXT, "fexecve");
}

/* Not later: that allocates, and takes the loader's lock. */
static void __attribute__((constructor)) exec_init(void)
{
	find_next();
	find_own_name();
}

/* A constructor before ours calls. */
static void ensure_next(void)
{
	if (!next.execve)
		find_next();
}

static bool has_shim(char *const envp[])
{
	static const char name[] = "LD_PRELOAD=";

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, sizeof(name) - 1))
			return strstr(*envp, own_name);
	return false;
}

/* @program: a path, or a name to be looked for in PATH. */
static void report_obstacle(const char *program, char *const envp[])
{
	int saved_errno = errno;
	const char *why;

	if (!shim_report_target() || !program || shim_filter_in_child() ||
	    !shim_filter_allows())
		return;
	why = program_why_not(program);
	if (!why && !has_shim(envp) && program_exists(program))
		why = "it was started with an environment in which LD_PRELOAD "
		      "does not name the shim";
	if (why)
		shim_report_obstacle(program, why);
	errno = saved_errno;
}

/* execve() looks for nothing in PATH. */
static void report_path_obstacle(const char *path, char *const envp[])
{
	if (path && strchr(path, '/'))
		report_obstacle(path, envp);
}

static void report_file_obstacle(int fd, char *const envp[])
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	report_obstacle(path, envp);
}

/* Return: it was reported, and is to be taken back if the call fails. */
static bool report_before(void)
{
	int saved_errno = errno;
	bool ours;

	ensure_next();
	ours = shim_report_target() && !shim_filter_in_child() &&
	       shim_filter_allows() && shim_is_ours() && shim_counted();
	if (ours)
		shim_report_now("it called exec to become another program");
	errno = saved_errno;
	return ours;
}

static int report_after(bool was_reported, int rc)
{
	if (was_reported)
		shim_report_again();
	return rc;
}

KTASK_API int execve(const char *path, char *const argv[], char *const envp[])
{
	bool was_reported = report_before();

	report_path_obstacle(path, envp);
	return report_after(was_reported, next.execve(path, argv, envp));
}

KTASK_API int execv(const char *path, char *const argv[])
{
	bool was_reported = report_before();

	report_path_obstacle(path, environ);
	return report_after(was_reported, next.execv(path, argv));
}

KTASK_API int execvp(const char *file, char *const argv[])
{
	bool was_reported = report_before();

	report_obstacle(file, environ);
	return report_after(was_reported, next.execvp(file, argv));
}

KTASK_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	bool was_reported = report_before();

	report_obstacle(file, envp);
	return report_after(was_reported, next.execvpe(file, argv, envp));
}

KTASK_API int fexecve(int fd, char *const argv[], char *const envp[])
{
	bool was_reported = report_before();

	report_file_obstacle(fd, envp);
	return report_after(was_reported, next.fexecve(fd, argv, envp));
}

/* ---- arguments one by one ---- */

/* With the NULL at their end; @list begins behind @first. */
static size_t count_args(const char *first, va_list list)
{
	size_t nr = 1;

	for (; first; nr++)
		first = va_arg(list, const char *);
	return nr;
}

static void copy_args(char **args, const char *first, va_list list)
{
	for (; first; first = va_arg(list, const char *))
		*args++ = (char *)first;
	*args = NULL;
}

KTASK_API int execl(const char *path, const char *first, ...)
{
	va_list list, again;
	size_t nr;

	va_start(list, first);
	va_copy(again, list);
	nr = count_args(first, list);
	{
		char *args[nr];

		copy_args(args, first, again);
		va_end(again);
		va_end(list);
		return execv(path, args);
	}
}

KTASK_API int execlp(const char *file, const char *first, ...)
{
	va_list list, again;
	size_t nr;

	va_start(list, first);
	va_copy(again, list);
	nr = count_args(first, list);
	{
		char *args[nr];

		copy_args(args, first, again);
		va_end(again);
		va_end(list);
		return execvp(file, args);
	}
}

/* The environment stands behind the last argument. */
KTASK_API int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	va_list list, again;
	size_t nr;

	va_start(list, first);
	va_copy(again, list);
	nr = count_args(first, list);
	envp = va_arg(list, char *const *);
	{
		char *args[nr];

		copy_args(args, first, again);
		va_end(again);
		va_end(list);
		return execve(path, args, envp);
	}
}
