/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * umt top: runs a command and shows at each interval what its threads did in it: shares of
 * running, ready and blocked, the main reason for blocking, and how long each core idled
 * while a thread was blocked in work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/option.h"
#include "umt_cmd.h"
#include "report_error.h"
#include "watch.h"

#define SHOWN_MAX 20

static const char usage_text[] =
	"usage: umt top [options] [--] COMMAND [ARGUMENT...]\n"
	"       umt top [options] --pid PID\n\n"
	"Run COMMAND, or watch a process that runs, and show its busiest "
	"and\n"
	"most blocked threads.  Shares are of the time since the last "
	"picture.\n\n"
	"  -i, --interval MS milliseconds between pictures (default: 1000)\n"
	"  -p, --pid PID     show that process, with all its threads and what "
	"they\n"
	"                    start from now on, until it ends\n"
	"  --help            print this\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "interval", required_argument, NULL, OPTION_LONG('i') },
	{ "pid", required_argument, NULL, OPTION_LONG('p') },
	{ 0 },
};

/* The account at the last picture, by index. */
struct before {
	struct thread *threads;
	struct core *cores;
	unsigned nr;
	uint64_t now_ns;
	int error; /* of the first picture that could not be written */
};

static uint64_t total_ns(const struct thread *thread)
{
	return thread->ns[RUNNING] + thread->ns[READY] + thread->ns[BLOCKED];
}

static struct thread thread_since(const struct before *before,
				  const struct account *account, unsigned i)
{
	struct thread thread = account->threads[i];
	int k;

	if (i >= before->nr)
		return thread;
	for (k = 0; k < NR_STATES; k++)
		thread.ns[k] -= before->threads[i].ns[k];
	for (k = 0; k < UMT_NR_REASONS; k++)
		thread.reason_ns[k] -= before->threads[i].reason_ns[k];
	return thread;
}

static const char *main_reason(const struct thread *thread)
{
	int k, most = 0;

	for (k = 1; k < UMT_NR_REASONS; k++)
		if (thread->reason_ns[k] > thread->reason_ns[most])
			most = k;
	return thread->reason_ns[most] ? umt_reason_name(most) : "-";
}

static void print_cores(const struct before *before,
			const struct account *account, double ns)
{
	int cpu;

	for (cpu = 0; cpu < account->nr_cpus; cpu++) {
		const struct core *core = &account->cores[cpu];
		const struct core *old = &before->cores[cpu];

		printf("core %d: busy %3.0f %%, idle %3.0f %%, idle while "
		       "blocked %3.0f %%\n",
		       cpu, 100 * (double)(core->busy_ns - old->busy_ns) / ns,
		       100 * (double)(core->idle_ns - old->idle_ns) / ns,
		       100 *
			       (double)(core->idle_while_ns -
					old->idle_while_ns) /
			       ns);
	}
}

/* A thread chooses its name, which may hold control characters for the terminal. */
static void print_name(const char *name, int width)
{
	for (; *name; name++, width--)
		putchar(*name < ' ' || *name > '~' ? '?' : *name);
	printf("%*s", width > 0 ? width : 0, "");
}

/* Threads are shown in the order of the time in which they had something to do. */
static uint64_t work_ns(const struct thread *thread)
{
	uint64_t ns = total_ns(thread);
	int k;

	for (k = 0; k < UMT_NR_REASONS; k++)
		if (!is_work(k))
			ns -= thread->reason_ns[k];
	return ns;
}

/* The threads to show: all with more work than @least, and @ties of those with exactly
 * that. */
struct cut {
	uint64_t least;
	unsigned ties;
};

static int compare_descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static struct cut find_cut(const struct before *before,
			   const struct account *account)
{
	struct cut cut = { 0, SHOWN_MAX };
	uint64_t *all = calloc(account->nr_threads + 1, sizeof(*all));
	unsigned i, nr = 0;

	for (i = 0; all && i < account->nr_threads; i++) {
		struct thread thread = thread_since(before, account, i);

		if (total_ns(&thread))
			all[nr++] = work_ns(&thread);
	}
	if (nr > SHOWN_MAX) {
		qsort(all, nr, sizeof(*all), compare_descending);
		cut.least = all[SHOWN_MAX - 1];
		cut.ties = 0;
		for (i = 0; i < SHOWN_MAX; i++)
			cut.ties += all[i] == cut.least;
	}
	free(all);
	return cut;
}

static bool is_shown(const struct thread *thread, struct cut *cut)
{
	uint64_t ns = work_ns(thread);

	if (!total_ns(thread) || ns < cut->least)
		return false;
	return ns > cut->least || (cut->ties && cut->ties--);
}

static void print_threads(const struct before *before,
			  const struct account *account)
{
	struct cut cut = find_cut(before, account);
	unsigned i, shown = 0;

	printf("%8s %-16s %8s %8s %8s  %s\n", "TID", "NAME", "RUNNING", "READY",
	       "BLOCKED", "MOSTLY");
	for (i = 0; i < account->nr_threads && shown < SHOWN_MAX; i++) {
		struct thread thread = thread_since(before, account, i);
		double all = (double)total_ns(&thread) / 100;

		if (!is_shown(&thread, &cut))
			continue;
		printf("%8u ", thread.tid);
		print_name(account_name(account, &account->threads[i]), 16);
		printf(" %6.0f %% %6.0f %% %6.0f %%  %s\n",
		       (double)thread.ns[RUNNING] / all,
		       (double)thread.ns[READY] / all,
		       (double)thread.ns[BLOCKED] / all, main_reason(&thread));
		shown++;
	}
}

static void save_totals(struct before *before, const struct account *account)
{
	size_t threads = account->nr_threads * sizeof(*before->threads);
	size_t cores = (size_t)account->nr_cpus * sizeof(*before->cores);

	free(before->threads);
	free(before->cores);
	before->threads = malloc(threads ? threads : 1);
	before->cores = malloc(cores);
	before->nr = before->threads ? account->nr_threads : 0;
	before->now_ns = account->now_ns;
	if (before->nr)
		memcpy(before->threads, account->threads, threads);
	if (before->cores)
		memcpy(before->cores, account->cores, cores);
}

static void draw_screen(struct watch *watch)
{
	struct account *account = &watch->account;
	struct before *before = watch->arg;
	struct core *none = NULL;
	unsigned nr_threads;

	account_close(account);
	if (!before->cores) {
		none = calloc((size_t)account->nr_cpus, sizeof(*none));
		before->cores = none;
		before->now_ns = account->start_ns;
	}
	if (!before->cores)
		return;
	if (isatty(STDOUT_FILENO))
		printf("\033[H\033[2J");
	nr_threads = account->nr_threads - (unsigned)account->count[GONE];
	printf("%u thread%s: %d running, %d ready, %d blocked\n", nr_threads,
	       plural_suffix(nr_threads), account->count[RUNNING],
	       account->count[READY], account->count[BLOCKED]);
	print_cores(before, account,
		    (double)(account->now_ns - before->now_ns));
	print_threads(before, account);
	if ((fflush(stdout) || ferror(stdout)) && !before->error)
		before->error = errno ? errno : EIO;
	/* Ended threads are shown once.  Else a program that keeps making threads would
	 * fill memory. */
	account_forget(account);
	save_totals(before, account);
}

/* @pid: of the process, or 0 to run a command */
static int run_top(char **argv, unsigned pid, unsigned every_ms)
{
	struct before before = { 0 };
	struct watch watch = { .tick = draw_screen,
			       .every_ms = every_ms,
			       .arg = &before };
	int status = pid ? watch_process(&watch, (pid_t)pid)
			 : watch_command(&watch, argv);

	free(before.threads);
	free(before.cores);
	account_end(&watch.account);
	if (before.error)
		return say_error(before.error, "top: writing the output");
	return status ? status : watch.status;
}

#define INTERVAL_MAX_MS 3600000
#define PID_MAX (1 << 22)

/* 0: not a number from 1 to @max */
static unsigned number_of(const char *text, unsigned long max)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	return *text < '0' || *text > '9' || *end || number > max
		       ? 0
		       : (unsigned)number;
}

int cmd_top(int argc, char **argv)
{
	unsigned every_ms = 1000, pid = 0;
	int option, status = -1;

	while ((option = next_option(argc, argv, "+:hi:p:", long_options,
				     usage_text, &status))) {
		if (option == 'p') {
			pid = number_of(optarg, PID_MAX);
			if (!pid)
				return say_usage("top: --pid '%s': not the "
						 "number of a process",
						 optarg);
			continue;
		}
		every_ms = number_of(optarg, INTERVAL_MAX_MS);
		if (!every_ms)
			return say_usage("top: --interval '%s': not a number "
					 "of milliseconds",
					 optarg);
	}
	if (status >= 0)
		return status;
	if (optind == argc && !pid)
		return say_usage("top: a command is missing");
	if (optind < argc && pid)
		return say_usage("top: --pid and a command exclude each other");
	return run_top(argv + optind, pid, every_ms);
}
