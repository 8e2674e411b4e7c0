/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ktask command: finds the subcommand and hands over.  A new subcommand
 * is one file, one line in cmd.h and one line in the table below.
 *
 * Does not own options (each subcommand parses its own) nor messages (message.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "cli/ui/interrupt.h"
#include "cli/cmd/cmd.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"

static const struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
} command_table[] = {
	{ "run", "start a program with its big memory calls multithreaded",
	  cmd_run },
	{ "populate", "make all pages of a file or of new memory present",
	  cmd_populate },
	{ "warm", "read files into the page cache", cmd_warm },
	{ "bench", "measure an operation with 1, 2, 3... threads", cmd_bench },
	{ "tune",
	  "find the best number of threads of an operation, and keep it",
	  cmd_tune },
	{ "stat", "run a command, and tell what its jobs did and cost",
	  cmd_stat },
	{ "top", "show the jobs that run on this machine now", cmd_top },
	{ "topo", "show CPUs, nodes, caches and what limits a job here",
	  cmd_topo },
};

#define NR_COMMANDS (sizeof(command_table) / sizeof(command_table[0]))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(command_table[i].name, name))
			return &command_table[i];
	return NULL;
}

static void print_help(void)
{
	printf("usage: ktask COMMAND [options]\n\n"
	       "Multithread one big job: populate, fill, lock or free memory\n"
	       "with every CPU that has nothing better to do.\n\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-10s %s\n", command_table[i].name,
		       command_table[i].summary);
	printf("  %-10s %s\n", "help", "explain a command");
	printf("\n'ktask help COMMAND' lists its options, 'man ktask' says all, "
	       "'ktask --version'\nprints the version.\n");
}

static bool asks_for_help(const char *option)
{
	return !strcmp(option, "--help") || !strcmp(option, "-h");
}

static int print_help_of(int argc, char **argv)
{
	char option[] = "--help";
	char *help_argv[] = { NULL, option, NULL };
	const struct command *command;

	if (argc < 2 || !strcmp(argv[1], "help") || asks_for_help(argv[1])) {
		print_help();
		return 0;
	}
	command = find_command(argv[1]);
	if (!command)
		return say_usage("help", "there is no command '%s'", argv[1]);
	help_argv[0] = argv[1];
	return command->run(2, help_argv);
}

static int dispatch_command(int argc, char **argv)
{
	const char *name = argv[1];
	const struct command *command;

	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("ktask %s\n", ktask_version());
		return 0;
	}
	if (asks_for_help(name)) {
		print_help();
		return 0;
	}
	if (!strcmp(name, "help"))
		return print_help_of(argc - 1, argv + 1);
	command = find_command(name);
	if (command)
		return command->run(argc - 1, argv + 1);
	if (name[0] == '-')
		return say_usage(NULL, "unknown option '%s'", name);
	return say_usage(NULL, "there is no command '%s'", name);
}

/*
 * If a standard stream is closed, a file that is opened later could take its descriptor
 * and receive the output.  So open a placeholder that can be neither read nor written;
 * programs that are started find it closed.
 */
static void keep_streams_apart(void)
{
	int fd;

	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	int status;

	keep_streams_apart();
	/* The name of the file that the user started: launch/launcher.c. */
	prctl(PR_SET_NAME, "ktask");
	/* Characters as the user's, numbers always with a decimal point. */
	setlocale(LC_CTYPE, "");
	children_heed();
	if (argc < 2)
		return say_usage(NULL, "a command is missing");
	status = dispatch_command(argc, argv);
	if (status == OPTIONS_HELPED)
		status = 0;
	if (!status && (fflush(stdout) || ferror(stdout)))
		return say_error(errno, "writing the output");
	return status;
}
