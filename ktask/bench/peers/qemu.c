/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The start of a virtual machine with preallocated memory: QEMU with one
 * preallocation thread, with several (its own static split), and with one but
 * through libktask's shim.
 *
 * Measured from before fork() until QEMU has answered its first monitor
 * command, which it does once the machine and its memory are made; in every
 * round the same start without preallocation is subtracted.  Leaving, where
 * the memory is freed, is not counted.  CPU time is what /proc/PID/stat has at
 * that moment, in clock ticks, less the same of the start without.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "rounds.h"

#define QEMU "qemu-system-x86_64"
#define MAX_QEMU_ROUNDS 7
#define NR_WAYS 4

/* The first way is what the others are measured against. */
enum way { BARE, ONE_THREAD, OWN_THREADS, THROUGH_KTASK };

struct start {
	double seconds;
	double cpu_seconds;
};

struct machine {
	const struct results *results;
	const char *shim;
	bool huge; /* transparent huge pages, as QEMU asks for */
};

static void become_qemu(const struct machine *m, enum way way)
{
	unsigned threads = way == OWN_THREADS ? m->results->threads : 1;
	size_t mib = m->results->size_bytes >> 20;
	char object[160], size[32];

	snprintf(size, sizeof(size), "%zuM", mib);
	snprintf(object, sizeof(object),
		 "memory-backend-ram,id=m,size=%zuM,prealloc=%s,"
		 "prealloc-threads=%u",
		 mib, way == BARE ? "off" : "on", threads);
	if (!m->huge)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (way == THROUGH_KTASK)
		setenv("LD_PRELOAD", m->shim, 1);
	execlp(QEMU, QEMU, "-nodefaults", "-display", "none", "-S", "-machine",
	       "pc,accel=tcg,memory-backend=m", "-m", size, "-object", object,
	       "-qmp", "stdio", NULL);
	_exit(127);
}

/* Reads until QEMU has answered; false when it left instead. */
static bool await_answer(int fd)
{
	char text[1024];
	size_t len = 0;

	while (len < sizeof(text) - 1) {
		ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);

		if (got <= 0)
			return false;
		len += (size_t)got;
		text[len] = '\0';
		if (strstr(text, "{\"return\": {}}"))
			return true;
	}
	return false;
}

static double process_cpu_seconds(pid_t pid)
{
	unsigned long user = 0, kernel = 0;
	char path[40], text[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file) && strrchr(text, ')'))
		sscanf(strrchr(text, ')'),
		       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		       &user, &kernel);
	fclose(file);
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static pid_t launch_machine(const struct machine *m, enum way way, int *to,
			    int *from)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC))
		return -1;
	if (pipe2(out, O_CLOEXEC)) {
		close(in[0]);
		close(in[1]);
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		become_qemu(m, way);
	}
	close(in[0]);
	close(out[1]);
	*to = in[1];
	*from = out[0];
	return pid;
}

static int start_once(const struct machine *m, enum way way,
		      struct start *start)
{
	static const char hello[] = "{\"execute\": \"qmp_capabilities\"}\n";
	static const char quit[] = "{\"execute\": \"quit\"}\n";
	int to, from, status;
	uint64_t start_ns;
	bool answered;
	pid_t pid;

	backing_renew(m->results->size_bytes,
		      m->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	start_ns = clock_ns();
	pid = launch_machine(m, way, &to, &from);
	if (pid < 0)
		return errno;
	answered =
		write(to, hello, sizeof(hello) - 1) > 0 && await_answer(from);
	start->seconds = (double)(clock_ns() - start_ns) / 1e9;
	start->cpu_seconds = process_cpu_seconds(pid);
	if (!answered || write(to, quit, sizeof(quit) - 1) < 0)
		kill(pid, SIGKILL);
	close(to);
	while (read(from, (char[256]){ 0 }, 256) > 0)
		;
	close(from);
	waitpid(pid, &status, 0);
	return answered ? 0 : EIO;
}

static const char *way_name(enum way way)
{
	switch (way) {
	case ONE_THREAD:
		return "QEMU prealloc, 1 thread";
	case OWN_THREADS:
		return "QEMU prealloc-threads";
	default:
		return "libktask (shim)";
	}
}

static void add_row(struct results *results, const struct machine *m,
		    enum way way, double *seconds, double *cpu, unsigned nr)
{
	struct row *row = results_row(results, seconds, nr);

	row->case_name = m->huge ? "vm-start-thp" : "vm-start-4k";
	row->title = m->huge ? "start a virtual machine, memory only, "
			       "transparent huge pages"
			     : "start a virtual machine, memory only, "
			       "4 KiB pages";
	row->peer = way_name(way);
	row->threads = way == ONE_THREAD ? 1 : results->threads;
	row->bytes = results->size_bytes;
	row->cpu_seconds = stats_of(cpu, nr).median;
	row->tail_seconds = -1;
}

static int run_machine(struct results *results, const struct machine *m)
{
	double seconds[NR_WAYS][MAX_QEMU_ROUNDS], cpu[NR_WAYS][MAX_QEMU_ROUNDS];
	struct start starts[NR_WAYS];
	int nr = (int)results->rounds;

	if (nr > MAX_QEMU_ROUNDS)
		nr = MAX_QEMU_ROUNDS;
	for (int round = -1; round < nr; round++) {
		for (int turn = 0; turn < NR_WAYS; turn++) {
			int way = (turn + round + 1) % NR_WAYS;
			int error = start_once(m, way, &starts[way]);

			if (error)
				return error;
		}
		for (int way = 0; way < NR_WAYS && round >= 0; way++) {
			seconds[way][round] =
				starts[way].seconds - starts[BARE].seconds;
			cpu[way][round] = starts[way].cpu_seconds -
					  starts[BARE].cpu_seconds;
		}
	}
	for (int way = ONE_THREAD; way < NR_WAYS; way++)
		add_row(results, m, way, seconds[way], cpu[way], (unsigned)nr);
	return 0;
}

static bool have_qemu(const char *shim)
{
	return shim && !access(shim, R_OK) &&
	       !system("command -v " QEMU " >/dev/null 2>&1");
}

int qemu_run(struct results *results, const char *shim)
{
	struct machine small = { results, shim, false };
	struct machine huge = { results, shim, true };
	int error;

	if (!have_qemu(shim)) {
		fprintf(stderr, "ktask: comparing with QEMU: no " QEMU
				", or no shim; left out\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	error = run_machine(results, &small);
	return error ? error : run_machine(results, &huge);
}
