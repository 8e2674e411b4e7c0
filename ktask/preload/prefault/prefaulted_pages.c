/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What --prefault has made present, and what the program has done with it.
 *
 * Two questions are answered.  How much of it has the program not touched?  A
 * program that maps without end and touches nothing must not fill the machine.
 * And which pages must go again when the program registers a range with
 * userfaultfd?  It waits for faults on pages that would be missing without us.
 *
 * The kernel does not tell a page that we made from one that the program
 * touched, so contents decide: a page of zeros counts as untouched.  Where the
 * program wrote zeros, it may get less made, and a fault that it would not have
 * had before it registered.
 *
 * A table that is full forgets: then less is known, and no more.
 *
 * Locking: there is no lock, because a signal handler may map and unmap at any moment.
 * Whoever turns the length of a free entry into SIZE_MAX owns the entry until it writes
 * the length.  Any thread frees an entry, by a length of 0.
 *
 *	E: written by the owner of the entry.  Readers copy the entry and then read the
 *	   length again; if it has changed they pass over the entry.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/scoped.h"

#define NR_ENTRIES 64
#define NR_SAMPLES 32
#define SAMPLE_BYTES 32
/* Of a page that is looked at whole, so much at once. */
#define PIECE_BYTES 1024

struct made {
	_Atomic size_t len; /* 0: free; SIZE_MAX: being written */
	_Atomic uintptr_t base; /* E */
	_Atomic bool shared; /* E */
};

static struct made made_table[NR_ENTRIES];

void shim_made_add(void *base, size_t len, bool shared)
{
	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		size_t none = 0;

		if (!atomic_compare_exchange_strong(&made->len, &none,
						    SIZE_MAX))
			continue;
		atomic_store(&made->base, (uintptr_t)base);
		atomic_store(&made->shared, shared);
		atomic_store(&made->len, len);
		return;
	}
}

/* An entry as it was at one moment. */
struct made_range {
	uintptr_t start;
	size_t len;
	bool shared;
};

/* Return: false if it is free, or changes. */
static bool read_entry(struct made *made, struct made_range *range)
{
	range->len = atomic_load(&made->len);
	if (!range->len || range->len == SIZE_MAX)
		return false;
	range->start = atomic_load(&made->base);
	range->shared = atomic_load(&made->shared);
	return atomic_load(&made->len) == range->len;
}

/* The part of [start, end) that is in the range. */
static bool clip_to_range(const struct made_range *range, uintptr_t *start,
			  uintptr_t *end)
{
	if (*start < range->start)
		*start = range->start;
	if (*end > range->start + range->len)
		*end = range->start + range->len;
	return *start < *end;
}

void shim_made_drop(const void *addr, size_t len)
{
	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		uintptr_t start = (uintptr_t)addr, end = start + len;
		struct made_range range;

		if (end < start)
			end = UINTPTR_MAX;
		if (read_entry(made, &range) &&
		    clip_to_range(&range, &start, &end))
			atomic_compare_exchange_strong(&made->len, &range.len,
						       0);
	}
}

static bool is_zero(const char *bytes, size_t len)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, len - 1);
}

/* Return: bytes that are zero as far as a few samples tell. */
static size_t untouched_bytes(const struct made_range *range)
{
	char samples[NR_SAMPLES][SAMPLE_BYTES];
	struct iovec local = { samples, sizeof(samples) };
	struct iovec remote[NR_SAMPLES];
	size_t step = range->len / NR_SAMPLES & ~(size_t)4095, nr_zero = 0;

	for (size_t i = 0; i < NR_SAMPLES; i++) {
		remote[i].iov_base = (void *)(range->start + i * step);
		remote[i].iov_len = SAMPLE_BYTES;
	}
	/* What cannot be read is the program's to know. */
	if (process_vm_readv(getpid(), &local, 1, remote, NR_SAMPLES, 0) !=
	    (ssize_t)sizeof(samples))
		return 0;
	for (size_t i = 0; i < NR_SAMPLES; i++)
		nr_zero += is_zero(samples[i], SAMPLE_BYTES);
	return range->len / NR_SAMPLES * nr_zero;
}

size_t shim_made_untouched(void)
{
	keep_errno();
	size_t bytes = 0;

	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		struct made_range range;

		if (read_entry(made, &range))
			bytes += untouched_bytes(&range);
	}
	return bytes;
}

static bool is_zero_page(uintptr_t page, size_t page_bytes)
{
	char piece[PIECE_BYTES];

	for (size_t at = 0; at < page_bytes; at += sizeof(piece))
		if (shim_copy_in(piece, (void *)(page + at), sizeof(piece)) ||
		    !is_zero(piece, sizeof(piece)))
			return false;
	return true;
}

static void discard_range(const struct made_range *made, uintptr_t start,
			  uintptr_t end)
{
	if (start < end)
		real_madvise((void *)start, end - start,
			     made->shared ? MADV_REMOVE : MADV_DONTNEED);
}

static void discard_zero_pages(const struct made_range *made, uintptr_t start,
			       uintptr_t end)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), first = start;

	for (uintptr_t page = start; page < end; page += page_bytes) {
		if (is_zero_page(page, page_bytes))
			continue;
		discard_range(made, first, page);
		first = page + page_bytes;
	}
	discard_range(made, first, end);
}

void shim_made_undo(uintptr_t start, uintptr_t end, bool minor)
{
	keep_errno();

	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		uintptr_t from = start, to = end;
		struct made_range range;

		if (!read_entry(made, &range) ||
		    !clip_to_range(&range, &from, &to))
			continue;
		/* A minor fault is one on a page that is there, and not mapped. */
		if (minor && range.shared)
			real_madvise((void *)from, to - from, MADV_DONTNEED);
		else if (!minor)
			discard_zero_pages(&range, from, to);
	}
}
