/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The record of this process for the watcher of `ktask run --report`, which writes the
 * line of a process that a signal ends: see util/run_record.h.
 *
 * The memory stays mapped.  So the child of a fork has it too, and so has a process
 * that may no longer open the file.  A process in another PID namespace than the
 * watcher has no record: there its number would be that of another process.
 *
 * Locking: util/run_record.h; the record is this process's, and any thread adds to it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/run_record.h"
#include "util/scoped.h"

static const char *records_path;
static struct run_records *all_records;
/* The record of the process that owns this memory, not of a child of vfork(). */
static struct run_record *own_record;
/* The child's record during this thread's fork(); the same after fork() returned. */
static __thread struct run_record *child_record, *forked_record;
/* Children are in another namespace. */
static bool children_elsewhere;

/* The watcher's process id may belong to another process by now, so check that the link
 * names such memory before opening it. */
static int open_records(void)
{
	char target[sizeof(RUN_RECORDS_LINK)];
	ssize_t len = readlink(records_path, target, sizeof(target));

	if (len != sizeof(target) - 1 ||
	    memcmp(target, RUN_RECORDS_LINK, sizeof(target) - 1))
		return -1;
	return open(records_path, O_RDWR | O_CLOEXEC);
}

static struct run_records *map_records(void)
{
	struct run_records *found;
	int fd = open_records();
	struct stat st;

	if (fd < 0)
		return NULL;
	found = fstat(fd, &st) || st.st_size != sizeof(*found)
			? MAP_FAILED
			: real_mmap(NULL, sizeof(*found),
				    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (found == MAP_FAILED)
		return NULL;
	if (found->magic == RUN_RECORDS_MAGIC &&
	    found->namespace_id == run_namespace_id())
		return found;
	real_munmap(found, sizeof(*found));
	return NULL;
}

static void begin_own(void)
{
	pid_t pid = (pid_t)syscall(SYS_getpid);

	own_record = run_record_find(all_records, pid);
	if (own_record) {
		run_record_restart(own_record, RUN_ALIVE, shim_program_name());
		return;
	}
	own_record = run_record_take(all_records, RUN_ALIVE, pid,
				     shim_program_name());
	run_records_wake(all_records);
}

void shim_record_init(const char *where)
{
	keep_errno();

	records_path = where;
	if (records_path && shim_filter_allows())
		all_records = map_records();
	if (all_records)
		begin_own();
}

void shim_record_taken(size_t bytes)
{
	if (!own_record)
		return;
	atomic_fetch_add(&own_record->calls, 1);
	atomic_fetch_add(&own_record->bytes, bytes);
}

void shim_record_left(size_t bytes)
{
	if (!own_record)
		return;
	atomic_fetch_add(&own_record->left_calls, 1);
	atomic_fetch_add(&own_record->left_bytes, bytes);
}

void shim_record_told(void)
{
	if (own_record && atomic_load(&own_record->state) != RUN_UNTOLD)
		atomic_store(&own_record->state, RUN_TOLD);
}

bool shim_record_untold(int error)
{
	if (!own_record)
		return false;
	atomic_store(&own_record->error, error);
	atomic_store(&own_record->state, RUN_UNTOLD);
	return true;
}

void shim_record_again(void)
{
	if (own_record)
		run_record_restart(own_record, RUN_ALIVE, shim_program_name());
}

/* ---- forks ---- */

void shim_record_leave_namespace(void)
{
	children_elsewhere = true;
}

void shim_record_fork(void)
{
	child_record = NULL;
	if (!all_records || children_elsewhere)
		return;
	child_record = run_record_take(all_records, RUN_FORKING, shim_owner(),
				       shim_program_name());
	/* The watcher polls as well, only later. */
	if (child_record && shim_filter_allows())
		run_records_wake(all_records);
}

/* It is not known here whether there is a child.  If so, the record is the child's. */
void shim_record_parent(void)
{
	forked_record = child_record;
	child_record = NULL;
}

void shim_record_fork_failed(void)
{
	if (forked_record)
		atomic_store(&forked_record->state, RUN_FREE);
	forked_record = NULL;
}

void shim_record_child(void)
{
	own_record = child_record;
	child_record = NULL;
	forked_record = NULL;
	if (!own_record) {
		/* Its children and the next program have no record either. */
		all_records = NULL;
		return;
	}
	run_record_move(own_record, shim_owner());
	atomic_store(&own_record->state,
		     shim_filter_allows() ? RUN_ALIVE : RUN_FILTERED);
	if (shim_filter_allows())
		run_records_wake(all_records);
}

/*
 * The child makes its own record as soon as its shim is loaded.  This record only keeps
 * the watcher from ending before then.
 */
struct run_record *shim_record_spawn(void)
{
	if (!all_records || children_elsewhere || !shim_filter_allows() ||
	    !shim_is_ours())
		return NULL;
	return run_record_take(all_records, RUN_FORKING, shim_owner(), "");
}

void shim_record_spawned(struct run_record *record, pid_t child)
{
	uint32_t expected = RUN_FORKING;

	if (!record)
		return;
	if (child)
		run_record_move(record, child);
	atomic_compare_exchange_strong(&record->state, &expected,
				       child ? RUN_TOLD : RUN_FREE);
	if (child)
		run_records_wake(all_records);
}

/* ---- becoming another program ---- */

/* Does the environment lead the new program to the same records? */
static bool leads_here(char *const envp[])
{
	static const char name[] = RUN_RECORDS_VARIABLE "=";

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, sizeof(name) - 1))
			return !strcmp(*envp + sizeof(name) - 1, records_path);
	return false;
}

/*
 * May the new program open the memory of the watcher?  Not if the process has become
 * another user: only its capabilities allow that now, and execve() drops them.  Then the
 * new program has no record, and reports by itself.
 */
static bool may_open_after_exec(void)
{
	char directory[32];
	const char *slash = strrchr(records_path, '/');
	struct stat st;

	if (!slash || (size_t)(slash - records_path) >= sizeof(directory))
		return false;
	memcpy(directory, records_path, (size_t)(slash - records_path));
	directory[slash - records_path] = '\0';
	return !stat(directory, &st) &&
	       (!geteuid() ||
		(st.st_uid == getuid() && st.st_uid == geteuid() &&
		 st.st_gid == getgid() && st.st_gid == getegid()));
}

struct run_record *shim_record_exec(const char *name, char *const envp[],
				    bool told)
{
	struct run_record *record = own_record;
	enum run_state state;
	pid_t pid;

	/* Check that first: a filter may kill for any further system call. */
	if (!all_records || shim_filter_in_child() || !shim_filter_allows())
		return NULL;
	state = told || !leads_here(envp) || !may_open_after_exec()
			? RUN_TOLD
			: RUN_BEGINNING;
	pid = (pid_t)syscall(SYS_getpid);
	if (pid != shim_owner()) {
		/* By clone(), which may have made a namespace. */
		if (run_namespace_id() != all_records->namespace_id)
			return NULL;
		record = run_record_find(all_records, pid);
	}
	if (!record && state == RUN_BEGINNING) {
		record = run_record_take(all_records, state, pid, name);
		run_records_wake(all_records);
	} else if (record) {
		run_record_restart(record, state, name);
	}
	return record;
}

void shim_record_exec_failed(struct run_record *record)
{
	if (record && record == own_record && !shim_filter_in_child() &&
	    (pid_t)syscall(SYS_getpid) == shim_owner())
		shim_record_again();
	else if (record)
		atomic_store(&record->state, RUN_TOLD);
}
