/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * `ktask top` for people: a line of sums, a line for each job, and lines on what cannot be
 * seen.  On a small screen the last jobs are left out first, then these lines.
 */
#include <stdarg.h>

#include "cli/ui/bar.h"
#include "cli/ui/size.h"
#include "top.h"
#include "cli/ui/text.h"

struct page {
	FILE *out;
	const char *end;
	unsigned rows; /* left; UINT32_MAX: any number */
	unsigned columns;
};

__attribute__((format(printf, 2, 3))) static void
print_line(struct page *page, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!page->rows)
		return;
	if (page->rows != UINT32_MAX)
		page->rows--;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (page->columns && page->columns < sizeof(text))
		text[page->columns] = '\0';
	fprintf(page->out, "%s%s", text, page->end);
}

static unsigned all_helpers(const struct top *top)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < top->nr_jobs; i++)
		sum += top->jobs[i].info.helpers;
	return sum;
}

static void print_sums(struct page *page, const struct top *top)
{
	char nodes[256] = "";
	size_t len = 0;

	for (unsigned i = 0; top->nr_nodes > 1 && i < top->nr_nodes; i++) {
		int put = snprintf(nodes + len, sizeof(nodes) - len, "%s%u: %u",
				   i ? ", " : "; running on node ",
				   top->node_ids[i], top_node(top, i));

		if (put < 0 || len + (size_t)put >= sizeof(nodes))
			break;
		len += (size_t)put;
	}
	print_line(
		page,
		"%u job%s, %u helper%s; permits: %u of %u used by this user%s",
		top->nr_jobs, plural_suffix(top->nr_jobs), all_helpers(top),
		plural_suffix(all_helpers(top)), top->permits.used,
		top->permits.limit, nodes);
}

/* Bytes as bytes; what others count, as a number with three figures. */
static void amount_text(char text[SIZE_TEXT], const struct top_job *job,
			uint64_t units)
{
	if (job->bytes)
		size_text(text, units);
	else
		snprintf(text, SIZE_TEXT, "%.3g", (double)units);
}

static void rate_text(char text[SIZE_TEXT], const struct top_job *job)
{
	if (job->bytes)
		snprintf(text, SIZE_TEXT, "%.2f GB/s", job->rate / 1e9);
	else
		snprintf(text, SIZE_TEXT, "%.3g/s", job->rate);
}

static void nodes_text(char *text, size_t size, const struct top *top,
		       const struct top_job *job)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; top->nr_nodes > 1 && i < top->nr_nodes; i++) {
		int put;

		if (!job->seen)
			put = snprintf(text, size, ": ?");
		else
			put = snprintf(text + len, size - len, "%s%u",
				       i ? "+" : ": ", job->nodes[i]);
		if (!job->seen || put < 0 || len + (size_t)put >= size)
			break;
		len += (size_t)put;
	}
}

static void print_job(struct page *page, const struct top *top,
		      const struct top_job *job)
{
	const struct ktask_job_info *info = &job->info;
	char amount[SIZE_TEXT], rate[SIZE_TEXT], left[16] = "?", nodes[160];
	double part = 0;

	if (info->units_total)
		part = 100.0 * info->units_done / info->units_total;
	if (info->remaining_ns)
		bar_time(left, info->remaining_ns);
	amount_text(amount, job, info->units_total);
	rate_text(rate, job);
	nodes_text(nodes, sizeof(nodes), top, job);
	print_line(page, "%7d %-8.8s %-15s %3.0f%% %8s %10s %7s %4u of %u%s",
		   info->pid, job->user, info->name, part > 100 ? 100 : part,
		   amount, rate, left, info->helpers, info->wanted, nodes);
}

/* Rows that what is not seen takes, and an empty one before. */
static unsigned rows_of_rest(const struct top *top)
{
	unsigned nr = 0;
	char buf[128];

	while (top_not_seen(top, nr, buf))
		nr++;
	return nr + 1;
}

void top_print(FILE *out, const struct top *top, unsigned rows,
	       unsigned columns, const char *end)
{
	struct page page = { .out = out,
			     .end = end,
			     .rows = rows ? rows : UINT32_MAX,
			     .columns = columns };
	unsigned nr_rows;
	char buf[128];

	print_sums(&page, top);
	print_line(&page, "%s", "");
	print_line(&page, "%7s %-8s %-15s %4s %8s %10s %7s %9s%s", "PID",
		   "USER", "JOB", "DONE", "OF", "RATE", "LEFT", "HELPERS",
		   top->nr_nodes > 1 ? ": BY NODE" : "");
	nr_rows = page.rows;
	if (rows && nr_rows > rows_of_rest(top))
		nr_rows -= rows_of_rest(top);
	for (unsigned i = 0; i < top->nr_jobs && i < nr_rows; i++) {
		if (i + 1 == nr_rows && i + 1 < top->nr_jobs) {
			print_line(&page, "%7s %u more", "...",
				   top->nr_jobs - i);
			break;
		}
		print_job(&page, top, &top->jobs[i]);
	}
	print_line(&page, "%s", "");
	for (unsigned i = 0; top_not_seen(top, i, buf); i++)
		print_line(&page, "not seen: %s", buf);
}
