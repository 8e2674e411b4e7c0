/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What work.h declares.  Linked into every test of the API.
 */
#include "work.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "user/limits/overload.h"

void work_begin(struct work *work, size_t nr_units)
{
	work->nr_units = nr_units;
	work->caller = gettid();
	work->done = calloc(nr_units + 1, 1);
	work->undone = calloc(nr_units + 1, 1);
	if (!work->done || !work->undone)
		abort();
	work->nr_chunks = 0;
	work->nr_helper_chunks = 0;
	work->here[0] = work->here[1] = 0;
	work->undo_end = NULL;
	work->undo_disorder = false;
}

void work_end(struct work *work)
{
	free(work->done);
	free(work->undone);
}

bool work_is_helper(const struct work *work)
{
	return gettid() != work->caller;
}

void burn_us(unsigned us)
{
	uint64_t end_ns = ktest_now_ns() + us * 1000ull;

	while (ktest_now_ns() < end_ns)
		;
}

void nap_us(unsigned us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000l };

	nanosleep(&ts, NULL);
}

bool wait_for_flag_us(const uint32_t *flag, uint64_t us)
{
	uint64_t end_ns = ktest_now_ns() + us * 1000;

	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
		if (ktest_now_ns() > end_ns)
			return false;
		nap_us(50);
	}
	return true;
}

bool wait_for_flag(const uint32_t *flag)
{
	return wait_for_flag_us(flag, HANG_NS / 1000);
}

void set_flag(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static bool meet_other(struct work *work, bool helper)
{
	uint64_t us = work->patience_us ? work->patience_us : HANG_NS / 1000;

	set_flag(&work->here[helper]);
	return wait_for_flag_us(&work->here[!helper], us);
}

int work_chunk(void *start, void *end, void *arg)
{
	struct work *work = arg;
	size_t from = (size_t)((char *)start - WORK_BASE);
	size_t to = (size_t)((char *)end - WORK_BASE);
	bool helper = work_is_helper(work);
	int error = 0;

	__atomic_add_fetch(&work->nr_chunks, 1, __ATOMIC_RELAXED);
	if (helper)
		__atomic_add_fetch(&work->nr_helper_chunks, 1,
				   __ATOMIC_RELAXED);
	if (work->meet && !meet_other(work, helper))
		return -ETIME;
	if (work->also)
		error = work->also(work, from, to);
	for (size_t i = from; i < to && !error; i++)
		__atomic_add_fetch(&work->done[i], 1, __ATOMIC_RELAXED);
	return error;
}

void work_undo(void *start, void *end, void *arg)
{
	struct work *work = arg;

	if ((char *)start < work->undo_end || end <= start)
		work->undo_disorder = true;
	work->undo_end = end;
	for (char *at = start; at < (char *)end; at++)
		work->undone[at - WORK_BASE]++;
}

struct ktask_ctl work_ctl(struct work *work, size_t min_chunk)
{
	DEFINE_KTASK_CTL(ctl, work_chunk, work, min_chunk);

	ktask_ctl_set_undo_func(&ctl, work_undo);
	return ctl;
}

int work_run(struct work *work)
{
	struct ktask_ctl ctl = work_ctl(work, 1);

	return ktask_run(WORK_BASE, work->nr_units, &ctl);
}

bool work_done_once(const struct work *work)
{
	for (size_t i = 0; i < work->nr_units; i++)
		if (work->done[i] != 1 || work->undone[i])
			return false;
	return true;
}

bool work_undone_exactly(const struct work *work, size_t *nr_done)
{
	size_t nr = 0;

	for (size_t i = 0; i < work->nr_units; i++) {
		if (work->done[i] > 1 || work->undone[i] != work->done[i])
			return false;
		nr += work->done[i];
	}
	if (nr_done)
		*nr_done = nr;
	return !work->undo_disorder;
}

static int met_once(unsigned patience_us)
{
	struct work work = { .meet = true, .patience_us = patience_us };
	int error;

	work_begin(&work, 64);
	error = work_run(&work);
	if (!error && !work_done_once(&work))
		error = -EILSEQ;
	if (error && !work_undone_exactly(&work, NULL))
		error = -EILSEQ;
	work_end(&work);
	return error;
}

/* A helper may need longer than a try lasts to get a CPU: each lasts longer. */
int work_met(void)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS / 2;
	unsigned patience_us = 20000;
	int error;

	do {
		error = met_once(patience_us);
		if (patience_us < 1000000)
			patience_us += patience_us / 4;
	} while (error == -ETIME && ktest_now_ns() < end_ns);
	return error;
}

/* Whatever was seen is long ago. */
void forget_overload(void)
{
	overload_threads(1, 2, ktest_now_ns() + HANG_NS);
}

/* Into @reason, which is shared with the parent. */
static int find_reason(void *reason)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (limits[i].threads < 2)
			sprintf(reason, "%.20s: %.120s", limits[i].name,
				limits[i].why);
	return 0;
}

/* In a child: the library reads its environment when it is first used. */
bool may_help(void)
{
	char *reason = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool may;

	if (reason == MAP_FAILED)
		abort();
	ktest_in_child(find_reason, reason);
	may = !*reason;
	if (!may)
		ktest_say_skip("no helper can be had here: %s", reason);
	munmap(reason, 4096);
	return may;
}

bool status_field(pid_t tid, const char *name, char *value, size_t size)
{
	size_t len = strlen(name);
	char path[64], line[256];
	bool found = false;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	in = fopen(path, "r");
	while (in && !found && fgets(line, sizeof(line), in)) {
		if (strncmp(line, name, len) || line[len] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s", line + len + 2);
		found = true;
	}
	if (in)
		fclose(in);
	return found;
}

bool thread_sleeps(pid_t tid)
{
	char state[32];

	return status_field(tid, "State", state, sizeof(state)) &&
	       state[0] == 'S';
}

/* Threads of this process that have @name, or all for NULL. */
static unsigned find_threads(const char *name, pid_t *tids, unsigned capacity)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		char found[32];

		if (tid <= 0)
			continue;
		if (name && (!status_field(tid, "Name", found, sizeof(found)) ||
			     strcmp(found, name)))
			continue;
		if (nr < capacity)
			tids[nr] = tid;
		nr++;
	}
	if (dir)
		closedir(dir);
	return nr;
}

unsigned threads_now(void)
{
	return find_threads(NULL, NULL, 0);
}

unsigned helpers_now(pid_t *tids, unsigned capacity)
{
	return find_threads("ktask", tids, capacity);
}

int child_status(pid_t pid)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	int status = -1;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (ktest_now_ns() > end_ns) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		nap_us(500);
	}
	return status;
}
