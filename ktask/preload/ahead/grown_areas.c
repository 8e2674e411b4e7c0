/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See grown_areas.h.  Mappings are told apart by their addresses.  An address is new if it
 * was in no mapping when they were last read, is in none that the shim has made since
 * then, and in none that is watched.
 *
 * Locking: there is no lock.
 *	A: atomic; of any thread.  If two threads write at once, parts of both may remain:
 *	   then a mapping is found twice, or not at all
 *	F: of the thread that has set is_finding
 *	W: the watcher's
 */
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ops/mapping.h"
#include "preload/ahead/grown_areas.h"
#include "preload/ahead/large_mappings.h"
#include "preload/shim.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/large_static.h"
#include "util/memory.h"
#include "util/present_samples.h"

#define NR_KNOWN 128
#define NR_NOTED 8
#define NR_AREAS 128
#define NR_TOLD 64
/* Samples of a new mapping.  If all are present it grew as it was touched, and nothing is
 * ahead of the program. */
#define NR_SAMPLES 16

/* The time between two polls of the size of the address space: at least AREAS_TIMES the
 * time of reading all mappings.  After POLLS_IN_VAIN polls at AREAS_MOST_NS polling stops
 * until the watcher is told of something. */
#define AREAS_LEAST_NS 20000000
#define AREAS_MOST_NS 1000000000
#define AREAS_TIMES 50
#define POLLS_IN_VAIN 8

struct area {
	uintptr_t start, end;
};

struct shared_area {
	_Atomic uintptr_t start, end;
};

static struct shared_area known_areas[NR_KNOWN] LARGE_STATIC; /* A: a ring */
static atomic_ulong nr_known; /* A: ever */
static struct shared_area noted_areas[NR_NOTED]; /* A: no start: free */
static atomic_flag is_finding = ATOMIC_FLAG_INIT; /* A */
static struct area old_areas[NR_AREAS] LARGE_STATIC; /* F */
static size_t nr_old; /* F */
static unsigned long known_before; /* F: of nr_known, when they were read */
static uint64_t find_ns; /* F: what the last reading took */
static atomic_bool is_unsure; /* A: the mappings are to be read again */
static size_t seen_bytes; /* W */
static uint64_t poll_due_ns, poll_delay_ns; /* W */
static unsigned nr_in_vain; /* W */

void grown_areas_know(const void *base, size_t len)
{
	unsigned long at = atomic_fetch_add(&nr_known, 1) % NR_KNOWN;

	atomic_store(&known_areas[at].end, (uintptr_t)base + len);
	atomic_store(&known_areas[at].start, (uintptr_t)base);
}

/* ---- what an allocator made ---- */

void grown_areas_note(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < NR_NOTED; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&noted_areas[i].end, &none,
						    end))
			continue;
		atomic_store(&noted_areas[i].start, start);
		return;
	}
}

bool grown_areas_is_private(uintptr_t start, uintptr_t end)
{
	return mapping_all_private(start, end, 0);
}

bool grown_areas_noted(void)
{
	for (size_t i = 0; i < NR_NOTED; i++)
		if (atomic_load_explicit(&noted_areas[i].start,
					 memory_order_relaxed))
			return true;
	return false;
}

bool grown_areas_take(uintptr_t *start, uintptr_t *end)
{
	for (size_t i = 0; i < NR_NOTED; i++) {
		*start = atomic_exchange(&noted_areas[i].start, 0);
		if (!*start)
			continue;
		*end = atomic_exchange(&noted_areas[i].end, 0);
		if (grown_areas_is_private(*start, *end))
			return true;
	}
	return false;
}

size_t grown_areas_drop(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < NR_NOTED; i++) {
		uintptr_t start = atomic_exchange(&noted_areas[i].start, 0);

		if (start)
			bytes +=
				atomic_exchange(&noted_areas[i].end, 0) - start;
	}
	return bytes;
}

/* ---- what nobody told of ---- */

struct finder {
	struct area areas[NR_AREAS];
	struct area told[NR_TOLD]; /* those that were new */
	size_t nr, nr_told;
	bool full;
	uintptr_t stack; /* an address in the main thread's */
	uint64_t most; /* bytes: what is larger only reserves addresses */
};

static int collect_area(const struct mapping *mapping, void *arg)
{
	struct finder *finder = arg;
	size_t len = mapping->end - mapping->start;

	if (len < shim_ahead_min_bytes || len > finder->most ||
	    !mapping_is_private(mapping) ||
	    (finder->stack >= mapping->start && finder->stack < mapping->end))
		return 0;
	finder->full = finder->nr == NR_AREAS;
	if (!finder->full)
		finder->areas[finder->nr++] =
			(struct area){ mapping->start, mapping->end };
	return finder->full;
}

/* Get the @i-th area that is not new; false: there are no more. */
static bool get_decided(size_t i, struct area *area)
{
	unsigned long known = atomic_load(&nr_known) - known_before;
	const struct large_mapping *mapping;
	int state;

	if (i < nr_old) {
		*area = old_areas[i];
		return true;
	}
	i -= nr_old;
	if (i < known) {
		i = (known_before + i) % NR_KNOWN;
		*area = (struct area){ known_areas[i].start,
				       known_areas[i].end };
		return true;
	}
	i -= known;
	if (i >= large_mappings_used())
		return false;
	mapping = &large_mappings[i];
	state = atomic_load(&mapping->state);
	*area = (struct area){ 0, 0 };
	/* An area that was found and given up at once must be found again. */
	if (state == MAPPING_WATCHED ||
	    (state == MAPPING_STOPPED && !mapping->found))
		*area = (struct area){ mapping->start, mapping->end };
	return true;
}

/* Return: the first new address from @at on, or @end.  @next: set to where the new area
 * ends. */
static uintptr_t skip_decided(uintptr_t at, uintptr_t end, uintptr_t *next)
{
	struct area area;
	bool skipped = true;

	*next = end;
	while (skipped && at < end) {
		skipped = false;
		*next = end;
		for (size_t i = 0; get_decided(i, &area); i++) {
			if (at >= area.start && at < area.end) {
				at = area.end;
				skipped = true;
			} else if (area.start > at && area.start < *next) {
				*next = area.start;
			}
		}
	}
	return at < end ? at : end;
}

static bool is_all_present(uintptr_t start, uintptr_t end)
{
	size_t part = (end - start) / NR_SAMPLES;

	for (size_t i = 0; i < NR_SAMPLES; i++)
		if (!page_is_present(start + i * part + part / 2))
			return false;
	return true;
}

static void tell_of(struct finder *finder, uintptr_t start, uintptr_t end,
		    void (*found)(uintptr_t start, uintptr_t end))
{
	if (finder->nr_told == NR_TOLD)
		return;
	finder->told[finder->nr_told++] = (struct area){ start, end };
	found(start, end);
}

static void tell_new(struct finder *finder,
		     void (*found)(uintptr_t start, uintptr_t end))
{
	for (size_t i = 0; i < finder->nr; i++) {
		uintptr_t at = finder->areas[i].start, next;

		while (at < finder->areas[i].end) {
			at = skip_decided(at, finder->areas[i].end, &next);
			if (at < finder->areas[i].end &&
			    next - at >= shim_ahead_min_bytes &&
			    !is_all_present(at, next))
				tell_of(finder, at, next, found);
			at = next;
		}
	}
}

static void find_areas(struct finder *finder,
		       void (*found)(uintptr_t start, uintptr_t end))
{
	unsigned long known = atomic_load(&nr_known);
	const unsigned long replaced = large_mappings_replaced();

	if (mapping_each(0, UINTPTR_MAX, 0, collect_area, finder) &&
	    !finder->full)
		return;
	/* If the ring of known areas was overwritten, a known one could seem new. */
	if (replaced && !finder->full && known - known_before <= NR_KNOWN)
		tell_new(finder, found);
	/* Another mapping may have replaced them meanwhile. */
	if (!replaced || large_mappings_replaced() != replaced) {
		for (size_t i = 0; i < finder->nr_told; i++)
			large_mappings_give_up_found(finder->told[i].start,
						     finder->told[i].end);
		atomic_store(&is_unsure, true);
		return;
	}
	for (nr_old = 0; nr_old < finder->nr; nr_old++)
		old_areas[nr_old] = finder->areas[nr_old];
	known_before = known;
}

void grown_areas_find(void (*found)(uintptr_t start, uintptr_t end))
{
	struct finder finder = {
		.stack = (uintptr_t)getauxval(AT_EXECFN),
		.most = memory_available_on_machine(),
	};
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

	if (atomic_flag_test_and_set(&is_finding)) {
		/* The thread that is finding them may give up all that it finds. */
		atomic_store(&is_unsure, true);
		return;
	}
	find_areas(&finder, found);
	find_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	atomic_flag_clear(&is_finding);
}

/* ---- when to poll ---- */

static size_t mapped_bytes(void)
{
	char text[128];

	return file_text("/proc/self/statm", text, sizeof(text)) > 0
		       ? strtoul(text, NULL, 10) * AHEAD_PAGE_BYTES
		       : 0;
}

static void plan_poll(bool grown, uint64_t now_ns)
{
	if (grown)
		poll_delay_ns = AREAS_LEAST_NS;
	else if (poll_delay_ns < AREAS_MOST_NS)
		poll_delay_ns += poll_delay_ns / 2;
	else
		nr_in_vain++;
	if (poll_delay_ns < AREAS_TIMES * find_ns)
		poll_delay_ns = AREAS_TIMES * find_ns;
	poll_due_ns = nr_in_vain < POLLS_IN_VAIN ? now_ns + poll_delay_ns
						 : UINT64_MAX;
}

void grown_areas_expect(uint64_t now_ns)
{
	nr_in_vain = 0;
	poll_delay_ns = AREAS_LEAST_NS;
	if (poll_due_ns > now_ns + AREAS_LEAST_NS)
		poll_due_ns = now_ns + AREAS_LEAST_NS;
}

bool grown_areas_poll(uint64_t now_ns, uint64_t *due_ns)
{
	size_t bytes;
	bool grown, again;

	*due_ns = poll_due_ns;
	if (now_ns < poll_due_ns)
		return false;
	bytes = mapped_bytes();
	grown = bytes >= seen_bytes + shim_ahead_min_bytes;
	if (grown || bytes < seen_bytes)
		seen_bytes = bytes;
	plan_poll(grown, now_ns);
	*due_ns = poll_due_ns;
	again = atomic_exchange(&is_unsure, false);
	return grown || again;
}

bool grown_areas_had_more(void)
{
	static _Atomic size_t before; /* A */
	struct rusage usage;
	size_t bytes;

	if (getrusage(RUSAGE_SELF, &usage))
		return false;
	bytes = (size_t)usage.ru_maxrss * 1024;
	if (bytes < atomic_load(&before) + shim_ahead_min_bytes)
		return false;
	atomic_store(&before, bytes);
	return true;
}

void grown_areas_forget(void)
{
	atomic_flag_clear(&is_finding);
	atomic_store(&is_unsure, false);
	poll_due_ns = 0;
	poll_delay_ns = AREAS_LEAST_NS;
	nr_in_vain = 0;
}
