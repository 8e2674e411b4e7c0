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
 * Entries are claimed with atomics, since a signal handler may map and unmap at
 * any moment.  A table that is full forgets: then less is known, and no more.
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
	uintptr_t base;
	bool shared;
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
		made->base = (uintptr_t)base;
		made->shared = shared;
		atomic_store(&made->len, len);
		return;
	}
}

/* The part of [start, end) that is in the entry. */
static bool clip_to_entry(struct made *made, uintptr_t *start, uintptr_t *end)
{
	size_t len = atomic_load(&made->len);

	if (!len || len == SIZE_MAX)
		return false;
	if (*start < made->base)
		*start = made->base;
	if (*end > made->base + len)
		*end = made->base + len;
	return *start < *end;
}

void shim_made_drop(const void *addr, size_t len)
{
	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		uintptr_t start = (uintptr_t)addr, end = start + len;

		if (end < start)
			end = UINTPTR_MAX;
		if (clip_to_entry(made, &start, &end))
			atomic_store(&made->len, 0);
	}
}

static bool is_zero(const char *bytes, size_t len)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, len - 1);
}

/* Return: bytes that are zero as far as a few samples tell. */
static size_t untouched_bytes(const struct made *made, size_t len)
{
	char samples[NR_SAMPLES][SAMPLE_BYTES];
	struct iovec local = { samples, sizeof(samples) };
	struct iovec remote[NR_SAMPLES];
	size_t step = len / NR_SAMPLES & ~(size_t)4095, nr_zero = 0;

	for (size_t i = 0; i < NR_SAMPLES; i++) {
		remote[i].iov_base = (void *)(made->base + i * step);
		remote[i].iov_len = SAMPLE_BYTES;
	}
	/* What cannot be read is the program's to know. */
	if (process_vm_readv(getpid(), &local, 1, remote, NR_SAMPLES, 0) !=
	    (ssize_t)sizeof(samples))
		return 0;
	for (size_t i = 0; i < NR_SAMPLES; i++)
		nr_zero += is_zero(samples[i], SAMPLE_BYTES);
	return len / NR_SAMPLES * nr_zero;
}

size_t shim_made_untouched(void)
{
	keep_errno();
	size_t bytes = 0;

	for (struct made *made = made_table; made < made_table + NR_ENTRIES;
	     made++) {
		size_t len = atomic_load(&made->len);

		if (len && len != SIZE_MAX)
			bytes += untouched_bytes(made, len);
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

static void discard_range(const struct made *made, uintptr_t start,
			  uintptr_t end)
{
	if (start < end)
		real_madvise((void *)start, end - start,
			     made->shared ? MADV_REMOVE : MADV_DONTNEED);
}

static void discard_zero_pages(const struct made *made, uintptr_t start,
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

		if (!clip_to_entry(made, &from, &to))
			continue;
		/* A minor fault is one on a page that is there, and not mapped. */
		if (minor && made->shared)
			real_madvise((void *)from, to - from, MADV_DONTNEED);
		else if (!minor)
			discard_zero_pages(made, from, to);
	}
}
