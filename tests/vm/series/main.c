/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PID 1 of the guests that a patch series is tested in: what is the same on the
 * unpatched and on the patched kernel, and how long it takes.
 *
 * The second serial port has TAP, as in other guests, and facts as lines "= name:
 * value".  The kernel's log is on the first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "facts.h"

const struct pool pool_2m = { "2048kB", HUGE, 21u << 26 };
const struct pool pool_1g = { "1048576kB", GIB, 30u << 26 };

static FILE *verdict_file;
static unsigned *nr_checks; /* shared with children */

/* ---- saying ---- */

void tell_fact(const char *value, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	fprintf(verdict_file, "= ");
	vfprintf(verdict_file, name, args);
	fprintf(verdict_file, ": %s\n", value);
	fflush(verdict_file);
	va_end(args);
}

void tell_fact_number(long value, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	fprintf(verdict_file, "= ");
	vfprintf(verdict_file, name, args);
	fprintf(verdict_file, ": %ld\n", value);
	fflush(verdict_file);
	va_end(args);
}

void begin_set(const char *name)
{
	fprintf(verdict_file, "== %s\n", name);
	fflush(verdict_file);
}

void check_that(bool right, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	fprintf(verdict_file, "%s %u - ", right ? "ok" : "not ok",
		++*nr_checks);
	vfprintf(verdict_file, name, args);
	fprintf(verdict_file, "\n");
	fflush(verdict_file);
	va_end(args);
}

void skip_check(const char *reason, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	fprintf(verdict_file, "ok %u - ", ++*nr_checks);
	vfprintf(verdict_file, name, args);
	fprintf(verdict_file, " # SKIP %s\n", reason);
	fflush(verdict_file);
	va_end(args);
}

void note_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(verdict_file, "# ");
	vfprintf(verdict_file, format, args);
	fprintf(verdict_file, "\n");
	fflush(verdict_file);
	va_end(args);
}

/* ---- files ---- */

int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;

	if (fd < 0)
		return errno;
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return error;
}

int write_number(const char *path, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return write_text(path, text);
}

void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t filled = 0;
	ssize_t more = 1;

	while (fd >= 0 && more > 0 && filled + 1 < size) {
		more = read(fd, text + filled, size - 1 - filled);
		filled += more > 0 ? (size_t)more : 0;
	}
	text[filled] = 0;
	if (fd >= 0)
		close(fd);
}

long number_in(const char *path, const char *name)
{
	static char text[65536];
	char *at = text;

	read_text(path, text, sizeof(text));
	if (!text[0])
		return -1;
	if (name) {
		at = strstr(text, name);
		if (!at)
			return -1;
		at += strlen(name);
	}
	return strtol(at, NULL, 10);
}

void option_text(const char *name, char *text, size_t size)
{
	char line[4096], word[64], *found;

	read_text("/proc/cmdline", line, sizeof(line));
	snprintf(word, sizeof(word), "series.%s=", name);
	found = strstr(line, word);
	text[0] = 0;
	if (found)
		snprintf(text, size, "%.*s",
			 (int)strcspn(found + strlen(word), " \n"),
			 found + strlen(word));
}

long read_option(const char *name, long otherwise)
{
	char text[64];

	option_text(name, text, sizeof(text));
	return text[0] ? strtol(text, NULL, 10) : otherwise;
}

/* ---- the machine ---- */

unsigned nr_nodes(void)
{
	char path[64];
	unsigned nr = 0;

	do {
		snprintf(path, sizeof(path), NODE_DIR "%u", nr);
	} while (!access(path, F_OK) && ++nr);
	return nr;
}

/* As ktask/kernel/series/build names them: "6.12.1-plain", "6.12.1-ktask-KEY". */
static bool has_suffix(const char *suffix)
{
	char version[300];

	read_text("/proc/sys/kernel/osrelease", version, sizeof(version));
	return strstr(version, suffix);
}

bool is_of_series(void)
{
	return has_suffix("-plain") || has_suffix("-ktask-");
}

bool helpers_expected(void)
{
	bool has_ktask =
		has_suffix("-ktask-") || !access("/sys/module/ktask", F_OK);

	return has_ktask && !read_option("alone", 0);
}

long pool_number(const struct pool *pool, int nid, const char *what)
{
	char path[200];

	if (nid < 0)
		snprintf(path, sizeof(path), POOL_DIR "%s/%s", pool->name,
			 what);
	else
		snprintf(path, sizeof(path),
			 NODE_DIR "%d/hugepages/hugepages-%s/%s", nid,
			 pool->name, what);
	return number_in(path, NULL);
}

long pool_set(const struct pool *pool, long nr)
{
	char path[200];

	snprintf(path, sizeof(path), POOL_DIR "%s/nr_hugepages", pool->name);
	write_number(path, nr);
	return pool_number(pool, -1, "nr_hugepages");
}

void enter_group(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), GROUP_DIR "/%s/cgroup.procs", name);
	write_text(path, "0");
}

int run_child(void (*body)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		body(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

long helpers_worked(void)
{
	return number_in("/sys/kernel/debug/ktask/stats", "helpers_worked ");
}

long hosts_found_short(void)
{
	return number_in("/sys/kernel/debug/ktask/stats", "host_lacks_cpus ");
}

void check_helped(void (*prepare)(void), void (*work)(void), const char *name)
{
	double until = seconds_now() + HELPER_SECONDS;
	long before;

	if (!helpers_expected())
		return;
	do {
		if (prepare)
			prepare();
		before = helpers_worked();
		work();
	} while (helpers_worked() == before && seconds_now() < until);
	check_that(helpers_worked() > before, "%s", name);
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
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("cgroup2", GROUP_DIR, "cgroup2", 0, "memory_hugetlb_accounting");
	write_text(GROUP_DIR "/cgroup.subtree_control", "+memory +hugetlb");
}

/* Now it may be that there is none yet. */
static void have_gigantic_pages(long nr)
{
	for (int i = 0; i < 20 && pool_set(&pool_1g, nr) < nr; i++)
		write_text("/proc/sys/vm/compact_memory", "1");
}

static void tell_facts(void)
{
	if (read_option("own", 0)) {
		tell_own_tests();
		return;
	}
	if (read_option("days", 0)) {
		if (!read_option("vfio", 0))
			tell_quota_facts();
		tell_bad_days();
		return;
	}
	if (read_option("vfio", 0) && nr_nodes() > 1) {
		tell_vfio_nodes();
		return;
	}
	if (read_option("vfio", 0)) {
		tell_vfio_facts();
		tell_vfio_edges();
		return;
	}
	if (read_option("device", 0)) {
		tell_device_facts();
		return;
	}
	if (read_option("flush", 0)) {
		tell_flush_facts();
		return;
	}
	if (read_option("gigantic", 0)) {
		have_gigantic_pages(read_option("gigantic", 0));
		tell_gigantic_facts();
		return;
	}
	tell_boot_facts();
	/* Later there is no such range. */
	have_gigantic_pages(1);
	tell_pool_facts();
	tell_file_facts();
	tell_gigantic_facts();
	tell_unmap_facts();
	tell_exit_facts();
	tell_mirror_facts();
	tell_charge_facts();
	check_failing_clients();
	note_line("helpers that worked in jobs: %ld", helpers_worked());
}

/* With an argument this is what a process of a test has become. */
int main(int argc, char **argv)
{
	char version[300];

	(void)argv;
	if (argc > 1 && getpid() != 1)
		return 9;
	nr_checks = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mount_all();
	verdict_file = fopen("/dev/ttyS1", "w");
	if (!verdict_file)
		return 1;
	fprintf(verdict_file, "TAP version 13\n");
	read_text("/proc/sys/kernel/osrelease", version, sizeof(version));
	note_line("release %.*s", (int)strcspn(version, "\n"), version);
	if (read_option("driver", 0))
		tell_driver_facts();
	else if (read_option("bench", 0))
		measure_clients();
	else
		tell_facts();
	check_no_leaks();
	fprintf(verdict_file, "1..%u\n", *nr_checks);
	fclose(verdict_file);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
