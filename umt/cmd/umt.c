/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The umt command: finds the subcommand and hands over.  A new one is a file,
 * a line in umt_cmd.h and a line in the table below.
 */
#include <errno.h>
#include <string.h>

#include <umt.h>

#include "common/option.h"
#include "umt_cmd.h"
#include "report_error.h"

static const struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
} command_table[] = {
	{ "info", "say how threads are monitored here, and why not better",
	  cmd_info },
	{ "stat", "run a program and tell what it lost by blocking", cmd_stat },
	{ "top", "run a program and show its threads meanwhile", cmd_top },
	{ "record", "run a program and write a trace for Perfetto or Chrome",
	  cmd_record },
};

#define NR_COMMANDS (sizeof(command_table) / sizeof(command_table[0]))

static void print_help(void)
{
	size_t i;

	printf("usage: umt COMMAND [options]\n\n"
	       "Know which threads are blocked in the kernel, and what that "
	       "costs.\n\n");
	for (i = 0; i < NR_COMMANDS; i++)
		printf("  %-8s %s\n", command_table[i].name,
		       command_table[i].summary);
	printf("\n'umt COMMAND --help' lists its options, 'man umt' says all, "
	       "'umt --version'\nprints the version.\n");
}

static int dispatch_command(int argc, char **argv)
{
	size_t i;

	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("umt %s\n", umt_version());
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		print_help();
		return 0;
	}
	for (i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(argv[1], command_table[i].name))
			return command_table[i].run(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return say_usage("unknown option '%s'", argv[1]);
	return say_usage("there is no command '%s'", argv[1]);
}

int next_option(int argc, char **argv, const char *letters,
		const struct option *options, const char *usage, int *status)
{
	int option;

	opterr = 0;
	option = getopt_long(argc, argv, letters, options, NULL);
	if (option == -1)
		return 0;
	if (option == '?' || option == ':') {
		*status = say_option(argv, option);
		return 0;
	}
	option = option_letter(option);
	if (option != 'h')
		return option;
	fputs(usage, stdout);
	*status = 0;
	return 0;
}

void json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2)
		return say_usage("a command is missing");
	status = dispatch_command(argc, argv);
	if (!status && (fflush(stdout) || ferror(stdout)))
		return say_error(errno, "writing the output");
	return status;
}
