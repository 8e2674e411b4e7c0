/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See run_record.h.  All may be called in a signal handler and in a child of
 * vfork(2).
 */
#include <linux/futex.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "run_record.h"
#include "scoped.h"

static void raise_number(struct run_records *records, uint32_t nr)
{
	uint32_t now = atomic_load(&records->nr);

	while (now < nr &&
	       !atomic_compare_exchange_weak(&records->nr, &now, nr))
		;
}

static void fill_record(struct run_record *record, const char *name)
{
	atomic_store(&record->calls, 0);
	atomic_store(&record->bytes, 0);
	atomic_store(&record->left_calls, 0);
	atomic_store(&record->left_bytes, 0);
	strncpy(record->name, basename(name), RUN_RECORD_NAME - 1);
}

void run_record_restart(struct run_record *record, enum run_state state,
			const char *name)
{
	fill_record(record, name);
	atomic_store(&record->state, state);
}

struct run_record *run_record_take(struct run_records *records,
				   enum run_state state, int pid,
				   const char *name)
{
	for (uint32_t i = 0; i < RUN_RECORDS_MAX; i++) {
		struct run_record *record = &records->records[i];
		uint32_t expected = RUN_FREE;

		if (!atomic_compare_exchange_strong(&record->state, &expected,
						    RUN_TAKEN))
			continue;
		run_record_move(record, pid);
		fill_record(record, name);
		raise_number(records, i + 1);
		atomic_store(&record->state, state);
		return record;
	}
	atomic_fetch_add(&records->missed, 1);
	return NULL;
}

/* In this order: who sees the number sees when it was there. */
void run_record_move(struct run_record *record, int pid)
{
	atomic_store(&record->seen_ns, clock_ns(CLOCK_BOOTTIME));
	atomic_store(&record->pid, pid);
}

struct run_record *run_record_find(struct run_records *records, int pid)
{
	uint32_t nr = atomic_load(&records->nr);

	for (uint32_t i = 0; i < nr && i < RUN_RECORDS_MAX; i++) {
		struct run_record *record = &records->records[i];

		if (atomic_load(&record->state) >= RUN_BEGINNING &&
		    atomic_load(&record->pid) == pid)
			return record;
	}
	return NULL;
}

void run_records_wake(struct run_records *records)
{
	keep_errno();

	atomic_fetch_add(&records->changes, 1);
	/* Not a private one: the watcher is another process. */
	syscall(SYS_futex, &records->changes, FUTEX_WAKE, INT_MAX, NULL, NULL,
		0);
}

uint64_t run_namespace_id(void)
{
	keep_errno();
	struct stat st;
	uint64_t id = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;

	return id;
}
