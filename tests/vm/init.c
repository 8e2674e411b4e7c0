/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PID 1 of a guest: loads the modules, runs the tests, says what came of it.
 *
 * The verdict is TAP on the second serial port, which nothing else writes to;
 * the kernel's log is on the first.  Without a last line ("1..N") the host
 * counts the boot as failed, so that nothing here has to be certain to happen.
 *
 * Owns the tests that need user space: processes that are killed, modules that
 * are unloaded.  Those inside the kernel are ktask_test's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

#define CYCLES 30
/* What the kernel may keep that belongs to no cycle, with more of them. */
#define KEPT_KIB 2048

static FILE *verdict_file;
static unsigned nr_tests;
static char seed_text[32] = "seed=1";

/* ---- what tests share ---- */

/* The reason stands in the title: where only titles are shown it is all. */
void say_verdict(bool ok, const char *name, const char *format, ...)
{
	va_list args;

	time_test(name);
	fprintf(verdict_file, "%s %u - ", ok ? "ok" : "not ok", ++nr_tests);
	for (; *name; name++)
		fputc(*name == '_' ? '-' : *name, verdict_file);
	if (format) {
		fprintf(verdict_file, ok ? " # SKIP " : ": ");
		va_start(args, format);
		vfprintf(verdict_file, format, args);
		va_end(args);
	}
	fprintf(verdict_file, "\n");
	fflush(verdict_file);
}

void note_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(verdict_file, "# ");
	vfprintf(verdict_file, format, args);
	fprintf(verdict_file, "\n");
	va_end(args);
	fflush(verdict_file);
}

int load_module(const char *path, const char *options)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long error;

	if (fd < 0)
		return errno;
	error = syscall(SYS_finit_module, fd, options, 0) ? errno : 0;
	close(fd);
	return (int)error;
}

int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

bool load_both(void)
{
	int error = load_module("/ktask.ko", "");

	if (!error)
		error = load_module("/ktask_test.ko", seed_text);
	errno = error;
	return !error;
}

int run_in_kernel(const char *name)
{
	return write_file(DIR_TESTS "/run", name);
}

pid_t start_in_kernel(const char *name)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(run_in_kernel(name));
	return pid;
}

int status_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

/* ---- tests ---- */

void one_in_kernel(const char *name)
{
	char why[300];
	int error = run_in_kernel(name);

	read_file(DIR_TESTS "/why", why, sizeof(why));
	why[strcspn(why, "\n")] = 0;
	if (!error)
		say_verdict(true, name, NULL);
	else if (error == EOPNOTSUPP)
		say_verdict(true, name, "%s", why);
	else
		say_verdict(false, name, "%s: %s", strerror(error), why);
}

static void all_in_kernel(void)
{
	static char names[8192];
	char *name, *rest = names;

	read_file(DIR_TESTS "/tests", names, sizeof(names));
	if (!names[0])
		say_verdict(false, "tests-are-listed", "%s is empty",
			    DIR_TESTS);
	while ((name = strsep(&rest, "\n")))
		if (name[0] && name[0] != '+')
			one_in_kernel(name);
}

/* Until the first job that is listed is the process's; a slow machine may need
 * long for that. */
static void await_job_of(pid_t pid)
{
	char text[2048];
	int ms;

	for (ms = 0; ms < PATIENCE_MS; ms += 5) {
		read_file("/sys/kernel/debug/ktask/jobs", text, sizeof(text));
		if (atoi(text) == pid)
			break;
		sleep_ms(5);
	}
}

/* Until it has waited in the kernel, where no signal is heard, each time that
 * it was looked at. */
static void await_deafness_of(pid_t pid)
{
	char path[40], text[512], *state;
	int ms, deaf = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (ms = 0; ms < PATIENCE_MS && deaf < 10; ms += 10) {
		read_file(path, text, sizeof(text));
		state = strrchr(text, ')');
		deaf = state && !strncmp(state, ") D", 3) ? deaf + 1 : 0;
		sleep_ms(10);
	}
}

static void a_killed_caller_ends_its_job(void)
{
	pid_t pid = start_in_kernel("+killable-job");
	int status, error;

	await_job_of(pid);
	kill(pid, SIGKILL);
	status = status_of(pid);
	error = run_in_kernel("+was-interrupted");
	if (status == 1000 && !error)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "status %d, then %s", status,
			    strerror(error));
}

static void a_dying_task_still_gets_its_job_done(void)
{
	pid_t pid = start_in_kernel("+dying-job");
	int error;

	await_deafness_of(pid);
	kill(pid, SIGKILL);
	status_of(pid);
	error = run_in_kernel("+was-done");
	if (!error)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s", strerror(error));
}

static void unloading_is_refused_while_jobs_run(void)
{
	pid_t pid = start_in_kernel("+killable-job");
	int library, client;

	await_job_of(pid);
	library = unload_module("ktask");
	client = unload_module("ktask_test");
	kill(pid, SIGKILL);
	status_of(pid);
	if (library == EWOULDBLOCK && client == EWOULDBLOCK)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "ktask: %s, its client: %s",
			    strerror(library), strerror(client));
}

unsigned long long stat_of(const char *name)
{
	char text[8192], line[80], *found;

	read_file("/sys/kernel/debug/ktask/stats", text, sizeof(text));
	snprintf(line, sizeof(line), "%s ", name);
	found = strstr(text, line);
	return found ? strtoull(found + strlen(line), NULL, 10) : 0;
}

/* The same, of all nodes. */
static unsigned long long sum_of_nodes(const char *name)
{
	unsigned long long sum = 0;
	char of_node[80];

	for (unsigned node = 0; node < 16; node++) {
		snprintf(of_node, sizeof(of_node), "\nnode%u_%s", node, name);
		sum += stat_of(of_node);
	}
	return sum;
}

static void statistics_count_jobs(void)
{
	unsigned long long jobs = stat_of("jobs"), units = stat_of("units");
	unsigned long long failed = stat_of("jobs_failed");

	run_in_kernel("+short-job");
	jobs = stat_of("jobs") - jobs;
	units = stat_of("units") - units;
	failed = stat_of("jobs_failed") - failed;
	if (jobs == 1 && units == 1000 && !failed &&
	    stat_of("helpers_limit") > 0 && !stat_of("helpers_at_work") &&
	    sum_of_nodes("jobs") == stat_of("jobs") &&
	    sum_of_nodes("units") == stat_of("units") &&
	    sum_of_nodes("chunks") == stat_of("chunks"))
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__,
			    "%llu jobs, %llu units (%llu by node), "
			    "%llu failed",
			    jobs, units, sum_of_nodes("units"), failed);
}

/* The job says who began it and how far it is, and is gone afterwards. */
static void jobs_can_be_seen_while_they_run(void)
{
	const char *jobs = "/sys/kernel/debug/ktask/jobs";
	char text[2048] = "", after[2048], own[16] = "";
	bool seen = false;
	int ms, status;
	pid_t pid;

	/* A name cannot make it two lines. */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, "a\n1 init");
	pid = start_in_kernel("+short-job");
	prctl(PR_SET_NAME, own);
	for (ms = 0; ms < PATIENCE_MS && !seen; ms += 5) {
		read_file(jobs, text, sizeof(text));
		seen = strstr(text, "board_chunk") && strstr(text, "/1000 ") &&
		       strstr(text, " a?1 init ") && atoi(text) == pid;
		sleep_ms(5);
	}
	status = status_of(pid);
	read_file(jobs, after, sizeof(after));
	if (seen && !status && !after[0])
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__,
			    "pid %d, status %d, '%s' then '%s'", pid, status,
			    text, after);
}

/* To a helper, what PID 1 runs at. */
static bool tells_of_lending(const char *text)
{
	int pid, rt, nice;
	const char *at;

	for (at = text; (at = strstr(at, "ktask_lend: ")); at++)
		if (sscanf(at, "ktask_lend: helper=%d rt=%d nice=%d", &pid, &rt,
			   &nice) == 3 &&
		    pid > 1 && !rt && !nice)
			return true;
	return false;
}

static void tracepoints_tell_of_jobs(void)
{
	const char *on = "/sys/kernel/tracing/events/ktask/enable";
	const char *trace = "/sys/kernel/tracing/trace";
	static char text[1 << 20];
	int error = write_file(on, "1");
	bool lent = !run_in_kernel("a-waiting-caller-lends-its-nice-value");

	run_in_kernel("+short-job");
	write_file(on, "0");
	read_file(trace, text, sizeof(text));
	if (!error && strstr(text, "ktask_job_start: func=board_chunk") &&
	    strstr(text, "ktask_chunk: start=") &&
	    strstr(text, "ktask_job_end: func=board_chunk") &&
	    strstr(text, "error=0 units=1000") &&
	    (!lent || tells_of_lending(text)))
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s: %.200s", strerror(error),
			    text);
}

/* Loading it does the work; one that fails leaves nothing filled, and is not
 * loaded. */
static void the_example_works(void)
{
	char filled[32] = "";
	int error = load_module("/ktask_example.ko", "pages=2000"), failed;

	read_file("/sys/module/ktask_example/parameters/filled", filled,
		  sizeof(filled));
	if (!error)
		error = unload_module("ktask_example");
	failed = load_module("/ktask_example.ko", "pages=2000 fail_at=777");
	if (!error && atol(filled) >= 2000 && atol(filled) % 2000 == 0 &&
	    failed == EIO)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%d, then %d; %s filled", error,
			    failed, filled);
}

/* The number behind "ktask.NAME=" of the kernel's command line, or @none. */
static unsigned boot_option(const char *name, unsigned none)
{
	char line[4096], word[40], *found;

	read_file("/proc/cmdline", line, sizeof(line));
	snprintf(word, sizeof(word), "ktask.%s=", name);
	found = strstr(line, word);
	if (!found)
		return none;
	return (unsigned)strtoul(found + strlen(word), NULL, 10);
}

unsigned scale_rounds(unsigned whole)
{
	unsigned some = whole * boot_option("rounds", 100) / 100;

	return some ? some : 1;
}

static void modules_load_and_unload_many_times(void)
{
	int cycles = (int)boot_option("cycles", scale_rounds(CYCLES));
	int i, error = unload_module("ktask_test");
	long before = 0, kept;

	for (i = 0; i < cycles && !error; i++) {
		if (!i || i == (cycles + 9) / 10)
			before = kernel_kib();
		error = unload_module("ktask");
		if (!error && nr_helpers())
			error = EBUSY;
		if (!error && !load_both())
			error = errno;
		if (!error)
			error = run_in_kernel("helpers-do-a-part");
		if (error == EOPNOTSUPP)
			error = 0;
		if (!error)
			error = unload_module("ktask_test");
	}
	kept = kernel_kib() - before;
	if (!error)
		error = unload_module("ktask");
	note_line("%d loads and unloads: %ld KiB more in the kernel", i, kept);
	if (error)
		say_verdict(false, __func__, "cycle %d: %s", i,
			    strerror(error));
	else if (kept > KEPT_KIB)
		say_verdict(false, __func__, "%ld KiB more after %d cycles",
			    kept, i);
	else
		say_verdict(true, __func__, NULL);
}

/* ---- the guest ---- */

static void mount_all(void)
{
	mkdir("/proc", 0555);
	mkdir("/sys", 0555);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
}

static void test_module(void)
{
	all_in_kernel();
	a_killed_caller_ends_its_job();
	a_dying_task_still_gets_its_job_done();
	unloading_is_refused_while_jobs_run();
	test_cpus();
	test_pool();
	statistics_count_jobs();
	jobs_can_be_seen_while_they_run();
	tracepoints_tell_of_jobs();
	the_example_works();
	test_neighbours();
}

/* In an order that leaves the modules unloaded; "ktask.only=groups,cycles"
 * of the kernel's command line runs these alone.  tests/vm/Guest.pm reads this. */
static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "module", test_module },
	{ "device", test_device },
	{ "clients", test_clients },
	{ "process_helpers", test_process_helpers },
	{ "engines", test_engines },
	{ "made_ahead", test_made_ahead },
	{ "chosen_processes", test_chosen_processes },
	{ "served", test_served },
	{ "killed_daemon", test_killed_daemon },
	{ "groups", test_groups },
	{ "failures", test_failures },
	{ "baddays", test_bad_days },
	{ "cycles", modules_load_and_unload_many_times },
	{ "leaks", test_leaks },
};

static bool is_wanted(const char *part)
{
	char line[4096], *only, *word;

	read_file("/proc/cmdline", line, sizeof(line));
	only = strstr(line, "ktask.only=");
	if (!only)
		return true;
	only += strlen("ktask.only=");
	only[strcspn(only, " \n")] = 0;
	while ((word = strsep(&only, ",")))
		if (!strcmp(word, part))
			return true;
	return false;
}

static void run_all(void)
{
	/* A kernel that looks for data races does so from now on. */
	write_file("/sys/kernel/debug/kcsan", "on");
	if (!load_both()) {
		say_verdict(false, "modules-load", "%s", strerror(errno));
		return;
	}
	say_verdict(true, "modules-load", NULL);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (is_wanted(parts[i].name)) {
			note_line("part %s", parts[i].name);
			parts[i].run();
		}
}

/* What a kernel that finds errors should find; its log says whether it did. */
static void plant_errors(void)
{
	static const char *const names[] = {
		"+planted-race",
		/* Before memory is used that is not: lockdep then trusts in
		 * nothing any more. */
		"+planted-lock-order",
		"+planted-use-after-free",
		"+planted-leak",
	};

	write_file("/sys/kernel/debug/kcsan", "on");
	if (!load_both()) {
		say_verdict(false, "modules-load", "%s", strerror(errno));
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		one_in_kernel(names[i]);
	test_leaks();
}

int main(void)
{
	mount_all();
	verdict_file = fopen("/dev/ttyS1", "w");
	if (!verdict_file)
		return 1;
	if (boot_option("bench", 0)) {
		measure_case(boot_option("bench", 0));
		goto end;
	}
	settle_code();
	snprintf(seed_text, sizeof(seed_text), "seed=%u",
		 boot_option("seed", 1));
	srand(boot_option("seed", 1));
	fprintf(verdict_file, "TAP version 13\n# %s\n", seed_text);
	fflush(verdict_file);
	if (boot_option("vfio", 0))
		test_vfio();
	else if (boot_option("planted", 0))
		plant_errors();
	else
		run_all();
	note_longest();
end:
	fprintf(verdict_file, "1..%u\n", nr_tests);
	fflush(verdict_file);
	fclose(verdict_file);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
