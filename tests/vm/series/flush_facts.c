/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * munmap() of much memory that other CPUs use meanwhile: none of them reaches a page
 * by what its TLB still knows, once that page is free.
 *
 * The guest's kernel clears memory when it is freed (init_on_free=1), so that a page
 * that a CPU reaches too late is empty at once.  The TLB of an emulated CPU forgets
 * nothing by itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <unistd.h>

#include "facts.h"

#define LEN (96 * MIB)
#define ROUNDS 6
#define NR_THREADS 2
/* As many pages, in all chunks, and no two in the same place of a TLB. */
#define NR_PAGES 95
#define STRIDE (257 * PAGE)
#define MARK 0x5a

#define KLOG_READ_ALL 3

struct memory {
	char *addr;
	int gone; /* set behind munmap() */
};

struct toucher {
	const struct memory *memory;
	useconds_t nap_us; /* between two passes: its CPU idles, or never */
	int ready; /* it has touched each page, so that its CPU knows them */
	bool faulted[NR_PAGES];
	int nr_left; /* of them; the others faulted */
	int empty; /* were reached when they were free */
	int late; /* could be used behind munmap() */
};

/* What all rounds found. */
struct findings {
	int empty, late;
	int helped; /* rounds */
};

static __thread sigjmp_buf fault;

static void leave_fault(int nr)
{
	(void)nr;
	siglongjmp(fault, 1);
}

static void use_page(struct toucher *toucher, size_t nr)
{
	volatile char *at = toucher->memory->addr + nr * STRIDE;
	int gone = __atomic_load_n(&toucher->memory->gone, __ATOMIC_SEQ_CST);

	if (*at != MARK)
		toucher->empty++;
	/* Of others a TLB knows only that they may be read. */
	if (nr % 2)
		*at = MARK;
	if (gone)
		toucher->late++;
}

/* Return: false if that page is not there any more. */
static bool touch_page(struct toucher *toucher, size_t nr)
{
	if (sigsetjmp(fault, 0))
		return false;
	use_page(toucher, nr);
	return true;
}

static void touch_pages(struct toucher *toucher)
{
	for (size_t nr = 0; nr < NR_PAGES; nr++)
		if (!toucher->faulted[nr] && !touch_page(toucher, nr)) {
			toucher->faulted[nr] = true;
			toucher->nr_left--;
		}
}

/* Until all have faulted, and once more behind munmap() if some do not. */
static void *touch_until_gone(void *arg)
{
	struct toucher *toucher = arg;
	int gone;

	do {
		gone = __atomic_load_n(&toucher->memory->gone,
				       __ATOMIC_SEQ_CST);
		touch_pages(toucher);
		__atomic_store_n(&toucher->ready, 1, __ATOMIC_SEQ_CST);
		if (toucher->nap_us)
			usleep(toucher->nap_us);
	} while (toucher->nr_left && !gone);
	return NULL;
}

static void unmap_under_touchers(struct findings *findings)
{
	struct memory memory = { .addr = map_memory(LEN, MADV_NOHUGEPAGE) };
	struct toucher touchers[NR_THREADS] = { { .nap_us = 0 },
						{ .nap_us = 200 } };
	pthread_t threads[NR_THREADS];
	long helped;

	populate_memory(memory.addr, LEN);
	for (size_t nr = 0; nr < NR_PAGES; nr++)
		memory.addr[nr * STRIDE] = MARK;
	for (size_t i = 0; i < NR_THREADS; i++) {
		touchers[i].memory = &memory;
		touchers[i].nr_left = NR_PAGES;
		if (pthread_create(&threads[i], NULL, touch_until_gone,
				   &touchers[i]))
			_exit(1);
	}
	for (size_t i = 0; i < NR_THREADS; i++)
		while (!__atomic_load_n(&touchers[i].ready, __ATOMIC_SEQ_CST))
			usleep(1000);
	helped = helpers_worked();
	munmap(memory.addr, LEN);
	__atomic_store_n(&memory.gone, 1, __ATOMIC_SEQ_CST);
	findings->helped += helpers_worked() > helped;
	for (size_t i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], NULL);
		findings->empty += touchers[i].empty;
		findings->late += touchers[i].late;
	}
}

/* Helpers come when they can: some rounds more until one was there. */
static void unmap_by_rounds(struct findings *findings)
{
	bool may_help = helpers_expected();
	double until = seconds_now() + HELPER_SECONDS;

	for (int i = 0; i < ROUNDS || (may_help && !findings->helped &&
				       seconds_now() < until);
	     i++)
		unmap_under_touchers(findings);
}

static void touch_what_goes(void *arg)
{
	struct sigaction action = { .sa_handler = leave_fault,
				    .sa_flags = SA_NODEFER };
	struct findings findings = { 0 };

	(void)arg;
	sigaction(SIGSEGV, &action, NULL);
	unmap_by_rounds(&findings);
	check_that(!findings.empty,
		   "no CPU reaches a page that munmap() has freed: %d",
		   findings.empty);
	check_that(!findings.late,
		   "each touch behind munmap() faults: %d do not",
		   findings.late);
	if (helpers_expected())
		check_that(findings.helped,
			   "helpers unmap what other CPUs use: in %d rounds",
			   findings.helped);
}

/* The kernel says so when it begins; what it was told counts once its log has lost
 * that. */
static bool clears_what_is_freed(void)
{
	static char log[256 << 10], told[4096];
	int len = klogctl(KLOG_READ_ALL, log, sizeof(log) - 1);

	if (len > 0 && strstr(log, "mem auto-init:"))
		return strstr(log, "heap free:on");
	read_text("/proc/cmdline", told, sizeof(told));
	return strstr(told, "init_on_free=1");
}

void tell_flush_facts(void)
{
	check_that(clears_what_is_freed(), "the kernel clears what is freed");
	tell_fact_number(run_child(touch_what_goes, NULL), "touching: child");
}
