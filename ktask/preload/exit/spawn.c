/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * posix_spawn(): if the shim will not be loaded into the child, this writes the child's
 * line once the child exists.  And fork(), because the handlers of pthread_atfork()
 * cannot tell whether fork() made a child.
 *
 * Not seen: children that the C library makes itself, for system() and popen().
 */
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"
#include "util/scoped.h"

typedef int (*spawn_func)(pid_t *, const char *,
			  const posix_spawn_file_actions_t *,
			  const posix_spawnattr_t *, char *const *,
			  char *const *);

static spawn_func next_spawn, next_spawnp;
static pid_t (*next_fork)(void);

static void find_next(void)
{
	next_spawnp = (spawn_func)shim_next_function(NEXT_POSIX_SPAWNP);
	next_spawn = (spawn_func)shim_next_function(NEXT_POSIX_SPAWN);
	next_fork = (pid_t(*)(void))shim_next_function(NEXT_FORK);
}

/* Not later: that allocates, and takes the loader's lock. */
static void __attribute__((constructor)) spawn_init(void)
{
	find_next();
}

static void report_child(pid_t pid, const char *program, char *const envp[])
{
	keep_errno();
	const char *why;

	block_cancellation();
	why = shim_exec_obstacle(program, envp);
	if (why)
		shim_report_obstacle(program, pid, why);
}

static int spawn_child(const spawn_func *next, pid_t *pid, const char *program,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[],
		       char *const envp[])
{
	struct run_record *record;
	pid_t child = 0;
	int error;

	/* A constructor before ours calls. */
	if (!*next)
		find_next();
	record = shim_record_spawn();
	error = (*next)(&child, program, actions, attr, argv, envp);
	shim_record_spawned(record, error ? 0 : child);
	if (error)
		return error;
	if (pid)
		*pid = child;
	/* posix_spawn() looks for nothing in PATH. */
	if (next == &next_spawnp || strchr(program, '/'))
		report_child(child, program, envp);
	return 0;
}

KTASK_API int posix_spawn(pid_t *pid, const char *path,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[],
			  char *const envp[])
{
	return spawn_child(&next_spawn, pid, path, actions, attr, argv, envp);
}

KTASK_API int posix_spawnp(pid_t *pid, const char *file,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[],
			   char *const envp[])
{
	return spawn_child(&next_spawnp, pid, file, actions, attr, argv, envp);
}

KTASK_API pid_t fork(void)
{
	pid_t child;

	/* A constructor before ours calls. */
	if (!next_fork)
		find_next();
	child = next_fork();
	if (child < 0)
		shim_record_fork_failed();
	return child;
}
