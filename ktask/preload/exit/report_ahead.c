/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The line of the report on memory that was made ahead of its touches, or would have
 * been.
 *
 * Locking: counts.h.
 */
#include <sys/resource.h>

#include "ahead/ahead_window.h"
#include "counts.h"
#include "util/report_line.h"

static void append_seconds(struct report_line *line, const atomic_ullong *ns)
{
	unsigned long long value = atomic_load(ns);

	report_append(line, "%llu.%06llu s", value / 1000000000,
		      value / 1000 % 1000000);
}

static void append_unmade(struct report_line *line, const atomic_ullong *nr,
			  const char *why)
{
	unsigned long long unmade = atomic_load(nr),
			   mappings = atomic_load(&shim_counts.ahead.mappings);

	if (unmade && mappings == 1)
		report_append(line, "; the reason: %s", why);
	else if (unmade)
		report_append(line, "; nothing in %llu of %llu mappings: %s",
			      unmade, mappings, why);
}

static void append_made(struct report_line *line)
{
	const struct shim_ahead *ahead = &shim_counts.ahead;

	if (!atomic_load(&ahead->made)) {
		report_append(line, ", nothing made ahead");
		return;
	}
	report_append(line, ", ");
	report_append_size(line, atomic_load(&ahead->made));
	report_append(line, " made ahead (at most ");
	append_seconds(line, &ahead->cpu_ns);
	report_append(line, " saved, at most ");
	report_append_size(line, atomic_load(&ahead->wasted));
	report_append(line, " untouched)");
}

static void append_advised(struct report_line *line)
{
	unsigned long long bytes = atomic_load(&shim_counts.ahead.advised);

	if (!bytes)
		return;
	report_append(line, ", huge pages advised for ");
	report_append_size(line, bytes);
	report_append(line, " while no CPU was idle");
}

/* The most that stays untouched if the program touches all but the last window. */
static unsigned long long wasted_bytes(unsigned long long touched)
{
	/* In bytes as in pages. */
	return ahead_allowed_pages(atomic_load(&shim_counts.ahead.first),
				   touched);
}

/*
 * Half of the system time of all faults in memory that was touched in order, because
 * helpers and the program share these faults.
 */
static void append_forecast(struct report_line *line,
			    unsigned long long touched)
{
	struct rusage usage;
	unsigned long long faults_bytes, us;

	if (!touched || getrusage(RUSAGE_SELF, &usage) || !usage.ru_minflt) {
		report_append(line, ", nothing would be made ahead");
		return;
	}
	faults_bytes = (unsigned long long)usage.ru_minflt * 4096;
	us = (unsigned long long)usage.ru_stime.tv_sec * 1000000 +
	     (unsigned long long)usage.ru_stime.tv_usec;
	if (touched < faults_bytes)
		us = us / 1024 * (touched / (faults_bytes / 1024 + 1));
	report_append(line,
		      ", of which helpers would make a part ahead (at most "
		      "%llu.%06llu s saved, at most ",
		      us / 2 / 1000000, us / 2 % 1000000);
	report_append_size(line, wasted_bytes(touched));
	report_append(line, " untouched)");
}

void shim_ahead_tell(struct report_line *line, bool dry)
{
	const struct shim_ahead *ahead = &shim_counts.ahead;
	unsigned long long mappings = atomic_load(&ahead->mappings);

	report_append(line, "ktask: ahead: %llu mapping%s of ", mappings,
		      mappings == 1 ? "" : "s");
	report_append_size(line, atomic_load(&ahead->bytes));
	report_append(line,
		      atomic_load(&ahead->touched) ? ", at least " : ", ");
	report_append_size(line, atomic_load(&ahead->touched));
	report_append(line, " touched in order");
	if (dry)
		append_forecast(line, atomic_load(&ahead->touched));
	else
		append_made(line);
	append_advised(line);
	append_unmade(line, &ahead->random, "touched at random");
	append_unmade(line, &ahead->unhelped, "no helper got a CPU");
	append_unmade(line, &ahead->memory, "too little memory is left");
}
