/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What both applications do alike on the command line: numbers as options,
 * the runtime's options, the one line that says what went wrong.
 */
#ifndef APPS_APP_H
#define APPS_APP_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktask/runtime.h>

/** Options that both have; the keys of their own are letters. */
struct app_options {
	const char *dir; /* where files are put */
	unsigned every; /* steps between checkpoints or snapshots; 0: none */
	unsigned workers; /* 0: the runtime's choice */
	bool buffered; /* through the page cache */
	bool behind; /* write copies, by tasks that nothing waits for */
	bool no_umt;
	bool events; /* receive by events, not by tasks that block */
	bool sequential; /* without the runtime */
	bool verify;
	bool json;
};

/** For argp.children; the application gives it its struct app_options. */
extern const struct argp_child app_argp_children[];

/** app_number - the value of an option as a number in [@least, @most] */
unsigned app_number(struct argp_state *state, const char *name,
		    const char *text, unsigned least, unsigned most);

/** app_part_start - where the part of @rank begins, if @ranks share @total evenly */
static inline unsigned app_part_start(unsigned total, int rank, int ranks)
{
	return (unsigned)((uint64_t)total * (unsigned)rank / (unsigned)ranks);
}

/** app_fail - `NAME: what: why` on standard error; returns @error */
int app_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** app_start - start the runtime as the options say; 0 or -errno, told */
int app_start(const struct app_options *options);

/** app_spawn - ktrt_spawn_attr(), with a copy of @arg; 0 or -errno */
int app_spawn(ktrt_func func, const void *arg, size_t arg_bytes,
	      const struct ktrt_dep *deps, size_t nr_deps, int priority);

#endif /* APPS_APP_H */
