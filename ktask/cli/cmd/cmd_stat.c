/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask stat: run a command, and tell afterwards what its jobs did and cost.
 *
 * The library appends a line for each job to a file that KTASK_STAT names.
 * That file is in no directory: it is memory that this process holds open.  Its name is
 * below /proc, and it goes with this process, however that ends.
 *
 * Not seen: jobs of processes of other users, with another /proc, or that outlive the
 * command.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cli/ui/interrupt.h"
#include "cmd.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "cli/stat/stat.h"
#include "cli/ui/target.h"
#include "util/clock.h"
#include "util/file.h"

static const char usage_text[] =
	"usage: ktask stat [options] [--] COMMAND [ARGUMENT...]\n\n"
	"Run COMMAND.  When it has ended, report on standard error what its\n"
	"jobs, and those of its children, did and cost, by operation.  The\n"
	"exit status is COMMAND's.\n\n"
	"  -o, --output FILE write the report to FILE instead; '-' is standard\n"
	"                    output, after what COMMAND printed there\n"
	"  --json[=FILE]     report one JSON object instead of the table; with\n"
	"                    =FILE write the object to FILE, and the table too;\n"
	"                    --json=- is --json --output -\n"
	"  --help            print this\n\n"
	"To pipe the object into another program:\n"
	"  ktask stat --json -o - COMMAND | jq .jobs    if COMMAND prints nothing\n"
	"  ktask stat --json -o /dev/fd/3 COMMAND 3>&1 >/dev/null | jq .jobs\n";

struct settings {
	struct option_file json;
	const char *output; /* NULL: standard error; "-": standard output */
};

/* Set only while it is a child: another process may get the id afterwards. */
static volatile pid_t child_pid;

static void pass_on(int signal)
{
	if (child_pid > 0)
		kill(child_pid, signal);
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "json", optional_argument, option_file, &set->json },
		{ "output", required_argument, option_path, &set->output },
		{ 0 },
	};
	int status =
		options_parse("stat", usage_text, specs, false, argc, argv);

	if (!status && optind == argc)
		return say_usage("stat", "a command is missing");
	/* Only the object, as --json -o - has it. */
	if (set->json.path && !strcmp(set->json.path, "-")) {
		if (set->output && strcmp(set->output, "-"))
			return say_usage("stat",
					 "--json=- and --output differ");
		set->json.path = NULL;
		set->output = "-";
	}
	return status;
}

/* Returns a descriptor, or -errno. */
static int make_file(void)
{
	const ssize_t len = sizeof(STAT_HEADER) - 1;
	int fd;

	if (!file_may_have((uint64_t)len + STAT_LINE))
		return -EFBIG;
	fd = memfd_create("ktask-stat", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fchmod(fd, 0600) && write(fd, STAT_HEADER, len) == len)
		return fd;
	close(fd);
	return -EIO;
}

/* Processes of the command open the file by a name, which needs /proc.  Return: 0; 1 after
 * a message. */
static int tell_name(int fd)
{
	char name[64];
	int other;

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), fd);
	other = open(name, O_RDWR | O_CLOEXEC);
	if (other < 0)
		return say_error(
			errno,
			"stat: opening the file for the accounts of jobs, %s",
			name);
	close(other);
	return setenv("KTASK_STAT", name, 1)
		       ? say_error(errno, "stat: setting the environment")
		       : 0;
}

/*
 * An interrupt from the terminal is for the command, which may ignore it.  A signal that
 * asks only this process to end is passed on.  Ignored signals stay ignored.
 */
static const int passed_signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

#define NR_SIGNALS (sizeof(passed_signals) / sizeof(passed_signals[0]))

/* As they were before. */
static struct sigaction former_actions[NR_SIGNALS];

static void take_signals(void)
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	for (unsigned i = 0; i < NR_SIGNALS; i++) {
		action.sa_handler = i < 2 ? SIG_IGN : pass_on;
		sigaction(passed_signals[i], NULL, &former_actions[i]);
		if (former_actions[i].sa_handler != SIG_IGN)
			sigaction(passed_signals[i], &action, NULL);
	}
}

static void return_signals(void)
{
	for (unsigned i = 0; i < NR_SIGNALS; i++)
		sigaction(passed_signals[i], &former_actions[i], NULL);
}

/* In the child: nothing of ours but the variable is left to the command. */
static void exec_command(char **argv, const sigset_t *mask, int report)
{
	int error;

	return_signals();
	children_as_before();
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		error = 0;
	_exit(EXIT_CANNOT_RUN);
}

/* A signal that comes meanwhile waits until there is somebody to have it. */
static pid_t make_child(char **argv, int report)
{
	sigset_t all, mask;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	take_signals();
	pid = fork();
	if (!pid)
		exec_command(argv, &mask, report);
	child_pid = pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return pid;
}

/* Wait for its end; from then on no signal is passed on to it. */
static int await_child(void)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)child_pid, &info, WEXITED | WNOWAIT))
		if (errno != EINTR)
			return errno;
	return 0;
}

/* A child that has ended keeps its process id until it is waited for. */
static int collect_child(int *status, struct rusage *used)
{
	pid_t pid = child_pid;
	int error = await_child();

	child_pid = 0;
	if (!error && wait4(pid, status, 0, used) < 0)
		error = errno;
	return error;
}

/* Return: 0, or the errno of what could not be done. */
static int start_command(char **argv)
{
	int ends[2], error = 0, status;
	struct rusage used;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	pid = make_child(argv, ends[1]);
	if (pid < 0)
		error = errno;
	close(ends[1]);
	/* Closed by exec, without a word, when that succeeds. */
	if (pid > 0 && read(ends[0], &error, sizeof(error)) > 0)
		collect_child(&status, &used);
	close(ends[0]);
	return error;
}

/* Return: 0, or an exit status after a message. */
static int run_command(struct stat_command *command)
{
	double begin = clock_seconds(CLOCK_MONOTONIC);
	int error = start_command(command->argv);
	struct rusage used;

	if (error) {
		say_error(error, "stat: starting %s", command->argv[0]);
		return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	error = collect_child(&command->status, &used);
	/* From here on they are meant for this process. */
	return_signals();
	if (error)
		return say_error(error, "stat: waiting for %s",
				 command->argv[0]);
	command->wall_seconds = clock_seconds(CLOCK_MONOTONIC) - begin;
	command->user_seconds = timeval_seconds(used.ru_utime);
	command->system_seconds = timeval_seconds(used.ru_stime);
	return 0;
}

/* Without --output the report goes to standard error: a program may read the command's
 * output. */
static FILE *open_report(const char *path)
{
	if (!path)
		return stderr;
	return strcmp(path, "-") ? fopen(path, "we") : stdout;
}

/* Return: 0 or an errno; @error: of what was written before */
static int close_report(FILE *out, int error)
{
	bool is_ours = out != stderr && out != stdout;

	if ((is_ours ? fclose(out) : fflush(out)) && !error)
		error = errno;
	return error;
}

static void write_report(const struct settings *set, FILE *out,
			 const struct stat_command *command,
			 const struct stat_jobs *jobs)
{
	json_t *object;

	if (!set->json.given || set->json.path) {
		stat_print(out, command, jobs);
		return;
	}
	object = stat_json(command, jobs);
	json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputc('\n', out);
	json_decref(object);
}

static int put_report(const struct settings *set,
		      const struct stat_command *command,
		      const struct stat_jobs *jobs)
{
	FILE *out = open_report(set->output);
	int error = out ? 0 : errno;

	if (out) {
		/* If a full buffer cannot be written, only errno says why. */
		errno = 0;
		write_report(set, out, command, jobs);
		if (ferror(out))
			error = errno ? errno : EIO;
		error = close_report(out, error);
	}
	return error ? say_error(error, "stat: writing %s",
				 set->output ? set->output : "the report")
		     : 0;
}

/* Return: 0; 1 after a message. */
static int report_jobs(const struct settings *set,
		       const struct stat_command *command, int fd)
{
	struct stat_jobs jobs;
	int error = stat_read(fd, &jobs), status;

	if (error)
		return say_error(-error, "stat: reading the accounts of jobs");
	status = put_report(set, command, &jobs);
	if (set->json.path)
		status |= json_write(stat_json(command, &jobs), set->json.path);
	stat_free(&jobs);
	return status;
}

/* Before the command runs, which may take a long time. */
static int verify_targets(const struct settings *set)
{
	const char *path = set->output;
	int error = path && strcmp(path, "-") ? target_verify(path) : 0;

	if (error)
		return say_error(-error, "stat: writing %s", path);
	return bench_verify_targets(set->json.path, NULL);
}

/* The command's own, as a shell has it. */
static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

int cmd_stat(int argc, char **argv)
{
	struct settings set = { 0 };
	struct stat_command command;
	int fd;
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	status = verify_targets(&set);
	if (status)
		return status;
	fd = make_file();
	if (fd < 0)
		return say_error(
			-fd,
			"stat: creating the file for the accounts of jobs");
	status = tell_name(fd);
	if (status)
		return status;
	command.argv = argv + optind;
	status = run_command(&command);
	if (status)
		return status;
	status = report_jobs(&set, &command, fd);
	/* A command that failed is more than a report that is missing. */
	return command.status ? exit_status(command.status) : status;
}
