/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What tests of ktaskd share.
 */
#ifndef KTASK_VM_MADE_AHEAD_H
#define KTASK_VM_MADE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PAGE_SIZES "/sys/kernel/mm/transparent_hugepage/enabled"
/* Of pages, to the node whose CPU touches them; not on every kernel. */
#define NUMA_BALANCING "/proc/sys/kernel/numa_balancing"

/* is_daemon_here - says that @test is skipped if not */
bool is_daemon_here(const char *test);

/* What the last one said. */
#define DAEMON_LOG "/ktaskd.log"

/* start_daemon - one that serves processes by that option; @value may be NULL */
pid_t start_daemon(const char *option, const char *value);

/* note_daemon - what it said, as lines that are no verdict */
void note_daemon(void);

/* What a process maps that touches its memory in order. */
#define TOUCH_LEN (160 * MIB)
#define TOUCH_PAGES (TOUCH_LEN / PAGE)
/* Pages of a block of a window. */
#define TOUCH_BLOCK 512
/* How long it waits for what lies ahead, in all. */
#define TOUCH_WAITS_MS 90000

/* start_named - a process that does it with so much memory, under that name */
pid_t start_named(const char *name, int (*touch)(char *memory, void *arg),
		  void *arg);

/*
 * touch_pages - store to each page from @first to @end, and wait for what lies before it
 * @huge: for huge pages
 *
 * Return: false if there was something in one.
 */
bool touch_pages(char *memory, size_t first, size_t end, bool huge);

/* has_touched - whether the first @nr pages are as touch_pages() left them */
bool has_touched(const char *memory, size_t nr);

/* What a process ends with that found too few pages made: a daemon that gets no CPU is
 * late.  It is done again by a new one, which leaves the daemon more time. */
#define TOO_FEW 2

/* start_toucher - a process of that name that ends with what @touch returns */
pid_t start_toucher(const char *name, int (*touch)(char *memory));

/* touch_until_served - the status of the last process that did it */
int touch_until_served(const char *name, int (*touch)(char *memory));

/*
 * touch_first_pages - so many small pages, of which the process may make half by itself
 *
 * Return: 0; 1: there was something in a page; or TOO_FEW.
 */
int touch_first_pages(char *memory, size_t nr);

/* touch_all - the same of all, which must be kept */
int touch_all(char *memory);

/* count_present - pages of its memory */
size_t count_present(char *memory);

/* check_bound - 0 if no more was made than the bound allows, when nothing moves any more;
 * else 3 */
int check_bound(char *memory, size_t touched);

/* count_faults - of this process, that needed no disk */
long count_faults(void);

struct page_sizes {
	char text[100];
	char balancing[8];
};

/*
 * begin_small_pages - without huge pages, until end_small_pages()
 *
 * Nor are pages moved to the node that uses them: the kernel would have a process that
 * takes long fault on pages that are there, and faults are counted.
 *
 * Return: false where tests that ask nothing of nodes, and take long, are left out.
 */
bool begin_small_pages(struct page_sizes *before);
void end_small_pages(const struct page_sizes *before);

#endif /* KTASK_VM_MADE_AHEAD_H */
