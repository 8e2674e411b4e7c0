// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinning a range of the caller's memory for long, and unpinning it.
 *
 * The whole range is charged as locked memory before the first page is pinned.  Charging
 * each chunk would take the address space's lock for writing each time, which stops chunks
 * that fault (published: 16 threads were then only 1.9 times as fast as one).
 *
 * The charge belongs to an address space and ends with it.  Pins last as long as their
 * file, which may outlive an exec or be inherited by a child.  So pins whose address space
 * is gone count against the limit of anybody who pins as the same user.
 *
 * Behaves badly on ranges of hundreds of gigabytes of small pages: it keeps a
 * pointer for each page.
 *
 * Locking: pins->lock protects the list of a file, and busy of the pins in it.
 * all_pins_lock protects all_pins and everybody.  Neither is taken under the other.
 * The rest of a pin is constant while it is in the list of its file; who takes it off
 * that list owns it.  Readers of all_pins look at nothing but user, mm and nr_pages,
 * which are set before.  memory_unpin_all() is alone: nobody has the file open.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "kernel/client/device_memory.h"

/* Pages that are unpinned between two points at which others may run. */
#define UNPIN_PAGES 4096ul

/* A range that is pinned, in the list of its file. */
struct pin {
	struct list_head list;
	struct list_head everybody; /* in the list of all */
	kuid_t user;
	struct mm_struct *mm; /* whose; grabbed */
	unsigned long addr, nr_pages;
	struct page **pages;
	bool busy; /* it is being pinned, and nobody else may take it */
};

static LIST_HEAD(all_pins);
static DEFINE_MUTEX(all_pins_lock);

static unsigned long index_of(const struct memory_job *job, void *position)
{
	return ((unsigned long)position - job->addr) >> PAGE_SHIFT;
}

static void unpin_chunk(void *start, void *end, void *arg)
{
	struct memory_job *job = arg;
	unsigned long from = index_of(job, start);

	unpin_user_pages(job->pages + from, index_of(job, end) - from);
}

/* In calls of at most a huge page: their argument is an int. */
static int pin_chunk(void *start, void *end, void *arg)
{
	struct memory_job *job = arg;
	unsigned long addr = (unsigned long)start;

	while (addr < (unsigned long)end) {
		void *here = (void *)addr;
		unsigned long left = min((unsigned long)end - addr, PMD_SIZE);
		int nr = pin_user_pages_fast(addr, left >> PAGE_SHIFT,
					     job->gup_flags,
					     job->pages + index_of(job, here));

		if (nr <= 0) {
			memory_failed(job, addr);
			unpin_chunk(start, here, job);
			return nr ? nr : -EFAULT;
		}
		addr += (unsigned long)nr << PAGE_SHIFT;
		cond_resched();
	}
	return 0;
}

static void list_for_all(struct pin *pin)
{
	mutex_lock(&all_pins_lock);
	list_add(&pin->everybody, &all_pins);
	mutex_unlock(&all_pins_lock);
}

static void unlist_for_all(struct pin *pin)
{
	mutex_lock(&all_pins_lock);
	list_del(&pin->everybody);
	mutex_unlock(&all_pins_lock);
}

/* Pages that the user has pinned in address spaces that are gone. */
static unsigned long left_behind(kuid_t user)
{
	unsigned long nr_pages = 0;
	struct pin *pin;

	mutex_lock(&all_pins_lock);
	list_for_each_entry(pin, &all_pins, everybody)
	{
		if (uid_eq(pin->user, user) && !atomic_read(&pin->mm->mm_users))
			nr_pages += pin->nr_pages;
	}
	mutex_unlock(&all_pins_lock);
	return nr_pages;
}

static int charge_pin(const struct pin *pin)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long left = left_behind(pin->user);

	if (left &&
	    left + READ_ONCE(pin->mm->locked_vm) + pin->nr_pages > limit &&
	    !capable(CAP_IPC_LOCK))
		return -ENOMEM;
	return account_locked_vm(pin->mm, pin->nr_pages, true);
}

static void free_pin(struct pin *pin)
{
	unlist_for_all(pin);
	account_locked_vm(pin->mm, pin->nr_pages, false);
	mmdrop(pin->mm);
	kvfree(pin->pages);
	kfree(pin);
}

/* In steps, because on kernels without preemption no other thread runs meanwhile. */
static void unpin_range(struct pin *pin)
{
	unsigned long done = 0;

	while (done < pin->nr_pages) {
		unsigned long nr = min(pin->nr_pages - done, UNPIN_PAGES);

		unpin_user_pages(pin->pages + done, nr);
		done += nr;
		cond_resched();
	}
	free_pin(pin);
}

/* Charged before anything large is allocated: a request beyond the limit costs
 * nothing. */
static struct pin *new_pin(const struct ktask_mem *request)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);

	if (!pin)
		return NULL;
	pin->addr = request->addr;
	pin->nr_pages = request->len >> PAGE_SHIFT;
	pin->mm = current->mm;
	pin->busy = true;
	pin->user = current_uid();
	if (charge_pin(pin)) {
		kfree(pin);
		return NULL;
	}
	mmgrab(pin->mm);
	list_for_all(pin);
	pin->pages = kvcalloc(pin->nr_pages, sizeof(*pin->pages),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pin->pages) {
		free_pin(pin);
		return NULL;
	}
	return pin;
}

static bool overlaps_any(const struct pins *pins, const struct pin *new)
{
	const struct pin *pin;

	lockdep_assert_held(&pins->lock);
	list_for_each_entry(
		pin, &pins->list,
		list) if (pin->mm == new->mm &&new->addr <
					     pin->addr + (pin->nr_pages
							  << PAGE_SHIFT) &&
			  pin->addr < new->addr + (new->nr_pages
						   << PAGE_SHIFT)) return true;
	return false;
}

static bool insert_pin(struct pins *pins, struct pin *pin)
{
	bool fits;

	mutex_lock(&pins->lock);
	fits = !overlaps_any(pins, pin);
	if (fits)
		list_add(&pin->list, &pins->list);
	mutex_unlock(&pins->lock);
	return fits;
}

int memory_pin(struct pins *pins, struct ktask_mem *request)
{
	struct memory_job job = { .gup_flags = FOLL_WRITE | FOLL_LONGTERM };
	struct pin *pin = new_pin(request);
	int error;

	if (!pin)
		return -ENOMEM;
	if (!insert_pin(pins, pin)) {
		free_pin(pin);
		return -EEXIST;
	}
	job.pages = pin->pages;
	error = memory_run(request, &job, pin_chunk, unpin_chunk);
	mutex_lock(&pins->lock);
	pin->busy = false;
	if (error)
		list_del(&pin->list);
	mutex_unlock(&pins->lock);
	if (error)
		free_pin(pin);
	return error;
}

int memory_unpin(struct pins *pins, struct ktask_mem *request)
{
	struct pin *pin, *found = NULL;

	mutex_lock(&pins->lock);
	list_for_each_entry(pin, &pins->list, list)
	{
		if (pin->busy || pin->mm != current->mm ||
		    pin->addr != request->addr ||
		    pin->nr_pages != request->len >> PAGE_SHIFT)
			continue;
		found = pin;
		list_del(&pin->list);
		break;
	}
	mutex_unlock(&pins->lock);
	if (!found)
		return -ENOENT;
	unpin_range(found);
	return 0;
}

void memory_unpin_all(struct pins *pins)
{
	struct pin *pin, *next;

	list_for_each_entry_safe(pin, next, &pins->list, list) unpin_range(pin);
}
