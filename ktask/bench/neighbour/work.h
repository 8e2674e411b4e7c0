/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The jobs of bench-neighbour, as libktask does them.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdbool.h>
#include <stddef.h>

/* How many threads a job is told to have. */
struct count {
	unsigned threads; /* with the caller, at most */
	bool fixed; /* from start to end, as far as policy allows */
};

struct outcome {
	double seconds;
	double tail_seconds; /* from the caller's last chunk to the end */
	unsigned threads; /* that did a chunk */
	unsigned lent; /* helpers that the caller's priority was lent */
};

struct work {
	const char *name;
	const char *title;
	/* Makes ready, does the job once, clears away; only the job is timed.
	 * Return: 0 or an errno. */
	int (*run)(const struct work *work, struct count count,
		   struct outcome *outcome);
	int thp_advice; /* memory */
	void (*item)(size_t index, size_t loops); /* computing */
	bool skewed; /* items differ 100-fold */
};

extern const struct work works[];
extern const unsigned nr_works;

const struct work *work_find(const char *name);

/*
 * works_init - how large jobs are
 * @bytes: of memory
 * @seconds: that one thread computes
 */
int works_init(size_t bytes, double seconds);
void works_size(size_t bytes);
void works_exit(void);

/* work_do_items - a thread function: units are items that are alike */
int work_do_items(void *start, void *end, void *arg);
/* work_items_in - how many of them one thread does in that time */
size_t work_items_in(double seconds);

/* Fresh memory of the size set, aligned to huge pages; NULL without any. */
char *work_map(int thp_advice);
void work_unmap(char *addr);

#endif /* BENCH_WORK_H */
