/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of PID 1 share in the guests of a patch series.
 *
 * The same program runs on the unpatched and on the patched kernel.  A fact is a
 * name and a value that must be the same on both; the host compares them.  A check
 * is right or wrong on each kernel by itself.
 */
#ifndef KTASK_SERIES_FACTS_H
#define KTASK_SERIES_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MIB (1ul << 20)
#define GIB (1ul << 30)
#define PAGE 4096ul
#define HUGE (2 * MIB)

#define POOL_DIR "/sys/kernel/mm/hugepages/hugepages-"
#define NODE_DIR "/sys/devices/system/node/node"
#define GROUP_DIR "/sys/fs/cgroup"

/* A pool of pages of one size, as its directories are named. */
struct pool {
	const char *name; /* "2048kB" */
	size_t size;
	unsigned flag; /* of memfd_create() */
};

extern const struct pool pool_2m, pool_1g;

/* tell_fact - @name may be made of words and numbers */
void tell_fact(const char *value, const char *name, ...)
	__attribute__((format(printf, 2, 3)));
void tell_fact_number(long value, const char *name, ...)
	__attribute__((format(printf, 2, 3)));

/* begin_set - the facts that follow are to be compared with those of another set */
void begin_set(const char *name);

/* check_that - a verdict of this kernel's */
void check_that(bool right, const char *name, ...)
	__attribute__((format(printf, 2, 3)));

/* skip_check - counted as skipped: what cannot be here, and why */
void skip_check(const char *reason, const char *name, ...)
	__attribute__((format(printf, 2, 3)));

/* note_line - a line for people */
void note_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* write_text - 0 or a positive errno; read_text - "" if there is none */
int write_text(const char *path, const char *text);
void read_text(const char *path, char *text, size_t size);
int write_number(const char *path, long value);

/* number_in - behind @name in a file, or its first number for NULL; -1: none */
long number_in(const char *path, const char *name);

/* read_option - of the kernel's command line: "series.NAME=NUMBER" */
long read_option(const char *name, long otherwise);

/* option_text - the word behind "series.NAME=", or "" */
void option_text(const char *name, char *text, size_t size);

unsigned nr_nodes(void);

/* is_of_series - one that the series built: it has what guest.config says */
bool is_of_series(void);

/* helpers_expected - this kernel has ktask, and was not told to do without them */
bool helpers_expected(void);

/* pool_number - of "free_hugepages" and its like; @nid may be -1 for all nodes */
long pool_number(const struct pool *pool, int nid, const char *what);

/* pool_set - how many there are then */
long pool_set(const struct pool *pool, long nr);

/* enter_group - this process, by the name of the group */
void enter_group(const char *name);

/* run_child - @body in a process of its own; its exit status, 1000 + a signal */
int run_child(void (*body)(void *arg), void *arg);

/* map_memory - private and aligned to 2 MiB, or NULL; advice is madvise()'s */
char *map_memory(size_t len, int advice);

/* populate_memory - touch every page; keeps_... - are they as that left them? */
void populate_memory(char *addr, size_t len);
bool keeps_pages(const char *addr, size_t first, size_t nr);
bool keeps_contents(const char *addr, size_t len);

/* Memory of which @map makes about @len bytes, and says how many; NULL: it cannot */
struct memory_kind {
	const char *name;
	char *(*map)(size_t *len);
};

#define NR_MEMORY_KINDS 9
extern const struct memory_kind memory_kinds[NR_MEMORY_KINDS];

/* What all processes have, in pages, and at last free pages of the pool. */
#define NR_USES 6
struct use {
	long pages[NR_USES + 1];
};

void read_use(struct use *use);

/* tell_use_since - how much more there is now, as facts */
void tell_use_since(const struct use *before, const char *what,
		    const char *when);

double seconds_now(void);

/* helpers_worked - of all jobs so far; -1 on a kernel that has no ktask */
long helpers_worked(void);

/* hosts_found_short - how often a job found that the host lacks CPUs for helpers */
long hosts_found_short(void);

/*
 * check_helped - a verdict: helpers work in a job of @work
 * @prepare: what comes before it and may be helped as well, or NULL
 *
 * Both are repeated until one works, for minutes: the only helper may be on its way from
 * the job before, and the guest's CPUs get the host's when they can.  Nothing is said of
 * a kernel that has no helpers; one that cannot count them fails.
 */
#define HELPER_SECONDS 300

void check_helped(void (*prepare)(void), void (*work)(void), const char *name);

/* Tries that went wrong with no excuse, until what is repeated is a failure. */
#define WRONG_TRIES_MAX 10

void tell_boot_facts(void);
void tell_pool_facts(void);
void tell_file_facts(void);
void tell_gigantic_facts(void);
void tell_vfio_facts(void);
void tell_vfio_edges(void);
void tell_vfio_nodes(void);
void tell_vfio_tables(void);
void tell_driver_facts(void);
void tell_unmap_facts(void);
void tell_exit_facts(void);
void tell_mirror_facts(void);
void tell_flush_facts(void);
void tell_charge_facts(void);
void tell_device_facts(void);
void tell_quota_facts(void);
void tell_bad_days(void);
void tell_own_tests(void);

/* On kernels that find errors: verdicts, with allocations that fail, and of leaks.
 * allocations_can_fail() is itself a verdict where series.debug=kasan. */
#define NR_FAILING_PERCENTS 4
extern const unsigned failing_percents[NR_FAILING_PERCENTS];
bool allocations_can_fail(void);
void check_failing_clients(void);
void check_no_leaks(void);

#define ROUNDS_MAX 15

struct times {
	const char *name;
	double seconds[ROUNDS_MAX];
	double loops[ROUNDS_MAX]; /* seconds of a neighbour's million loops */
	int nr;
};

/* When a round began, and what the neighbours had done by then. */
struct timing {
	double start;
	unsigned long loops;
};

/* end_timing - adds a round to @times, of which there are ROUNDS_MAX at most */
struct timing begin_timing(void);
void end_timing(struct times *times, const struct timing *timing);

/* tell_times - "# time NAME: seconds..." for ktask/bench/vm/series */
void tell_times(const struct times *times);

/* measure_wanted - by its name, of which series.clients= may have the beginning */
bool measure_wanted(const char *name);

void measure_clients(void);
void measure_vfio(int rounds);
void measure_device(int rounds);

#endif /* KTASK_SERIES_FACTS_H */
