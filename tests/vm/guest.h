/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of PID 1 share.
 */
#ifndef KTASK_VM_GUEST_H
#define KTASK_VM_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PATIENCE_MS 30000

/*
 * say_verdict - the verdict on one test
 * @format: with !@ok why it failed, with @ok why it is skipped; or NULL
 */
void say_verdict(bool ok, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* scale_rounds - how many of @whole this kernel shall do: tests/vm/Guest.pm */
unsigned scale_rounds(unsigned whole);

/* note_line - a line that is not a verdict */
void note_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How long jobs have helpers on idle CPUs only; 500 as a rule. */
#define ONLY_IDLE_MS "/sys/module/ktask/parameters/only_idle_ms"

/* write_file - 0 or a positive errno */
int write_file(const char *path, const char *text);

/* read_file - what there is, at most @size - 1 bytes, as a string */
void read_file(const char *path, char *text, size_t size);

void sleep_ms(long ms);

/* settle_code - changes the kernel's code where tests would do that later */
void settle_code(void);

/* set_cpu - let a CPU go or come; 0 or a positive errno */
int set_cpu(unsigned cpu, bool online);

/* Where ktask_test has its files. */
#define DIR_TESTS "/sys/kernel/debug/ktask_test"

/* run_in_kernel - the test of that name in ktask_test; 0 or a positive errno */
int run_in_kernel(const char *name);

/* one_in_kernel - the same, and says what came of it */
void one_in_kernel(const char *name);

/* start_in_kernel - a process that does it; its exit status is the errno */
pid_t start_in_kernel(const char *name);

/* stat_of - the value behind @name in ktask/stats */
unsigned long long stat_of(const char *name);

/* nr_helpers - of the pool, that are there now */
unsigned nr_helpers(void);

/* await_helpers - how many, as soon as these are neither too few nor too many */
unsigned await_helpers(unsigned least, unsigned most);

/* set_parameter - sets one of the module's; 0 or a positive errno */
int set_parameter(const char *name, const char *value);

/* has_process_helpers - helpers for a process are threads of it (Linux 6.9) */
bool has_process_helpers(void);

/* other_thread - a thread of the process that is not its first; 0: none now */
pid_t other_thread(pid_t pid);

/* wait_for_thread - the same, before long */
pid_t wait_for_thread(pid_t pid);

/* start_clearing - a process that clears memory until it is killed */
pid_t start_clearing(void);

/* kill_process - kill it, wait for its end */
void kill_process(pid_t pid);

/* status_of - the exit status of a child, 1000 if a signal ended it */
int status_of(pid_t pid);

/* run_program - note each line that it prints; its exit status, 1000 for a signal;
 * @argument: may be NULL */
int run_program(const char *path, const char *argument);

/* CHECK - says that the test failed and returns from it */
#define CHECK(condition)                                                      \
	do {                                                                  \
		if (!(condition)) {                                           \
			say_verdict(false, __func__, "line %d: %s", __LINE__, \
				    #condition);                              \
			return;                                               \
		}                                                             \
	} while (0)

/* ---- /dev/ktask ---- */

#define PAGE 4096ul
#define MIB (1ul << 20)
#define RANGE (32 * MIB) /* what tests work on */

/* open_device - open it */
int open_device(void);

/* map_memory - anonymous memory, or NULL */
char *map_memory(size_t len);

/* count_pages - pages that are there; at most RANGE */
size_t count_pages(char *addr, size_t len);

/* do_request - 0 or a positive errno; @failed may be NULL */
int do_request(int fd, unsigned long what, void *addr, size_t len,
	       unsigned flags, void **failed);

/* request_threads - how many threads did it; 0: it failed */
unsigned request_threads(int fd, unsigned long what, void *addr, size_t len,
			 unsigned flags);

/* request_of - the same as do_request() for what the descriptor @of stands for */
int request_of(int fd, unsigned long what, int of, uint64_t addr, size_t len,
	       unsigned flags, uint64_t *failed);

/* request_alone - the same by one thread, for a measurement */
int request_alone(int fd, unsigned long what, void *addr, size_t len);

/* count_pinned - pages that are pinned on this machine now, as far as was counted */
long count_pinned(void);

/* pins_become - they do, before long */
bool pins_become(long wanted);

/* kernel_kib - what the kernel has allocated for itself */
long kernel_kib(void);

/* ---- modules ---- */

/* load_module, unload_module - 0 or a positive errno; load_both - the usual two */
int load_module(const char *path, const char *options);
int unload_module(const char *name);
bool load_both(void);

/* Tests, by file. */
void test_device(void);
void test_clients(void);
void test_cpus(void);
void test_pool(void);
void test_process_helpers(void);
void test_engines(void);
void test_made_ahead(void);
void test_chosen_processes(void);
void test_served(void);
void test_killed_daemon(void);
void test_groups(void);
void test_failures(void);
void test_bad_days(void);
void test_neighbours(void);
void test_leaks(void);

/* Alone in a guest that has an IOMMU. */
void test_vfio(void);

/* seconds_now - of a clock that only goes on */
double seconds_now(void);

/* time_test - the test of that name ends now, and began where the last one ended */
void time_test(const char *name);

/* note_longest - the tests that took longest so far */
void note_longest(void);

/* time_halves - seconds of a request that two threads, or processes, do by halves
 * at once and then undo; 0 if it failed */
double time_halves(int fd, unsigned long what, char *addr, size_t len,
		   bool processes);

/* measure_case - what ktask/bench/vm/run asks for: 1 jobs in the module, 2 only claims of
 * chunks, 3 only what the kernel says of its boot, 4 requests, 6 only refreshes of other
 * users, 7 faults beside ktaskd, 8 a program that it serves; or
 * ktask/bench/fast_paths/compare: 5 empty jobs of two modules */
void measure_case(unsigned what);

/* These are 7 and 8. */
void measure_faults_beside_daemon(void);
void measure_served_program(void);

#endif /* KTASK_VM_GUEST_H */
