/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the processes of `ktask run --report` leave for the watcher: a record for each, in
 * memory that all of them share.  A process that is ended by a signal cannot report, but
 * its record outlives it.
 *
 * A process makes its own record, or its parent does; the watcher frees it when the
 * process is gone.  Any of these processes can write anything here, so the watcher does
 * not trust it.
 *
 * Locking: there is no lock, because whoever holds it may be killed.  Whoever turns the
 * state of a record from RUN_FREE into another, by compare-and-swap, fills it in.  The
 * name is written before the state says that it is filled in.  From then on its process
 * writes it, and the watcher reads it and frees it.
 *
 *	preload/exit/process_record.c	writes records
 *	cli/cmd/run_watch.c			makes the memory, and reads them
 */
#ifndef KTASK_UTIL_RUN_RECORD_H
#define KTASK_UTIL_RUN_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

/* The variable that names the memory: a path below /proc. */
#define RUN_RECORDS_VARIABLE "KTASK_RUN_RECORDS"
/* The target of the link at that path. */
#define RUN_RECORDS_LINK "/memfd:ktask-run (deleted)"
#define RUN_RECORDS_MAGIC 0x6b746b31u
#define RUN_RECORDS_MAX 4096
#define RUN_RECORD_NAME 64

enum run_state {
	RUN_FREE,
	RUN_TAKEN, /* being filled in */
	RUN_FORKING, /* of a child that @pid is making */
	RUN_BEGINNING, /* the shim is not there yet */
	RUN_ALIVE,
	RUN_FILTERED, /* alive, behind a filter that the library cannot work in */
	RUN_UNTOLD, /* its report could not be written */
	RUN_TOLD, /* its report is written */
};

struct run_record {
	_Atomic uint32_t state; /* enum run_state */
	_Atomic int32_t pid;
	/* CLOCK_BOOTTIME when the process was there for sure: one that began
	 * later has only the same number. */
	_Atomic uint64_t seen_ns;
	_Atomic uint64_t calls, bytes; /* as struct report_totals */
	_Atomic uint64_t left_calls, left_bytes;
	_Atomic int32_t error; /* why it could not: an errno */
	char name[RUN_RECORD_NAME];
};

struct run_records {
	uint32_t magic;
	uint64_t
		namespace_id; /* inode of the PID namespace that numbers are of */
	_Atomic uint32_t changes; /* a futex: counts records that were taken */
	_Atomic uint32_t nr; /* no record from there on was ever taken */
	_Atomic uint32_t missed; /* processes for which none was free */
	struct run_record records[RUN_RECORDS_MAX];
};

/**
 * run_record_take - a free record, in the given state
 *
 * Wakes no watcher: see run_records_wake().  Return: NULL if none is free.
 */
struct run_record *run_record_take(struct run_records *records,
				   enum run_state state, int pid,
				   const char *name);

/** run_record_move - make it that of process @pid, which is there now */
void run_record_move(struct run_record *record, int pid);

/** run_record_find - the record of @pid, NULL if there is none */
struct run_record *run_record_find(struct run_records *records, int pid);

/**
 * run_record_restart - reset the record of a process that begins, or executes a program
 *
 * @name may be a path, of which the last part is kept.
 */
void run_record_restart(struct run_record *record, enum run_state state,
			const char *name);

/** run_records_wake - tell the watcher of a change; leaves errno alone */
void run_records_wake(struct run_records *records);

/** run_namespace_id - of the PID namespace of this process; 0 unknown */
uint64_t run_namespace_id(void);

#endif /* KTASK_UTIL_RUN_RECORD_H */
