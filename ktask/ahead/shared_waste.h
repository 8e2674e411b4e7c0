/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bound on waste of a mapping that several processes share: pages that helpers of any
 * of them made, and that none is known to have passed.
 *
 * The counts lie in memory that these processes share.  For each block there is one: a
 * process that makes pages of the block ahead adds them before, and a process that has
 * touched all of the block clears it.  So two processes that make the same block count
 * once, what one leaves behind is forgotten when another one comes by, and what a killed
 * process made stays counted until then.
 *
 * A process may add pages only while all that are counted stay within the allowance plus
 * 3 % of what it has touched itself.  All processes together have touched at least as much.
 *
 * Behaves badly: the kernel maps up to 16 pages around one that is only read, if they are
 * there.  So a process that reads here and there in what another one made seems to have
 * passed it.  If a process is killed while it adds pages, up to a window stays counted for
 * ever.
 *
 * Pages count from the edge of the first block.
 *
 * Locking: there is no lock, because whoever holds it might be killed.  All is atomic.
 */
#ifndef AHEAD_SHARED_WASTE_H
#define AHEAD_SHARED_WASTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of zeros is one of no blocks. */
struct shared_waste {
	size_t nr_blocks;
	atomic_size_t nr_pages; /* of all blocks, or more for a moment */
	atomic_bool
		given_back; /* some of the memory: nothing is made any more */
	atomic_uint
		nr_young; /* processes that may have begun to watch in vain */
	_Atomic uint16_t blocks[];
};

static inline size_t shared_waste_bytes(size_t nr_blocks)
{
	return sizeof(struct shared_waste) + nr_blocks * sizeof(uint16_t);
}

static inline size_t shared_waste_pages(const struct shared_waste *waste)
{
	return atomic_load(&waste->nr_pages);
}

/*
 * shared_waste_add - pages [@first, @end) are about to be made
 * @most: that may be counted then
 *
 * Return: false if there would be more; then none is counted.
 */
bool shared_waste_add(struct shared_waste *waste, size_t first, size_t end,
		      size_t most);

/* shared_waste_pass - a process has touched all of [@first, @end) */
void shared_waste_pass(struct shared_waste *waste, size_t first, size_t end);

/*
 * shared_waste_begin - a process begins to watch
 * shared_waste_last - it has watched for a while, which another one may do as well
 * shared_waste_help - it was helped: what others have done in vain is forgotten
 */
void shared_waste_begin(struct shared_waste *waste);
void shared_waste_last(struct shared_waste *waste);
void shared_waste_help(struct shared_waste *waste);

#endif /* AHEAD_SHARED_WASTE_H */
