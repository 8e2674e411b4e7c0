/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * execve and its family.  The shim writes the report of what it counted before the call,
 * because the new program counts from zero.  It does not if there is no such program, if
 * the file is not a program, or if there are too many arguments: then the process goes
 * on, and reports when it ends.
 * If nothing was counted, the line of the new program is enough.  If the shim will not be
 * loaded into the new program, that program's line is written here, before the call,
 * which may still fail.
 *
 * A signal handler and a child of vfork() may call these functions.  So nothing is
 * allocated here.  Such a child reports nothing, because the counts are those of its
 * parent.
 *
 * Behaves badly if a call fails for another reason, such as a broken program: then the
 * report comes too early, and what is counted later has a report of its own.  The same
 * where the kernel cannot tell what may be read (no process_vm_readv()): then any call may
 * succeed, and nothing is known of the new program.
 *
 * Not seen: system calls without the C library.  See also spawn.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"
#include "user/job_waits.h"
#include "util/program.h"
#include "util/scoped.h"

static struct {
	int (*execve)(const char *, char *const *, char *const *);
	int (*execv)(const char *, char *const *);
	int (*execvp)(const char *, char *const *);
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*fexecve)(int, char *const *, char *const *);
	int (*execveat)(int, const char *, char *const *, char *const *, int);
} next_calls;

/* The file name of the shim, as LD_PRELOAD has it. */
static const char *own_name = "";

static void find_own_name(void)
{
	Dl_info own;

	if (dladdr(&own_name, &own) && own.dli_fname)
		own_name = basename(own.dli_fname);
}

static void find_next(void)
{
	*(void **)&next_calls.execve = shim_next_function(NEXT_EXECVE);
	*(void **)&next_calls.execv = shim_next_function(NEXT_EXECV);
	*(void **)&next_calls.execvp = shim_next_function(NEXT_EXECVP);
	*(void **)&next_calls.execvpe = shim_next_function(NEXT_EXECVPE);
	*(void **)&next_calls.fexecve = shim_next_function(NEXT_FEXECVE);
	*(void **)&next_calls.execveat = shim_next_function(NEXT_EXECVEAT);
}

/* Not later: that allocates, and takes the loader's lock.  The name is for the report. */
static void __attribute__((constructor)) exec_init(void)
{
	find_next();
	if (secure_getenv("KTASK_RUN_REPORT"))
		find_own_name();
}

/* A constructor before ours calls. */
static void ensure_next(void)
{
	if (!next_calls.execve)
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

/* @envp can be read as far as it goes. */
const char *shim_exec_obstacle(const char *program, char *const envp[])
{
	const char *why;

	if (!shim_report_target() || !program || shim_filter_in_child() ||
	    !shim_filter_allows())
		return NULL;
	why = program_why_not(program);
	if (!why && !has_shim(envp) && program_exists(program))
		why = "it was started with an environment in which LD_PRELOAD "
		      "does not name the shim";
	return why;
}

/* What to undo if the call fails. */
struct attempt {
	bool reported;
	struct run_record *record;
};

/* The program that the process is about to execute. */
struct target {
	/* as for execvp(); NULL: not to be inspected */
	const char *program;
	const char *name; /* of the program, where that is not @program */
	/* as for execveat(); no path: look up @program in PATH */
	const char *path;
	int dir, flags;
	char *const *argv;
	int error; /* -errno: its path cannot be read, or is not to be */
};

/* The kernel's limits: of one argument, and of all together. */
#define ARG_PAGES 32
#define ARGS_LEAST_BYTES ((size_t)128 << 10)
#define ARGS_MOST_BYTES ((size_t)6 << 20)
#define PIECE_BYTES 256

static size_t args_limit(void)
{
	struct rlimit stack;
	size_t bytes = ARGS_MOST_BYTES;

	if (!getrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur / 4 < bytes)
		bytes = stack.rlim_cur / 4;
	return bytes > ARGS_LEAST_BYTES ? bytes : ARGS_LEAST_BYTES;
}

/* @bytes: plus its length, with its end.  Return: 0 or -errno.  No piece reaches into a
 * page that may not be there. */
static int add_argument(const char *text, size_t *bytes)
{
	size_t most = ARG_PAGES * (size_t)sysconf(_SC_PAGESIZE), nr = 0;
	char piece[PIECE_BYTES];
	const char *end = NULL;

	while (!end && nr < most) {
		size_t len = PIECE_BYTES - ((uintptr_t)text + nr) % PIECE_BYTES;
		int error = shim_copy_in(piece, text + nr, len);

		if (error)
			return error;
		end = memchr(piece, '\0', len);
		nr += end ? (size_t)(end - piece) + 1 : len;
	}
	*bytes += nr;
	return end && nr <= most ? 0 : -E2BIG;
}

/* @left: less what they take.  Return: 0 or -errno. */
static int take_arguments(char *const *list, size_t *left)
{
	const char *text = NULL;

	do {
		size_t bytes = sizeof(text);
		int error;

		if (!list)
			return 0;
		error = shim_copy_in(&text, list++, sizeof(text));
		if (!error && text)
			error = add_argument(text, &bytes);
		if (error)
			return error;
		if (bytes > *left)
			return -E2BIG;
		*left -= bytes;
	} while (text);
	return 0;
}

/* Return: 0: they can be read, and are not too many; -errno. */
static int check_arguments(const struct target *target, char *const envp[])
{
	size_t left = args_limit();
	int error = target->error;

	if (!error)
		error = take_arguments(target->argv, &left);
	return error ? error : take_arguments(envp, &left);
}

static bool is_refused_by_kernel(int error)
{
	return error == -EFAULT || error == -E2BIG;
}

static bool may_become(const struct target *target)
{
	return target->path
		       ? program_may_start_at(target->dir, target->path,
					      target->flags)
		       : target->program && program_may_start(target->program);
}

/* May the arguments be inspected, as far as they can be read? */
static bool may_inspect(void)
{
	return shim_tells() && !shim_filter_in_child() && shim_filter_allows();
}

/* Return: 0 or -errno.  The prototypes promise the compiler that it is not NULL. */
static int check_path(const char *volatile path)
{
	size_t bytes = 0;

	return may_inspect() && path ? add_argument(path, &bytes) : -EFAULT;
}

static bool report_before(const char *then)
{
	shim_ahead_tell_now();
	if (!shim_counted())
		return false;
	shim_report_now(then);
	return true;
}

static struct attempt begin_exec(const struct target *target,
				 char *const envp[])
{
	keep_errno();
	struct attempt attempt = { 0 };
	const char *why, *name;
	int error;

	/* exec is no point of cancellation.  Files are read here. */
	block_cancellation();
	ensure_next();
	shim_raise_working();
	if (!may_inspect())
		return attempt;
	error = check_arguments(target, envp);
	if (error) {
		attempt.reported = !is_refused_by_kernel(error) &&
				   shim_is_ours() &&
				   report_before("it called exec of a program "
						 "that could not be read");
		return attempt;
	}
	attempt.reported =
		shim_is_ours() && may_become(target) &&
		report_before("it called exec to become another program");
	why = shim_exec_obstacle(target->program, envp);
	if (why && !may_become(target))
		why = NULL;
	name = target->name ? target->name : target->program;
	if (why)
		shim_report_obstacle(name, getpid(), why);
	attempt.record = shim_record_exec(name ? name : "", envp, why);
	return attempt;
}

/* execve() looks for nothing in PATH. */
static struct attempt begin_exec_path(const char *path, char *const argv[],
				      char *const envp[])
{
	int error = check_path(path);

	if (error)
		return begin_exec(&(struct target){ .error = error }, envp);
	return begin_exec(
		&(struct target){
			.program = strchr(path, '/') ? path : NULL,
			.name = path,
			.path = path,
			.dir = AT_FDCWD,
			.argv = argv,
		},
		envp);
}

static struct attempt begin_exec_name(const char *name, char *const argv[],
				      char *const envp[])
{
	return begin_exec(&(struct target){ .program = name, .argv = argv },
			  envp);
}

static int end_exec(struct attempt attempt, int rc)
{
	keep_errno();

	job_keep_raised(false);
	if (attempt.reported)
		shim_report_again();
	shim_record_exec_failed(attempt.record);
	return rc;
}

KTASK_API int execve(const char *path, char *const argv[], char *const envp[])
{
	struct attempt attempt = begin_exec_path(path, argv, envp);

	return end_exec(attempt, next_calls.execve(path, argv, envp));
}

KTASK_API int execv(const char *path, char *const argv[])
{
	struct attempt attempt = begin_exec_path(path, argv, environ);

	return end_exec(attempt, next_calls.execv(path, argv));
}

KTASK_API int execvp(const char *file, char *const argv[])
{
	struct attempt attempt = begin_exec_name(file, argv, environ);

	return end_exec(attempt, next_calls.execvp(file, argv));
}

KTASK_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct attempt attempt = begin_exec_name(file, argv, envp);

	return end_exec(attempt, next_calls.execvpe(file, argv, envp));
}

/* The descriptor's own name is a number: tell the file's. */
static struct attempt begin_exec_of(int fd, char *const argv[],
				    char *const envp[])
{
	int saved_errno = errno;
	char path[32], name[256];
	ssize_t len = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (shim_report_target() && shim_filter_allows())
		len = readlink(path, name, sizeof(name) - 1);
	name[len > 0 ? len : 0] = '\0';
	errno = saved_errno;
	return begin_exec(
		&(struct target){
			.program = path,
			.name = len > 0 ? name : NULL,
			.path = "",
			.dir = fd,
			.flags = AT_EMPTY_PATH,
			.argv = argv,
		},
		envp);
}

KTASK_API int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct attempt attempt = begin_exec_of(fd, argv, envp);

	return end_exec(attempt, next_calls.fexecve(fd, argv, envp));
}

/* @path is looked for below the directory @fd, unless it is an absolute one. */
static struct attempt begin_exec_below(int fd, const char *path,
				       char *const argv[], char *const envp[])
{
	char whole[PATH_MAX];

	if (path[0] == '/' || fd == AT_FDCWD)
		snprintf(whole, sizeof(whole), "%s%s",
			 path[0] == '/' ? "" : "./", path);
	else
		snprintf(whole, sizeof(whole), "/proc/self/fd/%d/%s", fd, path);
	return begin_exec(
		&(struct target){
			.program = whole,
			.name = path,
			.path = path,
			.dir = fd,
			.argv = argv,
		},
		envp);
}

/* C libraries before glibc 2.34 lack this function, so no program there calls it. */
KTASK_API int execveat(int fd, const char *path, char *const argv[],
		       char *const envp[], int flags)
{
	int error = check_path(path);
	struct attempt attempt;

	if (!error && path[0])
		attempt = begin_exec_below(fd, path, argv, envp);
	else if (!error && (flags & AT_EMPTY_PATH))
		attempt = begin_exec_of(fd, argv, envp);
	else
		attempt = begin_exec(&(struct target){ .error = error }, envp);
	return end_exec(attempt,
			next_calls.execveat(fd, path, argv, envp, flags));
}

/* ---- arguments one by one ---- */

/* With the NULL at their end; @list begins behind @first. */
static size_t count_args(const char *first, va_list *list)
{
	size_t nr = 1;

	for (; first; nr++)
		first = va_arg(*list, const char *);
	return nr;
}

static void copy_args(char **args, const char *first, va_list list)
{
	for (; first; first = va_arg(list, const char *))
		*args++ = (char *)first;
	*args = NULL;
}

/* @with_env: the environment stands behind the last argument */
static int exec_list(int (*exec)(const char *, char *const *, char *const *),
		     const char *name, const char *first, va_list *list,
		     bool with_env)
{
	char *const *envp = environ;
	va_list again;
	size_t nr;

	va_copy(again, *list);
	nr = count_args(first, list);
	if (with_env)
		envp = va_arg(*list, char *const *);
	{
		char *args[nr];

		copy_args(args, first, again);
		va_end(again);
		return exec(name, args, envp);
	}
}

#define EXEC_WITH_LIST(name, exec, with_env)                            \
	KTASK_API int name(const char *program, const char *first, ...) \
	{                                                               \
		va_list list;                                           \
		int rc;                                                 \
                                                                        \
		va_start(list, first);                                  \
		rc = exec_list(exec, program, first, &list, with_env);  \
		va_end(list);                                           \
		return rc;                                              \
	}

EXEC_WITH_LIST(execl, execve, false)
EXEC_WITH_LIST(execlp, execvpe, false)
EXEC_WITH_LIST(execle, execve, true)
