/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that sets its process title as servers do: over its arguments and
 * its environment, every byte of both.  Then it makes a large call.
 *
 *	wiped	the environment is gone
 *	moved	the environment was copied before, and a child that becomes this
 *		program again inherits it
 *	plain	no title: what that child does
 */
#include <sys/wait.h>

#include "probe.h"

/* A pointer to anywhere in the area becomes the name of a file. */
static const char title[] = "worker";

static void copy_environment(void)
{
	size_t nr = 0;
	char **copy;

	while (environ[nr])
		nr++;
	copy = calloc(nr + 1, sizeof(*copy));
	must_hold(copy != NULL, "calloc");
	for (size_t i = 0; i < nr; i++)
		copy[i] = strdup(environ[i]);
	environ = copy;
}

/* The kernel lays out arguments and environment one behind the other. */
static void set_title(char **argv, char **env)
{
	char *start = argv[0], *end = start;

	for (; *argv; argv++)
		end = *argv + strlen(*argv) + 1;
	for (; *env; env++)
		end = *env + strlen(*env) + 1;
	for (char *at = start; at < end; at++)
		*at = title[(size_t)(at - start) % sizeof(title)];
}

static void make_large_call(void)
{
	char *addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must_hold(addr != MAP_FAILED, "mmap");
}

static void run_child(const char *program)
{
	pid_t child = fork();
	int status;

	if (!child) {
		execl(program, program, "plain", (char *)NULL);
		_exit(127);
	}
	must_hold(waitpid(child, &status, 0) == child && !status, "child");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? strdup(argv[1]) : "plain";
	const char *program = strdup(argv[0]);
	char **env = environ;

	if (!strcmp(how, "moved"))
		copy_environment();
	if (strcmp(how, "plain"))
		set_title(argv, env);
	make_large_call();
	if (!strcmp(how, "moved"))
		run_child(program);
	puts("ok");
	return 0;
}
