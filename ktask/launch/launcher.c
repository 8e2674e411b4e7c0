/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program that users start as `ktask`.  It starts a command under the shim itself
 * where `ktask run` has no options and nothing else is to be decided, and becomes
 * ktask-commands (cli/) in all other cases.
 *
 * It has no C library: on a virtual machine the start of any C library takes 0.3 to 0.7
 * ms, because it asks the CPU for its features and each CPUID instruction traps.  This
 * start takes 0.1 ms, of which 0.07 are the system call execve().  So nothing here may
 * call a function of libc, and the compiler may not either.
 *
 * It has no writable data, which would be two more mappings for the kernel to make and a
 * page of each to touch.  Everything is on the stack, close together, so that few pages of
 * it are touched.
 *
 * Does not know what options and the environment mean.  If there are any for the run,
 * ktask-commands reads them.  It also prints error messages.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/launcher_note.h"
#include "util/raw_syscalls.h"

#define SHIM "libktask-preload.so"
#define COMMANDS "ktask-commands"
#define PRELOAD "LD_PRELOAD="
/* Longer paths are left to ktask-commands: each page of stack costs a page fault. */
#define SHORT_PATH 512
/* As execvp() searches where there is no PATH. */
#define USUAL_PATH "/bin:/usr/bin"

struct launch {
	long argc;
	char **argv;
	char **envp;
	/* LD_PRELOAD=PATH */
	char preload[sizeof(PRELOAD) + SHORT_PATH];
};

_Noreturn void launcher_main(long *stack);

#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n\t"
	"xor %ebp, %ebp\n\t"
	"mov %rsp, %rdi\n\t"
	"and $-16, %rsp\n\t"
	"call launcher_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
	"_start:\n\t"
	"mov x29, xzr\n\t"
	"mov x0, sp\n\t"
	"bl launcher_main\n");
#endif

LAUNCHER_NOTE

/* ---- text ---- */

static size_t text_length(const char *text)
{
	size_t len = 0;

	while (text[len])
		len++;
	return len;
}

static bool text_begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

static bool text_equals(const char *text, const char *other)
{
	return text_begins(text, other) && !text[text_length(other)];
}

/* Return: behind the copy, which has no end of its own. */
static char *copy_text(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i];
	return to + len;
}

/* Return: false if it is too long. */
static bool join_text(char *to, size_t size, const char *first,
		      size_t first_len, const char *second)
{
	size_t second_len = text_length(second);

	if (first_len >= size || second_len >= size - first_len)
		return false;
	*copy_text(copy_text(to, first, first_len), second, second_len) = '\0';
	return true;
}

/* ---- the environment ---- */

static const char *find_variable(char *const *envp, const char *name)
{
	for (; *envp; envp++)
		if (text_begins(*envp, name) &&
		    (*envp)[text_length(name)] == '=')
			return *envp + text_length(name) + 1;
	return NULL;
}

/*
 * The path by which the kernel has started the program; NULL: not known.  If this program is
 * the interpreter of a script (#!, binfmt_misc), it is the script's: what belongs to this
 * program is then found beside the script or in the library directory.
 */
static const char *find_own_name(char *const *envp)
{
	const unsigned long *entry;

	while (*envp)
		envp++;
	for (entry = (const unsigned long *)(envp + 1); *entry != AT_NULL;
	     entry += 2)
		if (*entry == AT_EXECFN)
			return (const char *)entry[1];
	return NULL;
}

/*
 * Does the name lead to this program whatever the working directory and the descriptors
 * are, and does the program lie in the directory that the name says?  Below /proc a name
 * means something else to each process, or nothing once a process has ended.  A second slash
 * or a dot at its beginning may hide that.
 */
static bool is_own_path(const char *name)
{
	char first;
	const long args[6] = { AT_FDCWD, (long)name, (long)&first, 1 };

	return name && *name == '/' && name[1] != '/' && name[1] != '.' &&
	       !text_begins(name, "/dev/fd/") && !text_begins(name, "/proc/") &&
	       raw_syscall(SYS_readlinkat, args) == -EINVAL;
}

/*
 * The directory that this program lies in, with a slash at its end.  /proc is asked only
 * if the name does not say it: that makes the kernel set up what /proc has for a new
 * process, which takes a tenth of what this program takes.
 * Return: its length; 0: not found; @size: it does not fit
 */
static size_t find_directory(const struct launch *launch, char *directory,
			     size_t size)
{
	const char *name = find_own_name(launch->envp);
	const long args[6] = { AT_FDCWD, (long)"/proc/self/exe",
			       (long)directory, (long)size - 1 };
	long len = is_own_path(name) ? 0 : raw_syscall(SYS_readlinkat, args);

	/* Also if /proc is not mounted.  Does not follow a symbolic link. */
	if (len <= 0 && name)
		len = join_text(directory, size, name, 0, name)
			      ? (long)text_length(name)
			      : (long)size - 1;
	if (len == (long)size - 1)
		return size;
	while (len > 0 && directory[len - 1] != '/')
		len--;
	return len > 0 ? (size_t)len : 0;
}

/* ---- running a command ---- */

/* Without options, in an environment that says nothing of the run. */
static bool is_plain_run(const struct launch *launch)
{
	static const char variables[][20] = { "LD_PRELOAD", "KTASK_RUN_OPS",
					      "KTASK_RUN_REPORT" };

	if (launch->argc < 3 || !text_equals(launch->argv[1], "run"))
		return false;
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (find_variable(launch->envp, variables[i]))
			return false;
	/* A system call filter must be tried out first. */
	return raw_call3(SYS_prctl, PR_GET_SECCOMP, 0, 0) <= 0;
}

/* COMMAND and its arguments; NULL: there are options, or no command. */
static char **find_command(const struct launch *launch)
{
	char **command = launch->argv + 2;

	if (text_equals(*command, "--"))
		command++;
	else if (**command == '-')
		return NULL;
	return *command && **command ? command : NULL;
}

static bool is_readable(const char *path)
{
	const long args[6] = { AT_FDCWD, (long)path, R_OK };

	return !raw_syscall(SYS_faccessat, args);
}

/* The loader would split it, or look for it elsewhere. */
static bool is_path_usable(const char *path)
{
	if (*path != '/')
		return false;
	while (*path && *path != ':' && *path != ' ')
		path++;
	return !*path;
}

/* Sets launch->preload. */
static bool find_shim(struct launch *launch)
{
	static const char search_path[][40] = { SHIM, "../lib/ktask/" SHIM };
	char *path = launch->preload + sizeof(PRELOAD) - 1;
	size_t len = find_directory(launch, path, SHORT_PATH);

	if (len >= SHORT_PATH)
		return false;
	copy_text(launch->preload, PRELOAD, sizeof(PRELOAD) - 1);
	for (size_t i = 0; i < sizeof(search_path) / sizeof(*search_path); i++)
		if (join_text(path, SHORT_PATH, path, len, search_path[i]) &&
		    is_readable(path))
			return is_path_usable(path);
#ifdef KTASK_LIBDIR
	return join_text(path, SHORT_PATH, KTASK_LIBDIR "/",
			 sizeof(KTASK_LIBDIR "/") - 1, SHIM) &&
	       is_readable(path) && is_path_usable(path);
#else
	return false;
#endif
}

static long start_program(const char *path, char **argv, char **envp)
{
	return raw_call3(SYS_execve, (long)path, (long)argv, (long)envp);
}

/* May the next directory of PATH have it? */
static bool is_elsewhere(long error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES ||
	       error == -ESTALE || error == -ENODEV || error == -ETIMEDOUT;
}

/*
 * Returns only if it cannot be started.  The name is at the end of the buffer, close to
 * what the stack has already, and each directory is put before it.
 */
static void start_by_path(char **command, char **envp)
{
	const char *directory = find_variable(envp, "PATH");
	size_t name_size = text_length(*command) + 1;
	char path[SHORT_PATH], *name;

	if (name_size >= sizeof(path))
		return;
	name = path + sizeof(path) - name_size;
	copy_text(name, *command, name_size);
	for (directory = directory ? directory : USUAL_PATH;; directory++) {
		size_t len = 0, most = (size_t)(name - path);
		char *begin = name;

		while (directory[len] && directory[len] != ':')
			len++;
		if (len >= most)
			return;
		if (len) {
			*--begin = '/';
			begin -= len;
			copy_text(begin, directory, len);
		}
		if (!is_elsewhere(start_program(begin, command, envp)))
			return;
		directory += len;
		if (!*directory)
			return;
	}
}

static bool has_slash(const char *text)
{
	while (*text && *text != '/')
		text++;
	return *text;
}

/* Returns only if it cannot be started. */
static void run_command(struct launch *launch, char **command)
{
	size_t nr = 0;

	while (launch->envp[nr])
		nr++;
	{
		char *envp[nr + 3];

		for (size_t i = 0; i < nr; i++)
			envp[i] = launch->envp[i];
		/* The kernel only reads it. */
		envp[nr] = (char *)(uintptr_t) "KTASK_RUN_OPS=ahead";
		envp[nr + 1] = launch->preload;
		envp[nr + 2] = NULL;
		if (has_slash(*command))
			start_program(*command, command, envp);
		else
			start_by_path(command, envp);
	}
}

/* ---- all else ---- */

/* Not inlined: a plain run does without this frame. */
__attribute__((noinline)) static void
start_commands(const struct launch *launch)
{
	static const char search_path[][40] = { COMMANDS,
						"../lib/ktask/" COMMANDS };
	char path[PATH_MAX];
	size_t len = find_directory(launch, path, sizeof(path));

	for (size_t i = 0; i < sizeof(search_path) / sizeof(*search_path); i++)
		if (join_text(path, sizeof(path), path, len, search_path[i]))
			start_program(path, launch->argv, launch->envp);
#ifdef KTASK_LIBDIR
	start_program(KTASK_LIBDIR "/" COMMANDS, launch->argv, launch->envp);
#endif
}

__attribute__((noinline)) static void say_failure(void)
{
	static const char missing[] =
		"ktask: starting " COMMANDS ": neither beside this program "
		"nor in the library directory is one that can be started\n";
	/* This program may have been started by a link that lies elsewhere. */
	static const char unknown[] =
		"ktask: starting " COMMANDS ": reading /proc/self/exe failed, "
		"and it is not beside the path of this program, nor in the "
		"library directory\n";
	char byte;
	const long args[6] = { AT_FDCWD, (long)"/proc/self/exe", (long)&byte,
			       1 };

	if (raw_syscall(SYS_readlinkat, args) > 0)
		raw_call3(SYS_write, STDERR_FILENO, (long)missing,
			  sizeof(missing) - 1);
	else
		raw_call3(SYS_write, STDERR_FILENO, (long)unknown,
			  sizeof(unknown) - 1);
}

_Noreturn void launcher_main(long *stack)
{
	struct launch launch;
	char **command;

	launch.argc = *stack;
	launch.argv = (char **)stack + 1;
	launch.envp = launch.argv + launch.argc + 1;
	command = is_plain_run(&launch) ? find_command(&launch) : NULL;
	if (command && find_shim(&launch))
		run_command(&launch, command);
	start_commands(&launch);
	say_failure();
	for (;;)
		raw_call3(SYS_exit_group, 1, 0, 0);
}
