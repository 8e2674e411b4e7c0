/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which pages --prefault has made present, and whether the program has touched them.
 *
 * This answers two questions.  How much has the program not touched?  A program that
 * keeps mapping memory and touches nothing must not fill the machine.  And which pages
 * must be given back when the program registers a range with userfaultfd?  It waits for
 * faults on pages that would be absent without --prefault.
 *
 * The kernel does not tell which of the pages the program has touched.  So their contents
 * decide: a page of zeros counts as untouched.  If the program wrote those zeros, less may
 * be made for it, and it may get a fault that it would not have had.
 *
 * The table is small.  When it is full, entries that the program has touched are removed,
 * then neighbours are joined.  If that does not help, nothing more is made.  Pages of a
 * removed entry are not given back for userfaultfd.  Only holes that the program cuts make
 * the table grow, into a mapping of its own, because nothing may be allocated.  The former
 * table stays mapped, because other threads may be reading it.
 *
 * Behaves badly: the table forgets the smaller parts if it would have more than
 * SLOTS_MOST, which is as many mappings as a process may have, or if no memory can be
 * mapped.  Cutting a hole takes time in proportion to the table.  Memory that mremap()
 * moves or extends is forgotten, and so is memory that mbind() places.
 *
 * Locking: table_version is odd while a thread changes the table.  That thread has all
 * signals blocked, because a signal handler may map and unmap at any moment.  Other
 * threads wait.  Most calls that change a mapping need no lock: they look for an entry,
 * and then check the version.
 *
 *	L: written by the thread that made the version odd; read any time
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "preload/prefault/uninterrupted.h"
#include "preload/shim.h"
#include "util/assertion.h"
#include "util/large_static.h"
#include "util/present_samples.h"
#include "util/scoped.h"

/* Mappings, and parts of them that holes have left. */
#define NR_ENTRIES 64
#define NR_SLOTS 96
#define SLOTS_MOST 65536
#define NO_ENTRY SIZE_MAX
#define NR_SAMPLES 32
#define SAMPLE_BYTES 32
/* Bytes that are compared at once when a whole page is checked. */
#define PIECE_BYTES 1024
/* Whoever waits for the table polls this often. */
#define TABLE_POLL_NS 20000

struct made_range {
	uintptr_t start, end;
	enum shim_made_kind kind;
	uintptr_t segment; /* where it was attached; 0: none is */
};

struct made {
	_Atomic uintptr_t start, end; /* L */
	enum shim_made_kind kind; /* L; read with the lock only */
	uintptr_t segment; /* L; as kind */
};

static struct made first_table[NR_SLOTS] LARGE_STATIC;
static struct made *_Atomic made_table = first_table; /* L: before nr_made */
static size_t nr_slots = NR_SLOTS; /* L; read with the lock only */
static atomic_size_t nr_made; /* L */
static atomic_uint table_version; /* odd: somebody changes the table */

/* ---- with the lock ---- */

static void lock_table(struct uninterrupted *before)
{
	const struct timespec moment = { .tv_nsec = TABLE_POLL_NS };

	uninterrupted_begin(before);
	for (;;) {
		unsigned version = atomic_load(&table_version) & ~1u;

		if (atomic_compare_exchange_strong(&table_version, &version,
						   version + 1))
			return;
		nanosleep(&moment, NULL);
	}
}

static void unlock_table(const struct uninterrupted *before)
{
	atomic_fetch_add(&table_version, 1);
	uninterrupted_end(before);
}

static void assert_table_locked(void)
{
	util_assert(atomic_load(&table_version) & 1);
}

static struct made_range read_entry(size_t i)
{
	const struct made *made = &made_table[i];

	assert_table_locked();
	return (struct made_range){ made->start, made->end, made->kind,
				    made->segment };
}

static void write_entry(size_t i, const struct made_range *range)
{
	assert_table_locked();
	made_table[i].start = range->start;
	made_table[i].end = range->end;
	made_table[i].kind = range->kind;
	made_table[i].segment = range->segment;
}

static void remove_entry(size_t i)
{
	struct made_range last = read_entry(nr_made - 1);

	write_entry(i, &last);
	nr_made--;
}

static bool are_neighbours(const struct made *low, const struct made *high)
{
	return low->end == high->start && low->kind == high->kind &&
	       low->kind != MADE_SEGMENT;
}

/* Join the two smallest neighbours, because samples are spread over both. */
static bool join_neighbours(void)
{
	size_t least = SIZE_MAX, low = 0, high = 0;

	for (size_t i = 0; i < nr_made; i++)
		for (size_t j = 0; j < nr_made; j++)
			if (are_neighbours(&made_table[i], &made_table[j]) &&
			    made_table[j].end - made_table[i].start < least) {
				least = made_table[j].end - made_table[i].start;
				low = i;
				high = j;
			}
	if (least == SIZE_MAX)
		return false;
	made_table[low].end = made_table[high].end;
	remove_entry(high);
	return true;
}

static bool grow_table(void)
{
	size_t bytes = 2 * nr_slots * sizeof(*made_table);
	struct made *table = MAP_FAILED, *former = made_table;

	assert_table_locked();
	if (2 * nr_slots <= SLOTS_MOST)
		table = real_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return false;
	for (size_t i = 0; i < nr_made; i++) {
		table[i].start = former[i].start;
		table[i].end = former[i].end;
		table[i].kind = former[i].kind;
		table[i].segment = former[i].segment;
	}
	made_table = table;
	nr_slots *= 2;
	return true;
}

/* In a table that has grown, joining would take longer than anything else. */
static bool extend_table(void)
{
	return nr_made < nr_slots ||
	       (nr_made <= NR_SLOTS && join_neighbours()) || grow_table();
}

static bool append_entry(const struct made_range *range)
{
	if (!extend_table())
		return false;
	write_entry(nr_made, range);
	nr_made++;
	return true;
}

/* Return: the first entry that overlaps, or NO_ENTRY.  Read the number before the table:
 * a table is published before the number that needs it. */
static size_t find_entry(uintptr_t start, uintptr_t end)
{
	size_t nr = nr_made;
	const struct made *table = made_table;

	for (size_t i = 0; i < nr; i++)
		if (table[i].start < end && start < table[i].end)
			return i;
	return NO_ENTRY;
}

/* Keep what lies outside [start, end); add the larger of two parts first. */
static void cut_entry(size_t i, uintptr_t start, uintptr_t end)
{
	struct made_range low = read_entry(i), high = low;

	remove_entry(i);
	low.end = start > low.start ? start : low.start;
	high.start = end < high.end ? end : high.end;
	if (high.end - high.start > low.end - low.start) {
		struct made_range other = low;

		low = high;
		high = other;
	}
	if (low.start < low.end)
		append_entry(&low);
	if (high.start < high.end)
		append_entry(&high);
}

static void cut_range(uintptr_t start, uintptr_t end)
{
	size_t i;

	while ((i = find_entry(start, end)) != NO_ENTRY)
		cut_entry(i, start, end);
}

/* ---- changes ---- */

/* In whole pages, as the kernel changes mappings. */
static struct made_range whole_pages(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr, end = start + len;

	if (end < start || end > UINTPTR_MAX - page)
		end = UINTPTR_MAX - page + 1;
	return (struct made_range){ .start = start & ~(page - 1),
				    .end = (end + page - 1) & ~(page - 1) };
}

bool shim_made_add(void *base, size_t len, enum shim_made_kind kind)
{
	keep_errno();
	struct made_range range = whole_pages(base, len);
	struct uninterrupted before;
	bool added;

	range.kind = kind;
	range.segment = kind == MADE_SEGMENT ? range.start : 0;
	lock_table(&before);
	cut_range(range.start, range.end);
	added = append_entry(&range);
	if (added && nr_made > NR_ENTRIES &&
	    (nr_made > NR_SLOTS || !join_neighbours())) {
		nr_made--;
		added = false;
	}
	unlock_table(&before);
	return added;
}

/* Without the lock; a table that changes meanwhile may have one. */
static bool may_have_entry(uintptr_t start, uintptr_t end)
{
	unsigned version = atomic_load(&table_version);

	return version & 1 || find_entry(start, end) != NO_ENTRY ||
	       atomic_load(&table_version) != version;
}

/* Entries belong to the process that made them.  With a harmful filter none is made. */
static bool may_change_table(void)
{
	return shim_filter_allows() && shim_is_ours();
}

void shim_made_drop(const void *addr, size_t len)
{
	keep_errno();
	struct made_range range = whole_pages(addr, len);
	struct uninterrupted before;

	if (!len || !may_have_entry(range.start, range.end) ||
	    !may_change_table())
		return;
	lock_table(&before);
	cut_range(range.start, range.end);
	unlock_table(&before);
}

void shim_made_drop_segment(const void *addr)
{
	keep_errno();
	struct uninterrupted before;

	if (!may_change_table())
		return;
	lock_table(&before);
	for (size_t i = nr_made; i-- > 0;)
		if (made_table[i].segment &&
		    made_table[i].segment == (uintptr_t)addr)
			remove_entry(i);
	unlock_table(&before);
}

/* A change that another thread had begun in the parent will not end here. */
void shim_made_forked(void)
{
	if (!(atomic_load(&table_version) & 1))
		return;
	atomic_store(&nr_made, 0);
	atomic_fetch_add(&table_version, 1);
}

/* The entries as they were at one moment. */
struct table_copy {
	struct made_range few[NR_SLOTS], *ranges;
	size_t nr;
};

static size_t copy_bytes(const struct table_copy *copy)
{
	return copy->nr * sizeof(*copy->ranges);
}

/* Copy all entries, or only the first ones if no memory can be mapped. */
static void copy_table(struct table_copy *copy)
{
	struct uninterrupted before;

	lock_table(&before);
	copy->nr = nr_made;
	copy->ranges = copy->few;
	if (copy->nr > NR_SLOTS) {
		void *many = real_mmap(NULL, copy_bytes(copy),
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (many == MAP_FAILED)
			copy->nr = NR_SLOTS;
		else
			copy->ranges = many;
	}
	for (size_t i = 0; i < copy->nr; i++)
		copy->ranges[i] = read_entry(i);
	unlock_table(&before);
}

static void end_copy(struct table_copy *copy)
{
	if (copy->ranges != copy->few)
		real_munmap(copy->ranges, copy_bytes(copy));
}

/* Remove the entry if the table is full. */
static void forget_touched(const struct made_range *range)
{
	struct uninterrupted before;
	size_t i;

	lock_table(&before);
	i = find_entry(range->start, range->end);
	if (nr_made >= NR_ENTRIES && i != NO_ENTRY &&
	    made_table[i].start == range->start &&
	    made_table[i].end == range->end)
		remove_entry(i);
	unlock_table(&before);
}

/* ---- what the program did with it ---- */

static bool is_zero(const char *bytes, size_t len)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, len - 1);
}

/*
 * Choose one page of each of @nr equal parts, each at a different offset: the first page
 * of a mapping is often touched, and an entry may contain many mappings.
 */
static uintptr_t sample_page(const struct made_range *range, size_t nr,
			     size_t i, uintptr_t page)
{
	size_t nr_pages = (range->end - range->start) / page;
	size_t part = nr_pages / nr;
	size_t at = (uint32_t)(i + 1) * 2654435761u >> 8;

	return range->start + (i * part + at % part) * page;
}

/*
 * Was the page made, or will it be?  A job may have ended early.  An absent page must not
 * be read, because reading would map it.
 */
static bool is_made(uintptr_t at)
{
	return shim_prefault_waits || page_is_present(at) ||
	       shim_prefault_pending((void *)at);
}

static size_t count_zero(const struct iovec *pages, size_t nr)
{
	char samples[NR_SAMPLES][SAMPLE_BYTES];
	size_t nr_zero = 0, from = 0;

	while (from < nr) {
		struct iovec local = { samples, sizeof(samples) };
		ssize_t len = process_vm_readv(getpid(), &local, 1,
					       pages + from, nr - from, 0);

		/* The page cannot be read: count it as touched. */
		if (len < SAMPLE_BYTES) {
			from++;
			continue;
		}
		for (ssize_t i = 0; i < len / SAMPLE_BYTES; i++)
			nr_zero += is_zero(samples[i], SAMPLE_BYTES);
		from += (size_t)len / SAMPLE_BYTES;
	}
	return nr_zero;
}

/* Return: bytes that are made and zero, estimated from at most @most samples. */
static size_t untouched_bytes(const struct made_range *range, size_t most)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t len = range->end - range->start;
	size_t nr = len / page < most ? len / page : most;
	struct iovec pages[NR_SAMPLES];
	size_t nr_pages = 0;

	for (size_t i = 0; i < nr; i++) {
		uintptr_t at = sample_page(range, nr, i, page);

		if (is_made(at))
			pages[nr_pages++] =
				(struct iovec){ (void *)at, SAMPLE_BYTES };
	}
	return len / nr * count_zero(pages, nr_pages);
}

size_t shim_made_untouched(void)
{
	keep_errno();
	size_t samples = NR_SAMPLES, bytes = 0;
	struct table_copy copy;

	copy_table(&copy);
	if (copy.nr > NR_SLOTS)
		samples = NR_SAMPLES * NR_SLOTS / copy.nr;
	for (size_t i = 0; i < copy.nr; i++) {
		size_t untouched =
			untouched_bytes(&copy.ranges[i], samples ? samples : 1);

		if (!untouched && copy.nr >= NR_ENTRIES)
			forget_touched(&copy.ranges[i]);
		bytes += untouched;
	}
	end_copy(&copy);
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
			     made->kind == MADE_PRIVATE ? MADV_DONTNEED
							: MADV_REMOVE);
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
	struct table_copy copy;

	copy_table(&copy);
	for (size_t i = 0; i < copy.nr; i++) {
		const struct made_range *range = &copy.ranges[i];
		uintptr_t from = start > range->start ? start : range->start;
		uintptr_t to = end < range->end ? end : range->end;

		if (from >= to)
			continue;
		/* A minor fault needs a page that exists but is not mapped. */
		if (minor && range->kind != MADE_PRIVATE)
			real_madvise((void *)from, to - from, MADV_DONTNEED);
		else if (!minor)
			discard_zero_pages(range, from, to);
	}
	end_copy(&copy);
}
